"""A switch without passes: the diagnostic names the nodes of the model around it."""

from __future__ import annotations

import pytest

from pycompiler.errors import NoSwitchError
from pycompiler.graph import MNDtype, parse_layout
from pycompiler.graph.graph import MNGraph, MNNode, MNValue, TensorType
from pycompiler.layers.half_conversions import AXIS, NARROW
from pycompiler.layers.switch.layer import SWITCH
from pycompiler.machine import load_target
from pycompiler.planners.switch_insertion import resolve_switches

SOURCE = "((2_L1B:1), (25:32, 2_MAB:1, 2_PE:2, 2_PE:1, 2_W:1), (2:16, 2:8, 2:4, 2:2, 2:1, 2_MAB:2))"
RESULT = "((2:400), (200:2, 2_L1B:1), (2_MAB:2, 2_MAB:1, 2_PE:2, 2_PE:1, 2:1, 2_W:1))"

HALVES = "((2:400), (200:2, 2_L1B:1), (2_MAB:2, 2_MAB:1, 2_PE:2, 2_PE:1, 4_W:1))"


def test_the_rounding_of_an_operand_is_passed_over() -> None:
    """No one can move the rounding to the host, but the product behind it."""
    target, shape = load_target("mini"), (2, 400, 64)
    layouts = {"x": SOURCE, "a": SOURCE, "b": RESULT}
    values = {
        name: MNValue(name, TensorType("float", shape), MNDtype.FLOAT, layout=parse_layout(text))
        for name, text in layouts.items()
    }
    for name in ("c", "y"):
        values[name] = MNValue(
            name, TensorType("float", shape), MNDtype.HALF, layout=parse_layout(HALVES)
        )
    nodes = (
        MNNode("neg", "Neg", ("x",), ("a",)),
        MNNode("s", SWITCH, ("a",), ("b",)),
        MNNode("r", NARROW, ("b",), ("c",), ((AXIS, 2),)),
        MNNode("relu", "Relu", ("c",), ("y",)),
    )
    graph = MNGraph("g", target.name, nodes=nodes, values=values)
    with pytest.raises(NoSwitchError) as caught:
        resolve_switches(graph, target, ())
    assert caught.value.fields["nodes"] == (("relu", "neg"),)


def test_all_places_are_named() -> None:
    """A compile that fails is enough for all of them: networks have many."""
    target, shape = load_target("mini"), (2, 400, 64)
    layouts = {"x": SOURCE, "a": RESULT, "b": RESULT, "y": RESULT, "z": RESULT}
    values = {
        name: MNValue(name, TensorType("float", shape), MNDtype.FLOAT, layout=parse_layout(text))
        for name, text in layouts.items()
    }
    nodes = (
        MNNode("s", SWITCH, ("x",), ("a",)),
        MNNode("neg", "Neg", ("a",), ("y",)),
        MNNode("t", SWITCH, ("x",), ("b",)),
        MNNode("relu", "Relu", ("b",), ("z",)),
    )
    graph = MNGraph("g", target.name, nodes=nodes, values=values)
    with pytest.raises(NoSwitchError) as caught:
        resolve_switches(graph, target, ())
    assert caught.value.fields["nodes"] == (("neg",), ("relu",))
