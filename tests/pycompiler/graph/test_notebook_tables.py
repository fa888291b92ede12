"""Graphs and layouts as tables for notebooks."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pycompiler.graph import (
    Location,
    MNDtype,
    MNGraph,
    MNNode,
    MNValue,
    TensorType,
    parse_layout,
    parse_pad_layout,
)
from pycompiler.graph.html import MOST_ROWS


def rows(text: str) -> list[list[str]]:
    tree = ElementTree.fromstring(text)
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


LAYOUTS = [
    (
        "((10:3, 2_L1B:1), (3:1, 4_PE:1, 2_W:1); B@[MAB,L2B])",
        [
            ["", "elements", "L2B", "L1B", "MAB", "PE", "Addr", "W"],
            ["axis 0", "20", "", "2:1", "", "", "10:3", ""],
            ["axis 1", "24", "", "", "", "4:1", "3:1", "2:1"],
            ["copies", "", "", "", "all", "", "", ""],
            ["copies", "", "all", "", "", "", "", ""],
        ],
    ),
    (
        "((2_MAB:2, 8:5, 2_L1B:1); B@[2_MAB:1,...])",
        [
            ["", "elements", "L1B", "MAB", "Addr"],
            ["axis 0", "32", "2:1", "2:2", "8:5"],
            ["copies", "", "", "2:1", ""],
            ["copies elsewhere", "", "", "", ""],
        ],
    ),
    ("()", [["", "elements"]]),
]


@pytest.mark.parametrize(("text", "wanted"), LAYOUTS)
def test_a_layout_has_its_digits_by_level(text: str, wanted: list[list[str]]) -> None:
    assert rows(parse_layout(text)._repr_html_()) == wanted
    assert rows(parse_pad_layout(text)._repr_html_()) == wanted


def test_a_graph_has_a_row_for_each_node() -> None:
    layout = parse_layout("((4:1))")
    evil = "<script>&"
    out = MNValue(evil, TensorType("float", (4,)), MNDtype.FLOAT, Location.LM0, layout, 4, addr=8)
    nodes = [
        MNNode("n", "Relu", ("x",), (evil,), source="a.py:3"),
        MNNode("m", "Print", (evil,), ()),
    ]
    graph = MNGraph("g", "mini", nodes=tuple(nodes), values={evil: out})
    text = graph._repr_html_()
    assert "<script>" not in text
    assert rows(text)[1:] == [
        ["0", "Relu", "<script>& <- x", "float[4]", "LM0 8", "((4:1))", "a.py:3"],
        ["1", "Print", " <- <script>&", "", "", "", ""],
    ]
    many = MNGraph("g", "mini", nodes=tuple(nodes[:1] * (MOST_ROWS + 3)), values={evil: out})
    assert "3 more rows" in many._repr_html_()
