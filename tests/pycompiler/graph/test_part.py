"""A part of a graph: what it reads and makes for others are its inputs and outputs."""

from __future__ import annotations

from pycompiler.graph.graph import MNGraph
from pycompiler.graph.text import parse_graph

REST = (
    "type=float[2] num_lw=? padded_shape=? layout=? layout_kind=? "
    "dtype=Unknown gene=[,] loc=? addr=?"
)
CHAIN = "\n".join(
    f'{op}({source}) -> ({made}) node="{made}" on=MNCore source="net.py:1"\n'
    f"  in0 name={source} {REST}\n  out0 name={made} {REST}\n"
    for op, source, made in (
        ("Relu", "x", "a"),
        ("Neg", "a", "b"),
        ("Abs", "b", "c"),
        ("Exp", "b", "d"),
    )
)


def test_part() -> None:
    head = "graph g target=mini stage=IMPORTED\ninput x\noutput y = c\noutput z = d\n\n"
    graph: MNGraph = parse_graph(head + CHAIN)
    table = [
        (slice(0, 2), ("x",), [("b", "b")], {"x", "a", "b"}),
        (slice(1, 3), ("a",), [("b", "b"), ("c", "c")], {"a", "b", "c"}),
        (slice(3, 4), ("b",), [("d", "d")], {"b", "d"}),
    ]
    for nodes, inputs, outputs, values in table:
        part = graph.part(graph.nodes[nodes])
        assert (part.inputs, sorted(part.outputs)) == (inputs, outputs)
        assert (set(part.values), part.nodes) == (values, graph.nodes[nodes])
