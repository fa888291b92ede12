"""Transposed convolutions as convolutions of the phases that read anything."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
import torch
from compiling import with_seeds
from onnx import TensorProto, helper, numpy_helper

from pycompiler.machine import load_target
from pycompiler.pfvm.lower import lower
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

_FORMS = (
    torch.nn.functional.conv_transpose1d,
    torch.nn.functional.conv_transpose2d,
)


def _model(
    image: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, facts: dict[str, list[int]]
) -> onnx.ModelProto:
    constants = [numpy_helper.from_array(weights, "w")]
    if bias is not None:
        constants.append(numpy_helper.from_array(bias, "b"))
    reads = ["x", *(one.name for one in constants)]
    graph = helper.make_graph(
        [helper.make_node("ConvTranspose", reads, ["y"], name="node", **facts)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, image.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )
    opset = helper.make_opsetid("", 20)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def _lowered(model: onnx.ModelProto, image: np.ndarray) -> tuple[onnx.ModelProto, np.ndarray]:
    found = lower(optimise(model), load_target("mncore2"))
    return found, HostSession(found, "found").run({"x": image})["y"]


def _check(seed: int) -> None:
    rng = random.Random(seed)
    rank = rng.choice([1, 2])
    batch, ins, outs = rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 3)
    taps = [rng.randint(1, 4) for _ in range(rank)]
    strides, dilations = ([rng.randint(1, most) for _ in range(rank)] for most in (5, 3))
    reach = [(n - 1) * step + 1 for n, step in zip(taps, dilations, strict=True)]
    pads = [rng.randint(0, min(2, end - 1)) for end in reach]
    more = [rng.randint(0, step - 1) for step in strides]
    draw = np.random.default_rng(seed)
    sizes = [rng.randint(2, 6) for _ in range(rank)]
    image = draw.integers(-9, 10, (batch, ins, *sizes)).astype(np.float32)
    weights = draw.integers(-9, 10, (ins, outs, *taps)).astype(np.float32)
    bias = draw.integers(-9, 10, outs).astype(np.float32) if rng.random() < 0.5 else None
    wanted = _FORMS[rank - 1](
        torch.from_numpy(image),
        torch.from_numpy(weights),
        None if bias is None else torch.from_numpy(bias),
        strides,
        pads,
        more,
        1,
        dilations,
    ).numpy()
    facts = {"strides": strides, "dilations": dilations, "pads": pads * 2, "output_padding": more}
    _, found = _lowered(_model(image, weights, bias, facts), image)
    assert (found == wanted).all()


def test_values() -> None:
    """Whole numbers have exact sums; strides exceed the taps in half of the cases."""
    with_seeds(_check, 20, 400)


@pytest.mark.parametrize(
    ("taps", "stride", "padding", "phases"),
    [(1, 2, 0, 1), (2, 5, 0, 4), (3, 2, 1, 4), (3, 4, 1, 9), (4, 4, 0, 16)],
)
def test_phases_that_read_nothing_are_not_computed(
    taps: int, stride: int, padding: int, phases: int
) -> None:
    """They are zeros: the convolution has as many channels as there are others."""
    image, weights = np.ones((1, 3, 5, 5), np.float32), np.ones((3, 7, taps, taps), np.float32)
    facts = {"strides": [stride] * 2, "pads": [padding] * 4}
    found, _ = _lowered(_model(image, weights, None, facts), image)
    shapes = {one.name: one.type.tensor_type.shape for one in found.graph.value_info}
    products = [node for node in found.graph.node if node.op_type in ("Conv", "MatMul", "Gemm")]
    rows = {shapes[node.output[0]].dim[1].dim_value for node in products}
    assert rows == {7 * phases}
