"""Keeps torch's optimiser from taking constants near 0 and 1 for 0 and 1.

It drops ``x + c`` if ``c`` is within 1e-8 of 0, and ``x * c`` if ``c`` is within 1e-5 of 1. So it
would drop the ``eps`` of a quotient.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnxscript.optimizer import fold_constants

#: Wider than the optimiser's tolerances, which are not part of its interface.
_NEAR = 1e-4


def lift_near_constants(model: ir.Model) -> list[str]:
    """Make each such constant an initializer of the main graph; return their names."""
    fold_constants(model)
    held = {name: value.const_value for name, value in model.graph.initializers.items()}
    found = [name for name, tensor in held.items() if tensor is not None and _near(tensor)]
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        tensor = ir.convenience.get_const_tensor(node.outputs[0]) if _constant(node) else None
        if tensor is None or not _near(tensor):
            continue
        old, data = node.outputs[0], ir.tensor(tensor.numpy())
        name, type_ = f"{old.name}.near{len(found)}", ir.TensorType(data.dtype)
        new = ir.Value(name=name, type=type_, shape=ir.Shape(data.shape.numpy()), const_value=data)
        model.graph.register_initializer(new)
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        assert node.graph is not None
        node.graph.remove(node, safe=True)
        found.append(name)
    return found


def _constant(node: ir.Node) -> bool:
    return node.op_type == "Constant" and node.domain in ("", "ai.onnx")


def _near(tensor: ir.TensorProtocol) -> bool:
    if tensor.size != 1 or not tensor.dtype.is_floating_point():
        return False
    value = float(np.asarray(tensor.numpy()).reshape(()).astype(np.float64))
    return any(value != whole and abs(value - whole) <= _NEAR for whole in (0.0, 1.0))
