"""Models of nodes whose inputs and outputs have types of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]


def typed_model(
    nodes: Sequence[tuple[Any, ...]],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
) -> onnx.ModelProto:
    """Return a model of ``(op, inputs, output[, attributes])`` nodes, named like their outputs.

    ``inputs`` and ``outputs`` are arrays of the types of the model's values.
    """

    def info(name: str, array: Array) -> onnx.ValueInfoProto:
        elem = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, elem, array.shape)

    made = [
        helper.make_node(op, list(reads), [out], name=out, **(facts[0] if facts else {}))
        for op, reads, out, *facts in nodes
    ]
    graph = helper.make_graph(
        made,
        "g",
        [info(name, array) for name, array in inputs.items()],
        [info(name, array) for name, array in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
