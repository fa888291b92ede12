"""ResNet-18 for pictures of 32x32, batch 4, with its norms folded into the convolutions."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pycompiler.pfvm.prepare import prepare

BATCH, SIDE, CLASSES = 4, 32, 10
#: Channels of the stages; each has two blocks, and all but the first begin with stride 2.
STAGES = (64, 128, 256, 512)


def resnet18() -> onnx.ModelProto:
    """Return the network; its weights are zeros."""
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def made(op: str, inputs: list[str], name: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def weight(name: str, *shape: int) -> str:
        weights.append(numpy_helper.from_array(np.zeros(shape, np.float32), name))
        return name

    def convolution(x: str, name: str, given: int, out: int, kernel: int, stride: int) -> str:
        operands = [x, weight(f"{name}.w", out, given, kernel, kernel), weight(f"{name}.b", out)]
        pad, strides = kernel // 2, (stride, stride)
        return made("Conv", operands, name, pads=(pad,) * 4, strides=strides)

    y = made("Relu", [convolution("x", "stem", 3, STAGES[0], 3, 1)], "stem.relu")
    given = STAGES[0]
    for stage, out in enumerate(STAGES):
        for block in range(2):
            name, stride = f"s{stage}.b{block}", 2 if stage and not block else 1
            first = convolution(y, f"{name}.conv1", given, out, 3, stride)
            first = made("Relu", [first], f"{name}.relu1")
            second = convolution(first, f"{name}.conv2", out, out, 3, 1)
            changes = stride > 1
            short = convolution(y, f"{name}.short", given, out, 1, stride) if changes else y
            y = made("Relu", [made("Add", [second, short], f"{name}.sum")], f"{name}.relu2")
            given = out
    y = made("Flatten", [made("GlobalAveragePool", [y], "pool")], "flat")
    operands = [y, weight("last.w", CLASSES, given), weight("last.b", CLASSES)]
    made("Gemm", operands, "logits", transB=1)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (BATCH, 3, SIDE, SIDE))
    out_info = helper.make_tensor_value_info("logits", TensorProto.FLOAT, (BATCH, CLASSES))
    graph = helper.make_graph(nodes, "resnet18", [x], [out_info], weights)
    return prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
