"""Operators as files of old opsets write them: other attributes, other defaults, any type."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from compiling import LONG, compiled, run, with_seeds
from onnx import helper, numpy_helper

from pycompiler.build import host_function, settled_model
from pycompiler.pfvm.optimise import optimise

SINGLE, REALS = ["f4"], ["f4", "f4", "f8", "f2"]
NUMBERS = [*REALS, "i4", "i8", "u1", "i1"]
ANY = [*NUMBERS, "u4", "i2", "?"]
Array = np.ndarray[Any, Any]


class Drawn:
    """A node of a drawn opset with its inputs and constants."""

    def __init__(self, seed: int, op: str):
        self.draw = random.Random(f"{op} {seed}")
        self.arrays = np.random.default_rng(self.draw.getrandbits(32))
        self.inputs: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self.opset = 0
        self.nodes: list[onnx.NodeProto] = []

    def version(self, *opsets: int) -> int:
        self.opset = self.draw.choice(opsets)
        return self.opset

    def likely(self, share: float = 0.5) -> bool:
        return self.draw.random() < share

    def sizes(self, *ranks: int) -> list[int]:
        rank = self.draw.choice(ranks or (1, 2, 3, 4))
        return [self.draw.choice([1, 2, 3, 4, 5]) for _ in range(rank)]

    def x(self, dtypes: list[str], shape: list[int]) -> str:
        """An input of small numbers."""
        name, dtype = f"x{len(self.inputs)}", np.dtype(self.draw.choice(dtypes))
        values = self.arrays.standard_normal(shape) * (2 if dtype.kind == "f" else 9)
        self.inputs[name] = np.array(np.abs(values) if dtype.kind == "u" else values).astype(dtype)
        return name

    def held(self, values: Any, dtype: str = "i8") -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(values, dtype)
        return name

    def weights(self, *shape: int) -> str:
        return self.held(self.arrays.standard_normal(shape), "f4")

    def node(self, op: str, reads: list[str], results: int = 1, **facts: Any) -> None:
        names = [f"y{number}" for number in range(results)]
        self.nodes.append(helper.make_node(op, reads, names, name=op, **facts))

    def axes(self, rank: int, negative: bool, least: int = 1) -> list[int]:
        chosen = self.draw.sample(range(rank), self.draw.randint(least, rank))
        return [axis - rank if negative and self.likely(0.3) else axis for axis in chosen]

    def model(self) -> onnx.ModelProto:
        """The model, whose results have no declared type."""
        kind, info = helper.np_dtype_to_tensor_dtype, helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "g",
            [info(name, kind(a.dtype), a.shape) for name, a in self.inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in self.nodes[-1].output],
            [numpy_helper.from_array(a, name) for name, a in self.constants.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        made.ir_version = 8
        return made


def squeeze(d: Drawn) -> None:
    sizes, opset = [d.draw.choice([1, 1, 3]) for _ in range(4)], d.version(1, 9, 11, 13)
    axes = [axis for axis, size in enumerate(sizes) if size == 1][:2]
    reads = [d.x(ANY, sizes), *([d.held(axes)] if opset >= 13 and axes else [])]
    d.node("Squeeze", reads, **({"axes": axes} if opset < 13 and axes else {}))


def unsqueeze(d: Drawn) -> None:
    sizes, opset = d.sizes(0, 1, 2, 3), d.version(1, 9, 11, 13)
    axes = d.draw.sample(range(len(sizes) + 2), 2)
    x = d.x(ANY, sizes)
    if opset < 13:
        d.node("Unsqueeze", [x], axes=axes)
    else:
        d.node("Unsqueeze", [x, d.held(axes)])


def reduction(d: Drawn) -> None:
    op = d.draw.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"])
    opset, sizes, facts = d.version(7, 9, 11, 13, 18), d.sizes(), {}
    reads = [d.x(["f4", "f8", "f2"] if op == "ReduceL2" else ["f4", "f8", "i4", "i8"], sizes)]
    if d.likely(0.7):
        facts["keepdims"] = d.draw.randint(0, 1)
    axes = d.axes(len(sizes), opset >= 11)
    if d.likely(0.8):
        if opset >= (13 if op == "ReduceSum" else 18):
            reads.append(d.held(axes))
        else:
            facts["axes"] = axes
    d.node(op, reads, **facts)


def slices(d: Drawn) -> None:
    sizes, opset = d.sizes(), d.version(1, 9, 10, 11, 13)
    axes = d.axes(len(sizes), False)
    starts = [d.draw.randint(-sizes[axis] - 1, sizes[axis]) for axis in axes]
    ends = [d.draw.choice([d.draw.randint(-3, 4), 2**31 - 1, 2**63 - 1]) for _ in axes]
    x = d.x(ANY, sizes)
    if opset < 10:
        d.node("Slice", [x], starts=starts, ends=ends, axes=axes)
        return
    steps = [d.draw.choice([1, 1, 2, -1, -2]) for _ in axes]
    ends = [-(2**63) if step < 0 else end for step, end in zip(steps, ends, strict=True)]
    d.node("Slice", [x, *map(d.held, (starts, ends, axes, steps))])


def pad(d: Drawn) -> None:
    opset, sizes = d.version(2, 9, 11, 13, 18), d.sizes()
    mode = d.draw.choice(["constant", "constant", "reflect", "edge"])
    most = [min(2, size - 1) if mode == "reflect" else 2 for size in sizes] * 2
    pads = [d.draw.randint(0, limit) for limit in most]
    if mode != "reflect" and sizes[0] > 2 and d.likely(0.3):
        pads[0] = -1
    x = d.x(REALS if opset < 13 else [*NUMBERS, "?"], sizes)
    if opset < 11:
        d.node("Pad", [x], pads=pads, mode=mode, value=1.5)
        return
    value = [d.held(1, d.inputs[x].dtype.str)] if d.likely() else []
    d.node("Pad", [x, d.held(pads), *value], mode=mode)


def clip(d: Drawn) -> None:
    opset = d.version(6, 6, 11, 12, 13)
    x = d.x(["f2"] if opset < 11 else REALS if opset < 12 else NUMBERS, d.sizes(0, 1, 2, 3))
    if opset < 11:
        d.node("Clip", [x], **{name: n for name, n in (("min", -1.0), ("max", 1.0)) if d.likely()})
        return
    ends = [d.held(n, d.inputs[x].dtype.str) if d.likely(0.7) else "" for n in (1, 3)]
    d.node("Clip", [x, *ends])


def dropout(d: Drawn) -> None:
    opset, x = d.version(6, 7, 10, 12, 13), d.x(["f4", "f8", "f2"], d.sizes())
    if opset < 12:
        results = d.draw.choice([1, 2])
        d.node("Dropout", [x], results, ratio=0.3, **({"is_test": 1} if opset < 7 else {}))
    else:
        d.node("Dropout", [x, *([d.held(0.3, "f4")] if d.likely() else [])])


def normalization(d: Drawn) -> None:
    d.version(7, 9, 14, 15)
    x = d.x(["f4", "f8"], [2, 3, *d.sizes(0, 1, 2)])
    dtype = d.inputs[x].dtype.str
    facts = [d.held(np.abs(d.arrays.standard_normal(3)) + 0.3, dtype) for _ in range(4)]
    d.node("BatchNormalization", [x, *facts], epsilon=1e-3)


def upsample(d: Drawn) -> None:
    """An Upsample and a Resize of opset 10 have other places than a Resize without attributes."""
    opset, mode = d.version(7, 9, 10), d.draw.choice(["nearest", "linear"])
    sizes, drawn = d.sizes(2, 4), [2.0, 1.5, 3.0, 2.3]
    if opset == 10:
        drawn = d.draw.choice([drawn, [0.5, 0.7, 0.4]] if mode == "nearest" else [[2.0, 0.5, 0.7]])
    scales = [1.0] * (len(sizes) - 2) + [d.draw.choice(drawn) for _ in range(2)]
    if any(int(size * scale) == 0 for size, scale in zip(sizes, scales, strict=True)):
        scales = [max(1.0, scale) for scale in scales]
    x = d.x(SINGLE if mode == "linear" else ["f4", "u1", "i4"], sizes)
    if opset == 7:
        d.node("Upsample", [x], mode=mode, scales=scales)
    else:
        d.node("Resize" if opset == 10 else "Upsample", [x, d.held(scales, "f4")], mode=mode)


def resize(d: Drawn) -> None:
    d.version(11, 13, 18)
    mode = d.draw.choice(["nearest", "linear", "cubic"])
    ways = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    facts = {"mode": mode, "coordinate_transformation_mode": d.draw.choice(ways)}
    if mode == "nearest":
        facts["nearest_mode"] = d.draw.choice(["floor", "ceil", "round_prefer_floor"])
    sizes, none = d.sizes(4), d.held([], "f4")
    x = d.x(["f4", "u1"] if mode == "nearest" else SINGLE, sizes)
    goal = [*sizes[:2], d.draw.choice([1, 3, 8]), d.draw.choice([2, 5, 7])]
    scales = [1, 1, d.draw.choice([2, 1.5, 0.7]), d.draw.choice([2, 2.3, 1])]
    if d.likely() and min(sizes) > 1:
        d.node("Resize", [x, none, d.held(scales, "f4")], **facts)
    else:
        d.node("Resize", [x, none, none, d.held(goal)], **facts)


def broadcast(d: Drawn) -> None:
    """Before opset 7 an attribute says along which axes the second operand lies."""
    d.version(6)
    sizes = d.sizes(2, 3, 4)
    first = d.draw.randrange(len(sizes))
    last = d.draw.randint(first + 1, len(sizes))
    facts = {"axis": first} if last < len(sizes) or d.likely() else {}
    x = d.x(["f4", "f8", "i4"], sizes)
    other = d.x([d.inputs[x].dtype.str], sizes[first:last])
    d.node(d.draw.choice(["Add", "Mul", "Sub"]), [x, other], broadcast=1, **facts)


def product(d: Drawn) -> None:
    opset, turned = d.version(6, 7, 9, 11, 13), [d.draw.randint(0, 1) for _ in range(2)]
    rows, columns, inner = d.sizes(3)
    x = d.x(SINGLE, [inner, rows] if turned[0] else [rows, inner])
    reads = [x, d.weights(*([columns, inner] if turned[1] else [inner, columns]))]
    if opset < 11 or d.likely():
        reads.append(d.weights(*d.draw.choice([(rows, columns), (columns,), (1, columns)])))
    facts = {"transA": turned[0], "transB": turned[1], "alpha": 0.5, "beta": 0.25}
    d.node("Gemm", reads, **(facts | ({"broadcast": 1} if opset < 7 else {})))


def softmax(d: Drawn) -> None:
    """Before opset 13 all axes from `axis` on are one, and its default is 1."""
    d.version(7, 11, 13)
    sizes = d.sizes(2, 3, 4)
    facts = {"axis": d.draw.randrange(len(sizes))} if d.likely() else {}
    op = d.draw.choice(["Softmax", "LogSoftmax", "Hardmax"])
    d.node(op, [d.x(SINGLE, sizes)], **facts)


def split(d: Drawn) -> None:
    opset, sizes, count = d.version(2, 11, 13, 18), d.sizes(), d.draw.randint(1, 3)
    axis, parts = d.draw.randrange(len(sizes)), [d.draw.choice([1, 2, 3]) for _ in range(count)]
    even = d.likely(0.4)
    parts = parts[:1] * count if even else parts
    sizes[axis] = sum(parts)
    reads, facts = [d.x(ANY, sizes)], {"axis": axis}
    if opset < 13:
        facts |= {} if even else {"split": parts}
    elif not even:
        reads.append(d.held(parts))
    elif opset >= 18:
        facts["num_outputs"] = count
    d.node("Split", reads, count, **facts)


def largest(d: Drawn) -> None:
    opset, sizes = d.version(1, 10, 11), d.sizes()
    axis = d.draw.randrange(len(sizes))
    count, x = d.draw.randint(1, sizes[axis]), d.x(SINGLE, sizes)
    if opset == 1:
        d.node("TopK", [x], 2, axis=axis, k=count)
    else:
        d.node("TopK", [x, d.held([count])], 2, axis=axis, **({"largest": 0} if opset > 10 else {}))


def pool(d: Drawn) -> None:
    op, axes = d.draw.choice(["MaxPool", "AveragePool"]), d.draw.choice([1, 2, 2, 3])
    opset = d.version(7, 8, 10, 12)
    kernel = [d.draw.choice([1, 2, 3]) for _ in range(axes)]
    facts: dict[str, Any] = {"kernel_shape": kernel, "strides": [d.draw.choice([1, 2])] * axes}
    if d.likely(0.3):
        facts["auto_pad"] = d.draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif d.likely():
        facts["pads"] = [size // 2 for size in kernel] * 2
    if opset >= 10 and d.likely() and "auto_pad" not in facts:
        facts["ceil_mode"] = 1
    if op == "AveragePool" and d.likely():
        facts["count_include_pad"] = 1
    dtypes = ["f4", "f8", "u1", "i1"] if op == "MaxPool" and opset == 12 else SINGLE
    sizes = [2, 3, *(d.draw.choice([4, 5, 7]) for _ in range(axes))]
    d.node(op, [d.x(dtypes, sizes)], 1 + (op == "MaxPool" and opset >= 8 and d.likely()), **facts)


def convolution(d: Drawn) -> None:
    op, axes, groups = d.draw.choice(["Conv", "ConvTranspose"]), d.draw.choice([1, 2, 3]), 2
    d.version(1, 7, 11)
    kernel = [d.draw.choice([1, 2, 3]) for _ in range(axes)]
    facts: dict[str, Any] = {"group": groups, "strides": [d.draw.choice([1, 2, 3])] * axes}
    if d.likely(0.3):
        facts["auto_pad"] = d.draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif d.likely():
        facts["pads"] = [(size - 1) // 2 for size in kernel] * 2
    sizes = [2, 4, *(d.draw.choice([4, 5, 7]) for _ in range(axes))]
    weights = d.weights(*([4, 3] if op == "ConvTranspose" else [6, 2]), *kernel)
    bias = [d.weights(6)] if d.likely() else []
    d.node(op, [d.x(SINGLE, sizes), weights, *bias], **facts)


def reshape(d: Drawn) -> None:
    sizes, opset = d.sizes(1, 2, 3), d.version(1, 5, 13)
    goal, x = d.draw.choice([[-1], [1, -1], [0, -1], [sizes[0], -1]]), d.x(["f4", "f8"], sizes)
    if opset == 1:
        d.node("Reshape", [x], shape=goal)
    else:
        d.node("Reshape", [x, d.held(goal)])


def thresholded(d: Drawn) -> None:
    """onnxruntime takes this operator before the standard had it."""
    d.version(1, 6, 7, 9, 10)
    d.node("ThresholdedRelu", [d.x(SINGLE, d.sizes())], **({"alpha": 0.5} if d.likely() else {}))


CASES: dict[str, Callable[[Drawn], None]] = {
    **{"Squeeze": squeeze, "Unsqueeze": unsqueeze, "Reduce": reduction, "Slice": slices},
    **{"Pad": pad, "Clip": clip, "Dropout": dropout, "BatchNormalization": normalization},
    **{"Upsample": upsample, "Resize": resize, "Add": broadcast, "Gemm": product},
    **{"Softmax": softmax, "Split": split, "TopK": largest, "Pool": pool, "Conv": convolution},
    **{"Reshape": reshape, "ThresholdedRelu": thresholded},
}


def declared(drawn: Drawn, made: onnx.ModelProto, wanted: list[Array]) -> onnx.ModelProto:
    """The model with results that are declared in some way, and perhaps as version 3 writes it."""
    kind, info = helper.np_dtype_to_tensor_dtype, helper.make_tensor_value_info
    for result, array in zip(made.graph.output, wanted, strict=True):
        sizes: list[Any] = list(array.shape)
        ways = [sizes, ["n"] * array.ndim, [-1] * array.ndim, [n + 1 for n in sizes], [*sizes, 2]]
        if drawn.likely(0.8):
            shape = drawn.draw.choice([*ways, None])
            result.CopyFrom(info(result.name, kind(array.dtype), shape))
    if drawn.likely(0.3):
        made.ir_version = 3
        held = drawn.constants.items()
        made.graph.input.extend(info(name, kind(a.dtype), a.shape) for name, a in held)
    return made


def check(op: str, seed: int) -> None:
    drawn = Drawn(seed, op)
    CASES[op](drawn)
    made = drawn.model()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(made.SerializeToString(), options)
        wanted = session.run(None, drawn.inputs)
    except Exception:  # a form that onnxruntime lacks; its errors have no base class
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of false shapes
        settled = settled_model(declared(drawn, made, wanted))
    doors = [lambda: [v.values() for v in host_function(optimise(settled)).run(x).values()]]
    x = {
        name: a for name, a in drawn.inputs.items() if name in {i.name for i in settled.graph.input}
    }
    if LONG or not seed:
        doors.append(lambda: [*run(compiled(settled)[0], x).values()])
    for door in doors:
        for own, other in zip(door(), wanted, strict=True):
            assert own.dtype == other.dtype, (op, seed)
            assert own.shape == other.shape, (op, seed)
            if other.dtype.kind != "f":
                assert np.array_equal(own, other), (op, seed)
                continue
            near = {2: 4e-3, 4: 3e-5, 8: 1e-9}[other.dtype.itemsize]
            scale = near * max(1.0, float(np.abs(other).max(initial=0)))
            assert np.allclose(own, other, rtol=near, atol=scale), (op, seed)


@pytest.mark.parametrize("op", CASES)
def test_old_opsets(op: str) -> None:
    with_seeds(lambda seed: check(op, seed), 2, 150)
