"""Passes of parameters between L2Bs begin long before their readers; all else keeps its order."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from pycompiler.graph import (
    Level,
    Location,
    MNDtype,
    MNGraph,
    MNNode,
    MNValue,
    Side,
    Stage,
    TensorType,
    parse_layout,
)
from pycompiler.graph.plan import OnePass, Plan
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import load_target
from pycompiler.scheduler.early_crossings import cross_early

TARGET = load_target("mncore2")
#: One long word of each PE goes to all L2Bs.
APART, EVERYWHERE = (
    parse_layout(f"(({digits},8_L1B:1,16_MAB:1,4_PE:1,2_W:1){copies})")
    for digits, copies in (("8_L2B:1", ""), ("8:1", "; B@[L2B]"))
)
SIZE = 8 * 8 * 16 * 4 * 2
#: The layout of the values between which the passes move: long, so that a node takes many steps.
LONG = parse_layout(f"((64:8),({str(EVERYWHERE)[2:].partition(')')[0]}); B@[L2B])")


def graph_of(weights: int) -> MNGraph:
    """Return a chain of Neg nodes; behind them, each of ``weights`` passes and its reader."""
    shapes: dict[str, tuple[tuple[int, ...], object]] = {"x": ((64, SIZE), LONG)}
    nodes: list[MNNode] = []

    def add(op: str, inputs: tuple[str, ...], output: str, plan: Plan | None = None) -> None:
        nodes.append(MNNode(output, op, inputs, (output,), (), Side.DEVICE, segment=0, plan=plan))

    last = "x"
    for number in range(60):
        add("Neg", (last,), f"n{number}")
        shapes[f"n{number}"] = shapes["x"]
        last = f"n{number}"
    inputs = ["x"]
    for number in range(weights):
        source = f"w{number}"
        shapes[source] = (SIZE,), APART
        inputs.append(source)
        shapes[f"s{number}"] = shapes[f"r{number}"] = (SIZE,), EVERYWHERE
        add("MNCoreLayoutSwitch", (source,), f"s{number}", OnePass(Level.L2B))
        add("Neg", (f"s{number}",), f"r{number}")
    values = {
        name: MNValue(
            name, TensorType("float", shape), MNDtype.FLOAT, Location.LM0, layout, layout.num_lw(4)
        )
        for name, (shape, layout) in shapes.items()
    }
    outputs = tuple((f"r{number}", f"r{number}") for number in range(weights))
    return MNGraph(
        "g",
        "mncore2",
        Stage.LAYOUT,
        tuple(inputs),
        outputs,
        {},
        tuple(nodes),
        values,
    )


def test_a_pass_begins_long_before_its_reader() -> None:
    graph = graph_of(1)
    found = cross_early(graph, {}, TARGET)
    assert found is not None
    names = [node.name for node in found.nodes]
    others = [node.name for node in graph.nodes if node.name != "s0"]
    assert [name for name in names if name != "s0"] == others
    steps = {node.name: LAYERS[node.op].cost(node, graph, TARGET) for node in graph.nodes}
    between = sum(steps[name] for name in names[names.index("s0") + 1 : names.index("r0")])
    # Not at the very begin: what it makes would fill LM for nothing.
    assert names[0] != "s0"
    assert 10 * steps["s0"] < between < 20 * steps["s0"]


def test_passes_are_apart() -> None:
    found = cross_early(graph_of(3), {}, TARGET)
    assert found is not None
    places = [n for n, node in enumerate(found.nodes) if node.op == "MNCoreLayoutSwitch"]
    assert all(later - earlier > 1 for earlier, later in pairwise(places))
    assert [found.nodes[place].name for place in places] == ["s0", "s1", "s2"]


def test_passes_of_what_nodes_make_stay() -> None:
    assert cross_early(graph_of(0), {}, TARGET) is None
    graph = graph_of(1)
    # The switch now reads the end of the chain.
    nodes = tuple(replace(n, inputs=("n59",)) if n.name == "s0" else n for n in graph.nodes)
    assert cross_early(graph.with_values({}, nodes=nodes), {}, TARGET) is None


def test_a_pass_stays_in_its_segment() -> None:
    """Host nodes take no time, so the segment behind one begins at the same time."""
    graph = graph_of(1)
    host = 55
    nodes = tuple(
        replace(node, segment=(n > host) + (n >= host), side=Side.HOST if n == host else node.side)
        for n, node in enumerate(graph.nodes)
    )
    found = cross_early(graph.with_values({}, nodes=nodes), {}, TARGET)
    assert found is not None
    assert [node.segment for node in found.nodes] == [node.segment for node in nodes]
    assert found.nodes[host + 1].name == "s0"


def test_what_makes_a_new_value_stays() -> None:
    graph = graph_of(1)
    renewed = replace(graph, outputs=(*graph.outputs, ("w", "s0")))
    assert cross_early(renewed, {"w": "w0"}, TARGET) is None
