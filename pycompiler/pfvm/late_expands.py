"""An Expand moves behind the elementwise operators that follow it, or goes away.

The gradient of a mean is one number for all elements, and torch spreads it before it works on it.
An elementwise operator spreads its operands itself. So an Expand goes away in front of operators
whose other operands already have the shape, and moves behind those that then work on fewer
elements. Every element is computed from the same numbers as before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from .replacing import DOMAINS, shape_of

#: Elementwise operators that spread all their operands.
_COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
_SPREADING = {"Add", "Sub", "Mul", "Div", "Pow", "Where", "And", "Or", "Xor", *_COMPARISONS}
#: Elementwise operators of one operand, and of numbers as attributes.
_ALONE = {"Abs", "Cast", "Exp", "Log", "Neg", "Not", "Relu", "Sigmoid", "Sqrt", "Tanh"}


def expand_late(model: ir.Model) -> None:
    """Move or drop the Expands of the main graph, in place."""
    graph = model.graph
    waiting = [node for node in graph if node.op_type == "Expand" and node.domain in DOMAINS]
    while waiting:
        node = waiting.pop(0)
        source, spread = node.inputs[0], node.outputs[0]
        shape, wide = shape_of(source), shape_of(spread)
        if source is None or shape is None or wide is None or spread.is_graph_output():
            continue
        users = list(dict.fromkeys(use.node for use in spread.uses()))
        for user in users:
            out = _without(user, spread, shape, graph)
            if out is None:
                continue
            if out == shape_of(user.outputs[0]):
                _read(user, spread, source)
            elif len(users) == 1 and shape_of(user.outputs[0]) == wide:
                waiting.append(_moved(graph, node, user, out))
        if not spread.uses():
            graph.remove(node, safe=True)


def _without(
    user: ir.Node, spread: ir.Value, shape: Sequence[int], graph: ir.Graph
) -> tuple[int, ...] | None:
    """Return the shape of a reader's result if it reads the Expand's input; None if it may not."""
    if user.graph is not graph or user.domain not in DOMAINS:
        return None
    if user.op_type not in _SPREADING | _ALONE or len(user.outputs) != 1:
        return None
    shapes = [shape if one is spread else shape_of(one) for one in user.inputs]
    known = [one for one in shapes if one is not None]
    if len(known) < len(shapes) or shape_of(user.outputs[0]) is None:
        return None
    return tuple(np.broadcast_shapes(*(tuple(one) for one in known)))


def _read(user: ir.Node, before: ir.Value, after: ir.Value) -> None:
    for number, one in enumerate(user.inputs):
        if one is before:
            user.replace_input_with(number, after)


def _moved(graph: ir.Graph, expand: ir.Node, user: ir.Node, shape: tuple[int, ...]) -> ir.Node:
    """Put an Expand behind its reader, and return it; the result keeps its name."""
    old, source = user.outputs[0], expand.inputs[0]
    assert source is not None
    made = ir.node("Expand", [old, expand.inputs[1]], name=f"{user.name}.{expand.name}")
    made.metadata_props.update(user.metadata_props)
    wide = made.outputs[0]
    wide.shape, wide.type = old.shape, old.type
    old.replace_all_uses_with(wide, replace_graph_outputs=True)
    made.replace_input_with(0, old)
    _read(user, expand.outputs[0], source)
    graph.insert_after(user, made)
    old.name, wide.name = f"{old.name}.few", old.name
    old.shape = ir.Shape(shape)
    return made
