"""Machines that nobody built: models run right on them, or are refused with a code."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, random_inputs, run, tried
from corpus import networks
from random_models import random_model

import emu2
from pycompiler import model_commands
from pycompiler.cache import cache_key
from pycompiler.cost.moves import chip_dram_rate
from pycompiler.errors import BUG_EXIT, PycompilerError
from pycompiler.executors import PROCESSES, THREADS, Workers
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pfvm.session import HostSession
from pycompiler.sweep.measure import rows
from pycompiler.sweep.picture import picture
from pycompiler.sweep.values import VALUES, Axis, description, parse_axis, points

LONG = bool(os.environ.get("EMU2_LONG"))
#: Machines on which every model of the tests runs, and those that `make test` only loads.
RUN = ("what_if/odd", "what_if/half_l2b")


def right_on(machine: str, model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> None:
    """Compare the results on a machine with those of the host."""
    wanted = HostSession(model, "model").run(inputs)
    for dtype, limit in (("float", 1e-5), ("mixed", 4e-2)):
        result, _ = compiled(model, machine, float_dtype=dtype)
        for key, array in run(result, inputs, machine).items():
            scale = max(1e-30, float(np.abs(wanted[key]).max(initial=0)))
            worst = float(np.abs(array - wanted[key]).max(initial=0)) / scale
            assert worst <= limit, f"{key} in {dtype}: {worst}"


@pytest.mark.parametrize("name", emu2.what_if_specs())
def test_built_in_machines(name: str) -> None:
    """Each differs from the machine that it extends, and takes a program."""
    target = load_target(name)
    base = load_target("mini" if name == "what_if/odd" else "mncore2")
    facts = [(t.counts, t.spec.memories, chip_dram_rate(t)) for t in (target, base)]
    assert facts[0] != facts[1]
    assert target.name == name.rpartition("/")[2]
    assert target.digest != base.digest
    model = model_of([("Relu", ["x"], "y")], {"x": (5, 7)}, ["y"])
    assert compiled(model, name)[1]["cycles"] > 0


def test_what_the_built_in_machines_are() -> None:
    base = load_target("mncore2")

    def of(name: str) -> Any:
        return load_target(f"what_if/{name}")

    assert of("large_lm").words("lm0") == of("large_lm").words("lm1") == 2 * base.words("lm0")
    assert chip_dram_rate(of("wide_dram")) == 4 * chip_dram_rate(base)
    assert 2 * of("half_l2b").counts["l2b"] == base.counts["l2b"]
    assert of("wide_l1b").counts["mab"] == 2 * base.counts["mab"]
    odd = of("odd").counts
    assert all(odd[level] % 2 for level in ("group", "l2b", "l1b", "mab"))
    assert len(set(odd.values())) == len(odd)


@pytest.mark.parametrize("machine", RUN)
@pytest.mark.parametrize("seed", range(tried(20)) if LONG else range(2))
def test_drawn_models_are_right(machine: str, seed: int) -> None:
    model, inputs = random_model(random.Random(100 + seed))
    right_on(machine, model, inputs)


def test_a_product_is_right_on_odd() -> None:
    rng = np.random.default_rng(2)
    nodes = [("MatMul", ["x", "w"], "p"), ("Add", ["p", "b"], "s"), ("Softmax", ["s"], "y")]
    constants = {
        "w": rng.standard_normal((23, 17)).astype(np.float32) / 5,
        "b": rng.standard_normal(17).astype(np.float32),
    }
    model = model_of(nodes, {"x": (9, 23)}, ["y"], constants)
    right_on("what_if/odd", model, random_inputs({"x": (9, 23)}, 4, scale=0.05))


def test_a_product_of_doubles_is_right_on_odd() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((9, 23)), rng.standard_normal((23, 17))
    text = """<ir_version: 10, opset_import: ["": 20]>
        g (double[9, 23] x, double[23, 17] w) => (double[9, 17] y) { y = MatMul (x, w) }"""
    result, report = compiled(onnx.parser.parse_model(text), "what_if/odd")
    assert report["host_fallback"] == []
    found = run(result, {"x": x, "w": w}, "what_if/odd")["y"]
    np.testing.assert_allclose(found, x @ w, rtol=0, atol=1e-12)


#: Descriptions that the loader takes and the compiler does not, and a word of the reason.
REFUSED = {
    "odd cycles": (
        '[counts]\ncycle = 3\n[[memory]]\nname = "t"\nwords = 6\n'
        '[[memory]]\nname = "omr"\nwords = 48\n',
        "even",
    ),
    "cycles that do not divide a matrix": (
        '[counts]\ncycle = 6\n[[memory]]\nname = "t"\nwords = 12\n[[memory]]\nname = "omr"\n'
        'words = 96\n[[memory]]\nname = "dar_buffer"\nwords = 390\n',
        "rows of a matrix register",
    ),
    # Products of singles and halves would be right there, those of doubles wrong.
    "cycles that do not divide a matrix of doubles": (
        '[counts]\ncycle = 8\n[[memory]]\nname = "t"\nwords = 16\n[[memory]]\nname = "omr"\n'
        'words = 128\n[[memory]]\nname = "dar_buffer"\nwords = 514\n',
        r"rows of a matrix register \(d\)",
    ),
    "narrow and MV": ("[ports]\nl2bm_narrow = 12\n", "mv_unit"),
    "lane and a MAB": ("[ports]\nl2bm_lane = 6\n", "whole MABs"),
    "lane and an L1B": (
        "[counts]\nmab = 6\n[ports]\nl2bm_lane = 16\nreduce_inputs = 6\n",
        "whole lanes",
    ),
    "block and MV": ("[ports]\nmv_block = 32\nmv_unit = 16\n", "mv_block"),
    "many MABs": ("[counts]\nmab = 64\n", "masks"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    text, reason = REFUSED[name]
    head = 'extends = "mini"\n[machine]\nname = "other"\ndoc = "A test."\n'
    (tmp_path / "other.toml").write_text(head + text)
    emu2.Spec.load(str(tmp_path / "other.toml"))
    with pytest.raises(PycompilerError, match=reason) as caught:
        load_target(str(tmp_path / "other.toml"))
    assert caught.value.code == "P0606"


def drawn_machine(rng: random.Random) -> str:
    """Return the description of a machine; not every one is possible."""
    mab, cycle = rng.choice([2, 4, 6, 8, 12]), rng.choice([1, 2, 3, 4, 4, 4, 8])
    counts = {
        "group": rng.choice([1, 2, 3]),
        "l2b": rng.choice([1, 2, 3]),
        "l1b": rng.choice([1, 2, 3, 4, 5]),
        "mab": mab,
        "cycle": cycle,
    }
    ports = {
        "l2bm_narrow": rng.choice([4, 8, 12, 16, 32]),
        "l2bm_lane": rng.choice([4, 6, 8, 12, 16]),
        "reduce_inputs": rng.choice([1, 2, mab]),
        "mv_block": rng.choice([8, 16, 32]),
        "mv_unit": rng.choice([16, 32, 64, 128]),
    }
    words = {
        "t": 2 * cycle,
        "omr": 16 * cycle,
        "dar_buffer": 64 * cycle + 2,
        "dar": 256 * cycle,
        "lm0": rng.choice([64, 256, 512, 1000]),
        "lm1": rng.choice([64, 256, 512, 1000]),
        "l1bm": rng.choice([256, 1024, 1500]),
        "l2bm": rng.choice([1024, 3000, 4096]),
        "grf0": rng.choice([64, 256]),
    }
    text = 'extends = "mini"\n[machine]\nname = "drawn"\ndoc = "A test."\n[counts]\n'
    text += "".join(f"{name} = {count}\n" for name, count in counts.items()) + "[ports]\n"
    text += "".join(f"{name} = {width}\n" for name, width in ports.items())
    text += f"[timing]\nmv_latency = {rng.choice([16, 256, 1000])}\n"
    text += f"mv_throughput = {rng.choice([3, 16, 64])}\n"
    return text + "".join(
        f'[[memory]]\nname = "{name}"\nwords = {count}\n' for name, count in words.items()
    )


@pytest.mark.parametrize("seed", range(tried(20)) if LONG else (4, 22, 36))
def test_drawn_machines(seed: int, tmp_path: Path) -> None:
    """A drawn machine is refused, or gives right results."""
    (tmp_path / "drawn.toml").write_text(drawn_machine(random.Random(seed)))
    model, inputs = random_model(random.Random(seed))
    bug = ""
    try:
        right_on(str(tmp_path / "drawn.toml"), model, inputs)
    except PycompilerError as problem:
        bug = str(problem) if problem.exit_code == BUG_EXIT else ""
    assert not bug


#: Networks with a seed of :func:`drawn_machine`; None is `what_if/odd`.
NETWORKS = {
    "joined words in the upper half of L2BM": (None, networks.inverted_bottleneck(1, 6, 7, 3)),
    "vectors of a cycle that are no whole steps": (None, networks.encoder(1, 14, 24, 3)),
    "rows of a table in many small chunks": (22, networks.embedding(60, 50, 7)),
    "words aside where rows of DRAM have no order": (22, networks.bottleneck(1, 12, 8, 2)),
    "blocks of all groups that are no unit of MVs": (14, networks.recurrent("GRU", 3, 2, 7, 6)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_right(name: str, tmp_path: Path) -> None:
    seed, model = NETWORKS[name]
    if seed is not None:
        (tmp_path / "drawn.toml").write_text(drawn_machine(random.Random(seed)))
    machine = "what_if/odd" if seed is None else str(tmp_path / "drawn.toml")
    (value,) = model.graph.input
    shape = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
    rng = np.random.default_rng(3)
    x = rng.integers(0, 60, shape) if "table" in name else rng.standard_normal(shape)
    right_on(machine, model, {"x": x.astype(np.float32)})


# -- sweeps ----------------------------------------------------------------------------------


def small() -> onnx.ModelProto:
    weight = np.random.default_rng(1).standard_normal((24, 16)).astype(np.float32)
    nodes = [("MatMul", ["x", "w"], "p"), ("Relu", ["p"], "y")]
    return model_of(nodes, {"x": (12, 24)}, ["y"], {"w": weight})


def test_every_value_changes_what_it_names(tmp_path: Path) -> None:
    """Read each value back from a machine on which it is another one."""
    base = load_target("mncore2")
    for name, value in VALUES.items():
        wanted = 2 * value.now(base)
        path = tmp_path / f"{name}.toml"
        path.write_text(description(base, {name: wanted}))
        target = load_target(str(path))
        assert value.now(target) == wanted, name
        others = {other for other in VALUES if VALUES[other].now(target) != VALUES[other].now(base)}
        # DRAMs of more groups bring more words.
        assert others - {name} <= {"dram_words"}, name


def test_a_grid() -> None:
    base = load_target("mini")
    axes = [parse_axis("lm_words=1x,0.5x,1x", base), parse_axis("timing.mv_latency=16,256", base)]
    assert axes[0] == Axis("lm_words", (512, 256))
    grid = points(base, axes)
    assert [tuple(p.numbers.values()) for p in grid] == [
        (512, 16),
        (512, 256),
        (256, 16),
        (256, 256),
    ]
    assert 'extends = "mini"' in grid[0].text


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("lm=1", "no value"),
        ("lm_words", "NUMBER"),
        ("lm_words=", "NUMBER"),
        ("lm_words=1,,2", "no number"),
        ("lm_words=-4", "no number"),
        ("lm_words=0", "above 0"),
        ("lm_words=0.3x", "whole"),
        ("timing.mv_latency=2x", "short name"),
        ("lm_words=99999999999999999999", "whole"),
        ("a.b.c.d=1", "no value"),
    ],
)
def test_settings_that_are_refused(setting: str, reason: str) -> None:
    with pytest.raises(PycompilerError, match=reason) as caught:
        parse_axis(setting, load_target("mini"))
    assert caught.value.code == "P0708"


def test_grids_that_are_refused() -> None:
    base = load_target("mini")
    for axes, reason in (
        ([Axis("lm_words", (1,)), Axis("lm_words", (2,))], "twice"),
        ([Axis("lm_words", tuple(range(1, 99))), Axis("mabs", tuple(range(1, 99)))], "more than"),
        ([Axis("groups", (3,)), Axis("dram_words", (64,))], "equally"),
    ):
        with pytest.raises(PycompilerError, match=reason) as caught:
            points(base, axes)
        assert caught.value.code == "P0708"


@pytest.mark.parametrize("executor", [THREADS, PROCESSES] if LONG else [THREADS])
def test_rows_are_those_of_compiles(executor: str, tmp_path: Path) -> None:
    """Each row is what a compile for its machine says; what is impossible has its reason."""
    base, model = load_target("mini"), small()
    axes = [parse_axis("dram_words=4,16", base), parse_axis("mabs=4,6,64", base)]
    grid, options = points(base, axes), parse_options({"emit": "concat"})
    with Workers(executor, 2) as workers:
        found = dict(rows(model.SerializeToString(), grid, options, workers))
    assert sorted(found) == list(range(len(grid)))
    for number, point in enumerate(grid):
        row = found[number]
        assert row["values"] == point.numbers
        if point.numbers["mabs"] == 4:
            path = tmp_path / f"{number}.toml"
            path.write_text(point.text)
            _, alone = compiled(model, str(path), emit="concat")
            assert (row["cycles"], row["factor"]) == (alone["cycles"], alone["bound"]["factor"])
            assert row["words"]["dram"] == sum(alone["dram_words"].values())
        else:
            assert re.match(r"P0606: ", row["status"])
    assert found[0]["cycles"] > found[3]["cycles"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(small(), tmp_path / "m.onnx")
    drawn, table = tmp_path / "drawn.svg", tmp_path / "rows.json"
    arguments = ["sweep", str(tmp_path / "m.onnx"), "--machine", "mini", "--executor", "threads"]
    arguments += ["--set", "lm_words=256,512,7", "--draw", str(drawn), "--json", str(table)]
    arguments += ["-O", "strict=true"]  # otherwise the host runs what has no room
    model_commands.commands.main(arguments, standalone_mode=False)
    printed = capsys.readouterr().out
    found = json.loads(table.read_text())["rows"]
    assert [row["values"]["lm_words"] for row in found] == [256, 512, 7]
    assert all(str(row["cycles"]) in printed for row in found[:2])
    assert found[2]["status"].startswith("P0")
    shown = ElementTree.fromstring(drawn.read_text())
    titles = [one.text for one in shown.iter() if one.tag.endswith("title")]
    for row in found[:2]:
        assert any(f"{row['cycles']:,}" in (title or "") for title in titles)
    assert len(titles) == 2 * (2 + len(found[0]["words"]))


def test_the_executor_of_a_caller() -> None:
    base = load_target("mini")
    grid = points(base, [parse_axis("lm_words=256", base)])
    with ThreadPoolExecutor(1) as pool, Workers(pool) as workers:
        ((_, row),) = rows(small().SerializeToString(), grid, parse_options({}), workers)
    assert row["status"] == "ok"


def test_a_folder_of_the_environment_is_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMU2_SPEC_PATH", str(tmp_path))
    model, options = small(), parse_options({})
    keys = set()
    for words in (256, 128):
        text = description(load_target("mini"), {"lm_words": words})
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / "a.toml").write_text(text)
        load_target.cache_clear()
        keys.add(cache_key(model, load_target("mine"), options))
    load_target.cache_clear()
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("cycles", "wanted"),
    [
        ((2364, 4196), {"3,000", "4,000"}),
        ((1, 100_000), {"1", "10", "100", "1,000", "10,000", "100,000"}),
        ((45_568, 45_568), {"42,000", "50,000"}),
    ],
)
def test_ticks_of_a_sweep_are_round_numbers(cycles: tuple[int, int], wanted: set[str]) -> None:
    found = [
        {"values": {"a": k}, "status": "ok", "cycles": own, "factor": 2.0, "words": {}}
        for k, own in enumerate(cycles)
    ]
    drawn = ElementTree.fromstring(picture(found, [("a", (0, 1))], "t"))
    assert wanted <= {one.text for one in drawn.iter() if one.tag.endswith("text")}
