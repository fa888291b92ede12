"""Node simulation: costs from code, estimates near them, one outcome per kind of node."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from compiling import compiled, context, model_of, sampled

from pycompiler.graph.graph import Location, MNGraph
from pycompiler.graph.text import parse_graph
from pycompiler.machine import load_target
from pycompiler.simulation.graph_costs import simulate_graph
from pycompiler.simulation.outcome import Outcome, outcome_of
from pycompiler.simulation.settings import BEST, DEFAULT, FAKE, FAST, FULL, own_setting, settings_of

WEIGHTS = {"w": np.ones((24, 40), np.float32), "u": np.ones((40, 24), np.float32)}
NODES = [
    ("MatMul", ["x", "w"], "a"),
    ("Exp", ["a"], "b"),
    ("Add", ["a", "b"], "c"),
    ("MatMul", ["c", "u"], "d"),
    ("Add", ["d", "x"], "e"),
    ("Add", ["e", "x"], "y"),
]


@pytest.fixture(scope="module")
def graph() -> MNGraph:
    """Return a graph with layouts; two of its nodes are alike."""
    model = model_of(NODES, {"x": (30, 24)}, ["y"], WEIGHTS)
    return parse_graph(compiled(model)[0].dumps["layout.slices.txt"])


TARGET = load_target("mini")


def test_modes_try_more_and_more(graph: MNGraph) -> None:
    counts = {}
    for mode in (FAST, DEFAULT, BEST, FULL):
        found = simulate_graph(graph, TARGET, mode)
        counts[mode] = sum(len(own) for own in found.nodes.values())
        for node in graph.device_nodes():
            assert found.nodes[node.name][0][0] == own_setting(node, graph)
            own = found.own(node.name)
            assert not own.refused
            assert not own.estimated
            assert own.cycles >= own.steps
            assert max((count for _, count in own.busy), default=0) <= own.steps
    assert counts[FAST] == len(list(graph.device_nodes()))
    assert counts[FAST] < counts[DEFAULT] < counts[BEST] < counts[FULL]


def test_equal_nodes_are_simulated_once() -> None:
    nodes = [("Exp", ["x"], "a"), ("Exp", ["z"], "b"), ("Add", ["a", "b"], "y")]
    model = model_of(nodes, {"x": (30, 24), "z": (30, 24)}, ["y"])
    graph = parse_graph(compiled(model)[0].dumps["layout.slices.txt"])
    found = simulate_graph(graph, TARGET, FAST)
    alike = [node.name for node in graph.nodes if node.op == "Exp"]
    assert len(alike) == 2
    assert len({found.nodes[name][0][1] for name in alike}) == 1
    assert found.json()["simulated"] == len(found.outcomes)


def test_costs_are_those_of_the_program() -> None:
    """Test that a program of one node takes the cycles of its simulated parts."""
    model = model_of([("Exp", ["x"], "y")], {"x": (30, 24)}, ["y"])
    result, report = compiled(
        model, simulation_mode="fast", emit="concat", scheduler="always_from_dram"
    )
    graph = parse_graph(result.dumps["layout.slices.txt"])
    found = simulate_graph(graph, TARGET, FAST)
    node = next(node for node in graph.nodes if node.op == "Exp")
    row = next(row for row in report["nodes"] if row["op"] == "Exp")
    own = found.own(node.name)
    assert own.steps == row["steps"]
    words = [found.move("MNCoreDownload", "x").read, found.move("MNCoreUpload", "y").written]
    assert words == list(report["dram_words"].values())
    size = graph.values["x"].num_lw
    assert sorted((own.lm0, own.lm1)) == [size, size]


def test_what_lives_on_in_place_costs_a_copy(graph: MNGraph) -> None:
    found = simulate_graph(graph, TARGET, DEFAULT)
    pairs = [dict(found.settings(node.name)) for node in graph.nodes if node.op == "Add"]
    kept = 0
    for own in pairs:
        for setting, outcome in own.items():
            if setting.keeps:
                kept += 1
                (plain,) = (o for s, o in own.items() if not s.keeps)
                assert outcome.steps > plain.steps
                assert outcome.lm0 + outcome.lm1 > plain.lm0 + plain.lm1
    assert kept


@pytest.mark.parametrize("mode", sampled(["float", "mixed"]))
def test_estimates_are_near(mode: str) -> None:
    """Test the median error of the estimates of a network's nodes."""
    model = model_of(NODES, {"x": (400, 24)}, ["y"], WEIGHTS)
    result, _ = compiled(model, float_dtype=mode)
    graph = parse_graph(result.dumps["layout.slices.txt"])
    real, guessed = (simulate_graph(graph, TARGET, mode) for mode in (FAST, FAKE))
    errors = []
    for name in real.nodes:
        wanted, own = real.own(name), guessed.own(name)
        assert own.estimated
        errors.append(abs(own.cycles - wanted.cycles) / max(wanted.cycles, 1))
    assert median(errors) <= 0.1
    for key in real.moves:
        assert real.move(*key).read == guessed.move(*key).read
        assert real.move(*key).written == guessed.move(*key).written


def test_layers_refuse_banks() -> None:
    """Test that a setting that a layer does not accept is not tried."""
    table = {"t": np.ones((6, 24), np.float32)}
    constants = {**table, "i": np.array([3, 1], np.int64)}
    model = model_of([("Add", ["t2", "x"], "y")], {"x": (1, 24), "t2": (6, 24)}, ["y"], constants)
    graph = parse_graph(compiled(model)[0].dumps["layout.slices.txt"])
    (node,) = (node for node in graph.nodes if node.op == "Add")
    tried = settings_of(node, graph, TARGET, BEST)
    assert len(tried) == len(set(tried))
    for one in tried:
        if one.inplace is not None:
            assert one.outputs[0] is one.inputs[one.inplace]
        assert set(one.outputs) <= {Location.LM0, Location.LM1}


@pytest.mark.parametrize("wrong", [None, 3, {}, {"key": "k"}])
def test_nonsense_is_no_outcome(wrong: object) -> None:
    good = Outcome("k", steps=1, busy=(("alu", 1),)).json()
    assert outcome_of(good, "k") == Outcome("k", steps=1, busy=(("alu", 1),))
    for bad in (wrong, {**good, "steps": 1.5}, {**good, "busy": 3}, {**good, "cycles": True}):
        with pytest.raises(ValueError, match=r"it is no outcome|impossible"):
            outcome_of(bad, "k")


@pytest.mark.parametrize("mode", [FAKE, BEST])
def test_a_compile_writes_its_results(mode: str, tmp_path: Path) -> None:
    import torch

    context("emu2:mini").compile(
        lambda d: {"y": torch.relu(d["x"]) + d["x"]},
        {"x": torch.ones(6, 8)},
        tmp_path / "out",
        options={"simulation_mode": mode, "scheduler": "auto_recompute_sa"},
    )
    found = json.loads((tmp_path / "out" / "simulation_result.json").read_text())
    assert found["mode"] == mode
    assert {node for node, own in found["nodes"].items() if own}
    assert found["simulated"] == len(found["outcomes"])
