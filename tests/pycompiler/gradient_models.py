"""Models of the gradient of a convolution's weights, for tests."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

#: pictures, channels, channels of the result, places, kernel, stride, dilation, padding
Case = tuple[int, int, int, tuple[int, ...], tuple[int, ...], int, int, int]


def gradient_model(case: Case) -> tuple[onnx.ModelProto, dict[str, tuple[int, ...]]]:
    """Return a model that gives the gradient of the weights, and the shapes of its inputs."""
    pictures, ins, outs, places, kernel, stride, dilation, padding = case
    given = tuple(
        (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
        for size, taps in zip(places, kernel, strict=True)
    )
    shapes = {"x": (pictures, ins, *places), "g": (pictures, outs, *given)}
    axes, order = len(places), [1, 0, *range(2, len(places) + 2)]
    node = onnx.helper.make_node
    nodes = [
        node("Transpose", ["x"], ["xt"], name="n0", perm=order),
        node("Transpose", ["g"], ["gt"], name="n1", perm=order),
        node(
            "Conv",
            ["xt", "gt"],
            ["c"],
            name="n2",
            strides=[dilation] * axes,
            dilations=[stride] * axes,
            pads=[padding] * 2 * axes,
            kernel_shape=given,
        ),
        node("Slice", ["c", "starts", "ends", "axes"], ["y"], name="n3"),
    ]
    constants = {"starts": [0] * axes, "ends": kernel, "axes": range(2, axes + 2)}
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [info("y", onnx.TensorProto.FLOAT, (ins, outs, *kernel))],
        [numpy_helper.from_array(np.array(list(v)), name) for name, v in constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model, shapes


def wanted_gradient(x: np.ndarray, g: np.ndarray, case: Case) -> np.ndarray:
    """Return that gradient, computed tap by tap."""
    _, ins, outs, places, kernel, stride, dilation, padding = case
    pads = [(0, 0), (0, 0), *((padding, padding) for _ in places)]
    wide = np.pad(x.astype(np.float64), pads)
    out = np.zeros((ins, outs, *kernel))
    for tap in np.ndindex(*kernel):
        cut = tuple(
            slice(t * dilation, t * dilation + (count - 1) * stride + 1, stride)
            for t, count in zip(tap, g.shape[2:], strict=True)
        )
        part = wide[(slice(None), slice(None), *cut)].reshape(*x.shape[:2], -1)
        own = np.einsum("nip,nop->io", part, g.reshape(*g.shape[:2], -1).astype(np.float64))
        out[(slice(None), slice(None), *tap)] = own
    return out
