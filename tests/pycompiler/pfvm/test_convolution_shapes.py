"""Convolutions whose operands contradict each other are refused with one diagnostic."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled
from onnx import TensorProto, helper, numpy_helper

from pycompiler.errors import PycompilerError

IMAGE = (1, 4, 6, 6)
BAD: dict[str, tuple[str, tuple[int, ...], int | None, dict[str, Any], str]] = {
    "auto_pad": ("Conv", (4, 4, 3, 3), None, {"auto_pad": "SAME"}, "`auto_pad` is `SAME`"),
    "channels": ("Conv", (4, 3, 3, 3), None, {}, "4 channels"),
    "groups": ("Conv", (4, 3, 3, 3), None, {"group": 2}, "2 groups"),
    "rows": ("Conv", (5, 2, 3, 3), None, {"group": 2}, "2 groups"),
    "kernel": ("Conv", (4, 4, 3, 3), None, {"kernel_shape": [2, 2]}, "kernel (2, 2)"),
    "bias": ("Conv", (4, 4, 3, 3), 3, {}, "bias (3,)"),
    "transposed": ("ConvTranspose", (3, 4, 3, 3), None, {}, "4 channels"),
}


@pytest.mark.parametrize("case", BAD)
def test_contradictions(case: str) -> None:
    op, weights, bias, facts, said = BAD[case]
    constants = [numpy_helper.from_array(np.ones(weights, dtype=np.float32), "w")]
    if bias is not None:
        constants.append(numpy_helper.from_array(np.ones(bias, dtype=np.float32), "b"))
    reads = ["x", *(tensor.name for tensor in constants)]
    graph = helper.make_graph(
        [helper.make_node(op, reads, ["y"], name="node", **facts)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, IMAGE)],
        [helper.make_empty_tensor_value_info("y")],
        constants,
    )
    opset = helper.make_opsetid("", 20)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(model)
    model.graph.output[0].CopyFrom(inferred.graph.output[0])
    if not model.graph.output[0].type.tensor_type.HasField("shape"):
        shape = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 4, 4))
        model.graph.output[0].CopyFrom(shape)
    with pytest.raises(PycompilerError) as caught:
        compiled(model)
    assert caught.value.code == "P0112"
    assert said in str(caught.value)
