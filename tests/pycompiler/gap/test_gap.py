"""The steps from a bound to a program: they add up, and each is what its rule costs."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from compiling import compiled, model_of, with_seeds
from random_models import random_model

from pycompiler.cli import commands
from pycompiler.emit.segments import CONCAT, MERGED
from pycompiler.errors import HostFallbackWarning, PycompilerError
from pycompiler.gap.measure import LINES, SHAPE, STEPS, Gap, gap_of
from pycompiler.gap.picture import picture
from pycompiler.gap.relaxed import LATENCY, RATE, Relaxed
from pycompiler.machine import Target, load_target
from pycompiler.sweep.values import description, load_point

TIMING = Path(__file__).parents[3] / "isa_specs" / "mncore2" / "timing.toml"


def network(rows: int = 16, width: int = 32) -> onnx.ModelProto:
    """Return two products with a function between them."""
    weights = {name: np.full((width, width), 0.1, np.float32) for name in "wv"}
    nodes = [
        ("MatMul", ["x", "w"], "h"),
        ("Tanh", ["h"], "t"),
        ("MatMul", ["t", "v"], "y"),
    ]
    return model_of(nodes, {"x": (rows, width)}, ["y"], weights)


def found(
    model: onnx.ModelProto, emit: str = MERGED, machine: str = "mini"
) -> tuple[Gap, int, str]:
    """Return the gap of a model, the cycles of its report, and its text."""
    made, report = compiled(model, machine, emit=emit)
    gap = gap_of(made.graph, load_target(machine), emit, report["bound"]["cycles"])
    return gap, report["cycles"], made.vsm


def check_sum(gap: Gap, cycles: int) -> None:
    assert gap.cycles == cycles
    assert list(gap.steps) == list(STEPS)
    assert gap.bound + sum(gap.totals.values()) == cycles
    assert all(own >= 0 for own in gap.totals.values())
    assert all(len(rows) == len(gap.nodes) for rows in gap.steps.values())
    assert gap.sure <= cycles <= gap.slow or gap.cycles == 0


@pytest.mark.parametrize("emit", [MERGED, CONCAT])
@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_steps_add_up(emit: str, machine: str) -> None:
    gap, cycles, _ = found(network(), emit, machine)
    check_sum(gap, cycles)
    assert gap.totals[LATENCY] > 0


def test_steps_of_drawn_models_add_up() -> None:
    def check(seed: int) -> None:
        made, report = compiled(random_model(random.Random(seed))[0])
        gap = gap_of(made.graph, load_target("mini"), MERGED, report["bound"]["cycles"])
        assert gap.bound + sum(gap.totals.values()) == gap.cycles == report["cycles"]
        assert all(own >= 0 for own in gap.totals.values())

    with_seeds(check, 6, 200)


def other(base: Target, folder: Path, latency: int) -> Target:
    own = folder / str(latency)
    own.mkdir()
    return load_point(description(base, {"timing.mv_latency": latency}), own)


def test_latency_is_that_of_a_machine_with_another_one(tmp_path: Path) -> None:
    """Node after node, the same text is the program for both: only stalls differ."""
    gap, cycles, text = found(network(), CONCAT)
    base = load_target("mini")
    at_once, slow = (
        other(base, tmp_path, latency).assemble(text, "it.vsm").report()["cycles"]
        for latency in (1, 2 * base.spec.mv_latency)
    )
    waits = text.count("wait")
    assert at_once - waits <= cycles - gap.totals[LATENCY] <= at_once
    assert gap.slow == slow


def test_a_product_that_fills_the_machine_is_its_own_bound() -> None:
    """All that is left of a large product in the end is what the shape of matrices costs."""
    gap, cycles, _ = found(network(256, 64))
    check_sum(gap, cycles)
    assert gap.totals[SHAPE] < gap.bound


def test_what_crosses_dram_costs_no_more_than_the_bound_says() -> None:
    """Of a model that only loads and stores, rate and latency are most of what is above DRAM."""
    model = model_of([("Relu", ["x"], "y")], {"x": (512, 64)}, ["y"])
    gap, cycles, _ = found(model)
    check_sum(gap, cycles)
    assert gap.totals[RATE] + gap.totals[LATENCY] > (cycles - gap.bound) / 2
    assert gap.totals[LINES] == gap.totals[SHAPE] == 0


def test_relaxed_machines_keep_what_is_not_named() -> None:
    base = load_target("mncore2")
    more = Relaxed(base, [], scratch=True)
    assert more.words("grf0") > base.words("grf0")
    assert [more.words(name) for name in ("lm0", "dram")] == [
        base.words(name) for name in ("lm0", "dram")
    ]
    assert more.issue_rules("fvadd") == base.issue_rules("fvadd")
    assert more.shares == base.shares
    assert base.hazards
    assert Relaxed(base, base.hazards).hazards == base.hazards


def test_the_numbers_of_mvs_are_guesses() -> None:
    """Which :func:`pycompiler.gap.relaxed.without_guesses` takes for granted."""
    assert tomllib.loads(TIMING.read_text())["timing"]["evidence"] == "guess"


def test_the_picture_has_a_bar_of_each_row() -> None:
    row = {"name": "a < b", "cycles": 100, "bound": 40, **dict.fromkeys(STEPS, 6)}
    drawn = ElementTree.fromstring(picture([row, {**row, "name": "c"}], "of <x>"))
    rects = [one for one in drawn.iter() if one.tag.endswith("rect")]
    key, bars = len(STEPS) + 1, 2 * (len(STEPS) + 1)
    assert len(rects) == key + bars
    first = rects[key : key + len(STEPS) + 1]
    assert sum(float(one.get("width", 0)) for one in first) == pytest.approx(900, abs=0.1)
    assert ElementTree.fromstring(picture([], "nothing")) is not None


def test_the_command_writes_table_picture_and_figures(tmp_path: Path) -> None:
    path, drawn, facts = tmp_path / "m.onnx", tmp_path / "m.svg", tmp_path / "m.json"
    onnx.save(network(), path)
    words = ["gap", str(path), "--machine", "mini", "-O", "emit=concat", "--by", "operator"]
    outputs = ["--draw", str(drawn), "--json", str(facts), "--switches"]
    done = CliRunner().invoke(commands, [*words, *outputs])
    assert done.exit_code == 0, done.output
    figures = json.loads(facts.read_text())
    assert figures["cycles"] == sum(row["cycles"] for row in figures["rows"])
    for row in figures["rows"]:
        parts = sum(row[step] for step in ("bound", *STEPS))
        assert parts == pytest.approx(row["cycles"], abs=1)
    for step, cycles in figures["steps"].items():
        assert sum(row[step] for row in figures["rows"]) == pytest.approx(cycles, abs=1)
        assert step in done.output
    assert "MatMul" in {row["name"] for row in figures["rows"]}
    assert "with twice the latency" in done.output
    assert "passes and digits" in done.output
    assert all(kind["steps"] >= kind["least"] for kind in figures["switches"])
    assert drawn.read_text().startswith("<svg")


def test_a_folder_has_machine_and_options(tmp_path: Path) -> None:
    """The program is that of the folder; options of the command come on top."""
    path, folder, facts = tmp_path / "m.onnx", tmp_path / "out", tmp_path / "m.json"
    onnx.save(network(), path)
    options = ["-O", "emit=concat", "-O", "scheduler=always_from_dram"]
    build = ["compile", str(path), "-o", str(folder), "--device", "emu2:mini", *options]
    assert CliRunner().invoke(commands, build).exit_code == 0
    report = json.loads((folder / "report.json").read_text())
    for more, same in (((), True), (("-O", "emit=l1merge"), False)):
        done = CliRunner().invoke(commands, ["gap", str(folder), "--json", str(facts), *more])
        assert done.exit_code == 0, done.output
        found = json.loads(facts.read_text())
        assert found["machine"] == "mini"
        assert (found["cycles"] == report["cycles"]) == same
    (folder / "report.json").write_text("{}")
    done = CliRunner().invoke(commands, ["gap", str(folder)])
    assert isinstance(done.exception, PycompilerError)
    assert done.exception.code == "P0004"


def test_work_on_the_host_is_no_part_of_the_steps() -> None:
    nodes = [("Det", ["x"], "d"), ("MatMul", ["x", "w"], "y")]
    model = model_of(nodes, {"x": (33, 33)}, ["d", "y"], {"w": np.ones((33, 8), np.float32)})
    with pytest.warns(HostFallbackWarning):
        gap, cycles, _ = found(model)
    check_sum(gap, cycles)
    with pytest.warns(HostFallbackWarning):
        gap, cycles, _ = found(model_of(nodes[:1], {"x": (33, 33)}, ["d"]))
    assert (gap.cycles, gap.bound, sum(gap.totals.values()), list(gap.nodes)) == (0, 0, 0, [])
