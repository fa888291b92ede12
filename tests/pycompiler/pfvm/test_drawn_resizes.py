"""Resize in every mode, against onnxruntime, on drawn sizes, scales, regions and axes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import onnxruntime
from compiling import compiled, run, with_seeds
from numpy.typing import NDArray
from onnx import helper

_SCALES = (1.3, 0.7, 2.5, 1.7, 0.3, 1.1, 2.0, 3.0, 0.9, 1.0)
_WAYS = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"),
    "tf_crop_and_resize",
)
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_Part = tuple[onnx.NodeProto, onnx.ValueInfoProto, list[onnx.TensorProto]]


def drawn(draw: random.Random, name: str) -> tuple[_Part, tuple[int, ...]] | None:
    """Return a Resize and the shape of its input; None for a draw that onnxruntime treats alone."""
    axes = draw.randint(1, 2)
    shape = (1, draw.choice([1, 2]), *(draw.choice([1, 2, 3, 5, 7, 9, 13]) for _ in range(axes)))
    mode = draw.choice(["nearest", "nearest", "linear", "cubic"][: 4 if axes == 2 else 3])
    way = draw.choice(_WAYS)
    scales = [draw.choice([*_SCALES, draw.uniform(0.3, 3)]) for _ in range(axes)]
    sizes = shape[2:]
    goal = [int(np.float32(s) * np.float32(n)) for s, n in zip(scales, sizes, strict=True)]
    facts: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": way}
    if mode == "nearest":
        facts["nearest_mode"] = draw.choice(_ROUNDINGS)
    if mode == "cubic":
        facts["exclude_outside"] = draw.randint(0, 1)
        facts["cubic_coeff_a"] = draw.choice([-0.75, -0.5])
    use = draw.choice(["scales", "scales", "sizes", "policy"])
    if mode != "nearest" and way in ("half_pixel", "pytorch_half_pixel"):
        facts["antialias"] = int(draw.random() < 0.3)
    chosen = list(range(2, 2 + axes))
    if use == "policy":
        facts["keep_aspect_ratio_policy"] = draw.choice(["not_larger", "not_smaller"])
    elif draw.random() < 0.5:
        chosen = list(range(2 + axes))
    if len(chosen) == axes:
        facts["axes"] = chosen
    rest, held = [1.0] * (len(chosen) - axes), []
    reads = [f"{name}.x", "", f"{name}.scales"]
    if way == "tf_crop_and_resize":
        first, last = ([draw.uniform(a, a + 0.6) for _ in sizes] for a in (-0.2, 0.6))
        region = [*(0.0 for _ in rest), *first, *rest, *last]
        reads[1], facts["extrapolation_value"] = f"{name}.roi", 0.5
        held.append(onnx.numpy_helper.from_array(np.array(region, np.float32), reads[1]))
    if use == "scales":
        array: NDArray[Any] = np.array([*rest, *scales], np.float32)
    else:
        reads[2:] = ["", f"{name}.sizes"]
        array = np.array([*shape[: len(rest)], *goal], np.int64)
    held.append(onnx.numpy_helper.from_array(array, reads[-1]))
    # onnxruntime takes regions of other axes then. Its places of `half_pixel_symmetric` fall on
    # other sides of a rounding.
    if 0 in goal or (way == "tf_crop_and_resize" and use == "policy"):
        return None
    if way == "half_pixel_symmetric" and mode == "nearest":
        return None
    # torch centres an antialiased filter for one result, onnxruntime begins at 0.
    if facts.get("antialias") and way == "pytorch_half_pixel" and 1 in goal:
        return None
    node = helper.make_node("Resize", reads, [f"{name}.y"], **facts)
    given = helper.make_tensor_value_info(reads[0], onnx.TensorProto.FLOAT, shape)
    return (node, given, held), shape


def model_of(parts: list[_Part]) -> onnx.ModelProto:
    nodes, inputs = [part[0] for part in parts], [part[1] for part in parts]
    ends = [node.output[0] for node in nodes]
    outputs = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in ends]
    held = [tensor for part in parts for tensor in part[2]]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def check(seed: int) -> None:
    draw, parts, x, wanted = random.Random(seed), [], {}, {}
    for number in range(24):
        found = drawn(draw, f"n{number}")
        if found is None:
            continue
        part, shape = found
        one = np.random.default_rng(number).standard_normal(shape).astype(np.float32)
        name = part[0].input[0]
        try:
            session = onnxruntime.InferenceSession(model_of([part]).SerializeToString())
            made = session.run(None, {name: one})[0]
        except Exception:  # a form that onnxruntime lacks; its errors have no base class
            continue
        parts.append(part)
        x[name], wanted[part[0].output[0]] = one, made
    model = onnx.shape_inference.infer_shapes(model_of(parts), data_prop=True)
    result, report = compiled(model)
    assert not report["host_fallback"], seed
    got = run(result, x)
    for part in parts:
        name = part[0].output[0]
        near = 2e-5 * max(1.0, np.abs(wanted[name]).max())
        assert got[name].shape == wanted[name].shape, (seed, part[0])
        assert np.abs(got[name] - wanted[name]).max() <= near, (seed, part[0])


def test_every_mode() -> None:
    with_seeds(check, 1, 200)
