"""Models of one node, and random values for their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def one_node(
    op: str,
    inputs: dict[str, tuple[int, ...]],
    constants: dict[str, np.ndarray],
    outputs: int = 1,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node that reads ``inputs``, then ``constants``."""
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, [*inputs, *constants], names, name="node", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in names],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for index in range(outputs):
        model.graph.output[index].CopyFrom(inferred.graph.output[index])
    return model


def values(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, np.ndarray]:
    """Standard normal values of these shapes."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
