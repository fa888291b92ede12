"""Edits of a graph, against the nodes that should be there."""

from __future__ import annotations

from dataclasses import replace

from pycompiler.graph import MNGraph, MNNode
from pycompiler.graph.draft import Edit
from pycompiler.graph.graph import MNValue, TensorType


def value(name: str) -> MNValue:
    return MNValue(name, TensorType("float", (4,)))


def node(name: str, reads: str, makes: str) -> MNNode:
    return MNNode(name, "Add", tuple(reads), tuple(makes), source="net.py:3", segment=1)


GRAPH = MNGraph(
    "g",
    "mini",
    inputs=("a",),
    outputs=(("y", "d"),),
    nodes=(node("one", "a", "b"), node("two", "bb", "c"), node("three", "cb", "d")),
    values={name: value(name) for name in "abcd"},
)


def shown(graph: MNGraph) -> list[str]:
    return [f"{n.name} {''.join(n.inputs)}>{''.join(n.outputs)}" for n in graph.nodes]


def test_nothing_changes_without_changes() -> None:
    assert Edit().of(GRAPH) == GRAPH


def test_readers_are_named_once_and_in_order() -> None:
    readers = {name: [one.name for one in own] for name, own in GRAPH.readers().items()}
    assert readers == {"a": ["one"], "b": ["two", "three"], "c": ["three"]}


def test_nodes_come_before_and_behind_and_are_read_instead() -> None:
    edit = Edit()
    edit.values["e"] = value("e")
    edit.before["three"].append(MNNode("new", "Neg", ("c",), ("e",)).near(GRAPH.nodes[0]))
    edit.behind["three"].append(node("last", "d", "f"))
    edit.inputs["three", "c"] = "e"
    found = edit.of(GRAPH)
    assert shown(found) == ["one a>b", "two bb>c", "new c>e", "three eb>d", "last d>f"]
    assert (found.nodes[2].source, found.nodes[2].segment) == ("net.py:3", 1)
    assert set(found.values) == set("abcde")


def test_values_go_with_what_makes_them() -> None:
    edit = Edit()
    edit.gone |= {"one", "two"}
    edit.instead["three"] = replace(GRAPH.nodes[2], op="Sum", inputs=("a",))
    # One of the nodes stands elsewhere now.
    edit.behind["three"].append(GRAPH.nodes[0])
    found = edit.of(GRAPH)
    assert shown(found) == ["three a>d", "one a>b"]
    assert set(found.values) == set("abd")
