"""The graph representation: values, nodes, layouts, dtypes, text form and verifier."""

from .dtypes import MNDtype
from .graph import Location, MNGraph, MNNode, MNValue, Side, Stage, TensorType
from .layout import Broadcast, Layout, Level, PadLayout, SubAxis
from .layout_text import parse_layout, parse_pad_layout
from .text import parse_graph, print_graph

__all__ = [
    "Broadcast",
    "Layout",
    "Level",
    "Location",
    "MNDtype",
    "MNGraph",
    "MNNode",
    "MNValue",
    "PadLayout",
    "Side",
    "Stage",
    "SubAxis",
    "TensorType",
    "parse_graph",
    "parse_layout",
    "parse_pad_layout",
    "print_graph",
]
