"""The imported node that goes to the host when a planned one finds no room."""

from __future__ import annotations

import pytest

from pycompiler.errors import NoRoomError, error
from pycompiler.graph.graph import MNGraph, MNNode, MNValue, Side, TensorType
from pycompiler.planners.no_room import on_the_host

NAMES = ("n0_Slice", "n0_Slice.Reshape.1", "n1_Relu")


def problem_of(*rows: tuple[str, ...]) -> NoRoomError:
    facts = {"value": "v", "words": 600, "memory": "lm0", "capacity": 512, "shape": "(3)"}
    found = error("P0301", **facts, node=rows[0][0], nodes=rows)
    assert isinstance(found, NoRoomError)
    return found


@pytest.mark.parametrize(
    ("nodes", "chosen"),
    [
        (("n1_Relu",), "n1_Relu"),
        (("n0_Slice.Reshape.1.switch.y.Concat.own__1",), "n0_Slice.Reshape.1"),
        (("n0_Slice.switch.y",), "n0_Slice"),
        (("n1_ReluLike", "n1_Relu"), "n1_Relu"),
        (("n1_ReluLike",), None),
    ],
)
def test_the_imported_node(nodes: tuple[str, ...], chosen: str | None) -> None:
    """Names of switches and slices go on behind the name of their node, after a dot."""
    graph = MNGraph("g", "mini", nodes=tuple(MNNode(n, n, (), ()) for n in NAMES))
    made = on_the_host(graph, problem_of(nodes))
    if chosen is None:
        assert made is None
        return
    assert made is not None
    assert [node.name for node in made.nodes if node.side is Side.HOST] == [chosen]


def test_nodes_alike_go_together() -> None:
    """Not the one whose result another operator reads, nor the one of another shape."""
    shapes = {"x": 4, "a": 4, "b": 4, "c": 4, "y": 8, "d": 8, "p": 4, "q": 4, "r": 4, "s": 8}
    values = {n: MNValue(n, TensorType("float", (size,))) for n, size in shapes.items()}
    made = [("Softmax", "x", "a"), ("Softmax", "x", "b"), ("Softmax", "x", "c")]
    made += [("Softmax", "y", "d"), ("Relu", "a", "p"), ("Relu", "b", "q"), ("Tanh", "c", "r")]
    nodes = tuple(MNNode(f"n_{r}", op, (o,), (r,)) for op, o, r in [*made, ("Relu", "d", "s")])
    found = on_the_host(MNGraph("g", "mini", nodes=nodes, values=values), problem_of(("n_b",)))
    assert found is not None
    assert [node.name for node in found.nodes if node.side is Side.HOST] == ["n_a", "n_b"]


def test_one_node_of_each_row() -> None:
    """Each row is a place without room; one compile that fails is enough for all of them."""
    graph = MNGraph("g", "mini", nodes=tuple(MNNode(n, n, (), ()) for n in NAMES))
    found = on_the_host(graph, problem_of(("n1_Relu", "n0_Slice"), ("n9", "n0_Slice.switch.y")))
    assert found is not None
    assert [node.name for node in found.nodes if node.side is Side.HOST] == ["n0_Slice", "n1_Relu"]
