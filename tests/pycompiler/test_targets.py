"""The table of the compiler's targets, on a small machine and small networks."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import onnx
import pytest
from compiling import model_of
from rich.console import Console

from pycompiler.errors import error

FOLDER = Path(__file__).parents[2] / "benches"


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module ``benches/targets.py``."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import targets

    assert Path(str(targets.__file__)).parent == FOLDER
    return targets


def test_rows_say_what_is_met(targets: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets.targets_streaming, "MACHINE", "mini")

    def small() -> onnx.ModelProto:
        return model_of([("Softmax", ["x"], "y")], {"x": (64, 64)}, ["y"])

    rows = [
        *targets.spilled(layers=2, batch=8, width=32, machine="mini"),
        *targets.compile_time(layers=2, batch=8, width=32, machine="mini"),
        *targets.packed(),
        targets.targets_streaming.measure(("softmax", small, 4096, 0.25, None)),
    ]
    assert all(isinstance(row["met"], bool) for row in rows)
    assert [row["met"] for row in rows[:3]] == [True, True, True]
    assert 0 < rows[0]["ratio"] <= targets.SPILLED
    for row in rows[3:]:
        assert row["ratio"] == row["bound"] / row["value"]
    console = Console(width=200, record=True, file=sys.stderr)
    console.print(
        targets.table([*rows, {"name": "none", "value": None, "target": "", "met": False}])
    )
    text = console.export_text()
    assert text.count("not met") >= 1
    assert all(row["name"].split(",")[0] in text for row in rows)


@pytest.mark.long
def test_a_layer_has_a_row(targets: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    layers = targets.targets_layers
    small = layers.encoder(16, 2, 2, 6, 1e6)
    row = layers.measured(small, "mixed", "mini")
    assert row["ratio"] == row["value"] / row["bound"] >= 1
    assert row["met"]
    # Other rows from the same compile: a target that is missed, and a mode without a target.
    facts = {"cycles": row["value"], "bound": {"cycles": row["bound"]}, "cycle_shares": {}}
    monkeypatch.setattr(layers, "report_of", lambda *_: facts)
    assert not layers.measured(replace(small, most=0.5), "mixed", "mini")["met"]
    assert layers.measured(replace(small, most=0.5), "float", "mini")["met"]


@pytest.mark.long
def test_training_has_rows(targets: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLSDK_DEVICE", "emu2")
    rows = list(targets.targets_training.rows(pictures=1280, test_pictures=250))
    assert len(rows) == 4
    assert all(row["ratio"] == row["value"] / row["bound"] for row in rows)
    assert rows[0]["ratio"] >= 1
    assert rows[-1]["value"] > 0.5
    assert not rows[-1]["met"]  # twenty steps are too few


@pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="runs in `make test-long`")
def test_a_gpt_has_rows(targets: ModuleType) -> None:
    sizes = "--layers 1 --width 8 --heads 2 --sequence 4 --batch 2 --device emu2:mini"
    single, mixed = targets.targets_training.gpt_rows(2, *sizes.split())
    assert single["bound"] == 0.02 < mixed["bound"]
    assert single["met"]
    assert mixed["met"]


@pytest.mark.parametrize(
    # A batch of no pictures cannot train.
    "batch",
    [1, pytest.param(0, marks=pytest.mark.long)],
)
def test_a_script_that_fails_is_not_met(
    targets: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, batch: int
) -> None:
    if batch:
        (tmp_path / "resnet20.py").write_text("raise SystemExit('it fails')")
        monkeypatch.setattr(targets.targets_training, "SCRIPTS", tmp_path)
    (row,) = targets.targets_training.resnet_rows(1, batch)
    assert row["value"] is None
    assert not row["met"]


@pytest.mark.long
def test_a_training_step_has_its_words(targets: ModuleType) -> None:
    (row,) = targets.targets_memory.rows(layers=1, batch=5, width=24, machine="mini")
    assert 0 < row["value"] < row["bound"]
    assert row["ratio"] == row["value"] / row["bound"]
    assert row["met"] == (row["ratio"] <= 0.25)


def test_what_cannot_be_compiled_is_not_met(
    targets: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error("P0302", words=1, memory="dram", capacity=0)

    for module in targets.PARTS:
        monkeypatch.setattr(module, "rows", refuse)
    for name in ("report_of", "compile_time"):
        monkeypatch.setattr(targets, name, refuse)
    monkeypatch.setattr(targets, "LONG", ())
    rows = list(targets.all_rows(None))
    refused = [row for row in rows if "P0302" in row["name"]]
    # All but the address search, which does not compile.
    assert len(refused) == len(rows) - 1 == len(targets.PARTS) + 2
    assert all(row["value"] is None and row["met"] is False for row in refused)


def test_an_unsolved_instance_is_not_met(
    targets: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,lower,upper,size\n0,0,2,700000\n1,1,3,700000\n")
    (row,) = targets.packed(tmp_path)
    assert not row["met"]
    assert row["name"] == "address search, 0 of 1 public instances solved"


def test_presets_are_compared(targets: ModuleType) -> None:
    import compare_presets as compare

    def row(name: str, *cycles: int) -> dict[str, object]:
        return {
            "name": name,
            "mode": "float",
            "problem": "",
            "cycles": dict(zip("AB", cycles, strict=False)),
        }

    fewer = [row(f"m{number}", 10, 9) for number in range(4)]
    for rows, met, good in (
        ([*fewer, row("same", 7, 7)], True, True),
        ([*fewer, row("same", 7, 7), row("too", 7, 7)], False, True),
        ([*fewer, row("worse", 7, 8)], False, False),
        ([*fewer, row("failed")], True, True),
        ([row("failed")], False, True),
    ):
        text, none_more = compare.summary(rows, "AB")
        assert (text.splitlines()[0].endswith(": met"), none_more) == (met, good)
        assert ("more: worse" in text) is not good
        assert compare.table(rows, "AB").row_count == len(rows)
    found = compare.measure("own:nothing", "float", "mini", ("O1", "O3"))
    assert found["cycles"] == {}
    assert found["problem"]


@pytest.mark.long
def test_simulation_has_rows(targets: ModuleType) -> None:
    simulation = targets.targets_simulation
    row = simulation.words_row(
        "small", simulation.of_perceptron(3, 8, 24, "mini"), sa_expected_run_iters=200
    )
    assert row["ratio"] <= 1
    assert row["met"]
    made = simulation.of_perceptron(2, 8, 16, "mini")
    row = simulation.cached_row("small", made)
    assert row["ratio"] > 1
    graph, target = simulation._graph(made), made[0].device.device.target
    assert 0 <= simulation.error_row("small", graph, target)["value"] < 1
    assert simulation.workers_row("small", graph, target, "fast")["ratio"] > 0


def test_plugins(targets: ModuleType) -> None:
    plugins = targets.targets_plugins
    cycles, *allocations = plugins.rows("mini", plugins.NETWORKS[2:])
    assert cycles["met"]
    assert cycles["bound"] < cycles["value"]
    assert [row["unit"] for row in allocations] == ["us", "us"]
    assert all(row["value"] > 0 for row in allocations)
