"""Random networks of pictures: pyramids, deconvolutions, resizes, gates of channels, sequences."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#: Channels and edges, most of them not round.
CHANNELS = (1, 2, 3, 5, 7, 8, 12, 15)
Shape = tuple[int, ...]


class _Network:
    """A graph that grows; ``shapes`` has the shape of every value."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.arrays = np.random.default_rng(rng.randrange(1 << 30))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.shapes: dict[str, Shape] = {}

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def weights(self, *shape: int) -> str:
        """Weights that keep values near the size that they have."""
        scale = np.sqrt(max(1, int(np.prod(shape[1:]))))
        return self.constant((self.arrays.standard_normal(shape) / scale).astype(np.float32))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def add(self, op: str, reads: list[str], shape: Shape, **facts: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, reads, [name], name=f"n{name}_{op}", **facts))
        self.shapes[name] = shape
        return name

    def convolution(self, value: str, rows: int | None = None, stride: int | None = None) -> str:
        """A convolution of a drawn kernel, stride, dilation and number of groups."""
        batch, channels, *size = self.shapes[value]
        rng = self.rng
        kernel = rng.choice([1, 2, 3, 3, 5])
        dilation = rng.choice([1, 1, 2, 3]) if kernel > 1 else 1
        stride = rng.choice([1, 1, 1, 2, 3]) if stride is None else stride
        reach = (kernel - 1) * dilation
        pad = (reach // 2, reach - reach // 2) if rng.random() < 0.8 else (reach, reach)
        rows = rng.choice(CHANNELS) if rows is None else rows
        groups = rng.choice([g for g in range(1, channels + 1) if not channels % g | rows % g])
        after = tuple((n + sum(pad) - reach - 1) // stride + 1 for n in size)
        weights = self.weights(rows, channels // groups, kernel, kernel)
        reads = [value, weights, *([self.weights(rows)] if rng.random() < 0.7 else [])]
        return self.add(
            "Conv",
            reads,
            (batch, rows, *after),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            dilations=[dilation, dilation],
            group=groups,
            pads=[pad[0], pad[0], pad[1], pad[1]],
        )

    def deconvolution(self, value: str) -> str:
        """A transposed convolution."""
        batch, channels, *size = self.shapes[value]
        rng = self.rng
        kernel, stride = rng.choice([1, 2, 2, 3, 4]), rng.choice([1, 2, 2, 3])
        pad, more = rng.randrange(0, (kernel + 1) // 2), rng.randrange(0, stride)
        dilation = rng.choice([1, 1, 1, 2])
        rows = rng.choice(CHANNELS)
        groups = rng.choice([g for g in range(1, channels + 1) if not channels % g | rows % g])
        reach = (kernel - 1) * dilation
        after = tuple(stride * (n - 1) + more + reach + 1 - 2 * pad for n in size)
        if min(after) < 1 or max(after) > 64:
            return value
        reads = [value, self.weights(channels, rows // groups, kernel, kernel)]
        return self.add(
            "ConvTranspose",
            reads + ([self.weights(rows)] if rng.random() < 0.7 else []),
            (batch, rows, *after),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            dilations=[dilation, dilation],
            output_padding=[more, more],
            group=groups,
            pads=[pad] * 4,
        )

    def resized(self, value: str, size: Shape) -> str:
        """The picture at another size."""
        rng = self.rng
        before, shape = self.shapes[value], (*self.shapes[value][:2], *size)
        facts = {"mode": rng.choice(["nearest", "nearest", "linear", "cubic"])}
        if facts["mode"] == "nearest":
            facts |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        else:
            ways = ["half_pixel", "align_corners", "pytorch_half_pixel"]
            facts["coordinate_transformation_mode"] = rng.choice(ways)
        if all(after % one == 0 for after, one in zip(size, before[2:], strict=True)):
            scales = [after // one for after, one in zip(shape, before, strict=True)]
            reads = [value, "", self.constant(np.array(scales, dtype=np.float32))]
        else:
            reads = [value, "", "", self.ints(*shape)]
        return self.add("Resize", reads, shape, **facts)

    def gated(self, value: str) -> str:
        """Squeeze and excite."""
        batch, channels, *_ = self.shapes[value]
        squeezed = self.add("GlobalAveragePool", [value], (batch, channels, 1, 1))
        rows = self.rng.choice(CHANNELS)
        for op, before, after in (("Relu", channels, rows), ("HardSigmoid", rows, channels)):
            reads = [squeezed, self.weights(after, before, 1, 1), self.weights(after)]
            made = self.add("Conv", reads, (batch, after, 1, 1), kernel_shape=[1, 1])
            squeezed = self.add(op, [made], (batch, after, 1, 1))
        return self.add("Mul", [value, squeezed], self.shapes[value])

    def pooled(self, value: str) -> str:
        batch, channels, *size = self.shapes[value]
        kernel, stride = self.rng.choice([(2, 2), (3, 2), (3, 1)])
        if min(size) < kernel:
            return value
        shape = (batch, channels, *((n - kernel) // stride + 1 for n in size))
        facts = {"kernel_shape": [kernel, kernel], "strides": [stride, stride]}
        return self.add(self.rng.choice(["MaxPool", "AveragePool"]), [value], shape, **facts)

    def pointwise(self, value: str) -> str:
        op = self.rng.choice(["Relu", "Sigmoid", "HardSwish", "LeakyRelu", "BatchNormalization"])
        reads, channels = [value], self.shapes[value][1]
        if op == "BatchNormalization":
            numbers = [self.arrays.random(channels).astype(np.float32) + 0.5 for _ in range(4)]
            reads += [self.constant(array) for array in numbers]
        return self.add(op, reads, self.shapes[value])

    def sequence(self, value: str) -> str:
        """A recurrent layer over the columns of a picture, as in readers of text."""
        batch, channels, height, width = self.shapes[value]
        rng = self.rng
        op, gates = rng.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
        size, ways = rng.choice([3, 5, 8]), rng.choice([1, 2])
        flat = self.add("Transpose", [value], (width, batch, channels, height), perm=[3, 0, 1, 2])
        inputs = channels * height
        flat = self.add("Reshape", [flat, self.ints(width, batch, inputs)], (width, batch, inputs))
        reads = [flat, self.weights(ways, gates * size, inputs)]
        reads += [self.weights(ways, gates * size, size), self.weights(ways, 2 * gates * size)]
        direction = "bidirectional" if ways == 2 else rng.choice(["forward", "reverse"])
        facts = {"hidden_size": size, "direction": direction}
        if rng.random() < 0.5:
            lengths = [rng.randint(1, width) for _ in range(batch)]
            reads.append(self.constant(np.array(lengths, dtype=np.int32)))
        found = self.add(op, reads, (width, ways, batch, size), **facts)
        return self.add("Transpose", [found], (batch, ways, size, width), perm=[2, 1, 3, 0])

    def joined(self, levels: list[str]) -> str:
        """Levels of a pyramid, resized to the size of one of them and joined, or added up."""
        size = self.shapes[self.rng.choice(levels)][2:]
        same = [v if self.shapes[v][2:] == size else self.resized(v, size) for v in levels]
        if self.rng.random() < 0.4 and len(same) > 1:
            rows = self.rng.choice(CHANNELS)
            lateral = [self.lateral(value, rows) for value in same]
            total = lateral[0]
            for other in lateral[1:]:
                total = self.add("Add", [total, other], self.shapes[total])
            return total
        channels = sum(self.shapes[value][1] for value in same)
        return self.add("Concat", same, (self.shapes[same[0]][0], channels, *size), axis=1)

    def lateral(self, value: str, rows: int) -> str:
        """A convolution that gives each level the same number of channels."""
        batch, channels, *size = self.shapes[value]
        return self.add("Conv", [value, self.weights(rows, channels, 1, 1)], (batch, rows, *size))


def random_pictures(
    rng: random.Random, edges: tuple[int, int] = (5, 29)
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a network of a pyramid and a head, for pictures whose ``edges`` are not round."""
    made = _Network(rng)
    shape = (
        rng.choice([1, 1, 2, 3]),
        rng.choice([1, 3, 4]),
        rng.randint(*edges),
        rng.randint(*edges),
    )
    made.shapes["x"] = shape
    value = made.convolution("x", stride=rng.choice([1, 2]))
    levels = []
    for _ in range(rng.randrange(1, 4)):
        for _ in range(rng.randrange(1, 3)):
            step = rng.choice([made.convolution, made.convolution, made.pointwise, made.gated])
            value = step(value)
        levels.append(value)
        if rng.random() < 0.7:
            value = made.pooled(value) if rng.random() < 0.5 else made.convolution(value, stride=2)
    value = made.joined(levels)
    for _ in range(rng.randrange(1, 4)):
        head = [
            made.deconvolution,
            made.deconvolution,
            made.convolution,
            made.pointwise,
            made.gated,
        ]
        value = rng.choice(head)(value)
    if rng.random() < 0.25 and made.shapes[value][3] <= 16:
        value = made.sequence(value)
    outputs = sorted({value, rng.choice(levels)}) if rng.random() < 0.3 else [value]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        made.nodes,
        "pictures",
        [info("x", TensorProto.FLOAT, shape)],
        [info(name, TensorProto.FLOAT, made.shapes[name]) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in made.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model, {"x": made.arrays.standard_normal(shape).astype(np.float32)}
