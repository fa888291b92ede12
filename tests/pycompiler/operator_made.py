"""Rows of Mean, Pow of integers, Range, EyeLike, Det, MaxUnpool and QLinearConv."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import torch
from onnx import helper
from operator_host_forms import mean_as_sum
from operator_rows import (
    DTYPES,
    LONG,
    REAL,
    WHOLE,
    WIDE,
    Row,
    Sample,
    Tensor,
    normal,
    part_of,
    random_shape,
    values,
    widened,
)

from pycompiler.tolerance import ELEMENTWISE, FUNCTION, MOVE, SUM

F = torch.nn.functional
STEPS = 8  # the other operations of a composite count as this many terms of its sum


def _mean(rng: random.Random) -> Sample:
    """Draw tensors without negative elements: the bound is relative to the mean."""
    shape = random_shape(rng, 0, 6, 480)
    shapes = [shape, *(part_of(rng, shape) for _ in range(rng.randint(0, 3)))]
    rng.shuffle(shapes)
    operands = {f"x{n}": np.abs(values(rng, REAL, own)) for n, own in enumerate(shapes)}
    return Sample(operands, lambda **x: sum(x.values()) / len(x))


def _power(dtype: str) -> Callable[[random.Random], Sample]:
    """Exponents that are known or not, below 0, far beyond the bits, and whole floats."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 0, 5, 200)
        made = np.random.default_rng(rng.getrandbits(32))
        shapes = [shape, part_of(rng, shape)]
        rng.shuffle(shapes)
        x = np.asarray(made.integers(-7, 8, shapes[0])).astype(dtype)
        kind = rng.choice([WHOLE, LONG, LONG, REAL])
        known = rng.random() < 0.3
        y = np.asarray(made.integers(1, 12, () if known else shapes[1]))
        if not known and kind != REAL:
            far = np.asarray(made.choice([-3, -2, 0, 200, 201], y.shape))
            y = np.where(made.random(y.shape) < 0.2, far, y)
        whole = np.broadcast_shapes(x.shape, y.shape)
        # Powers of other numbers leave the range.
        x = np.where((np.broadcast_to(y, whole) > 11).any() & (np.abs(x) > 1), 1, x).astype(dtype)

        def function(x: Tensor, y: Tensor) -> Tensor:
            base, power = (array.numpy().astype(object) for array in (x, y.long()))

            def one(a: int, b: int) -> int:
                return int(a**b) if b >= 0 else (a ** (-b) if abs(a) == 1 else 0)

            found = np.frompyfunc(one, 2, 1)(base, power)
            bits = np.iinfo(dtype).bits
            wrapped = np.vectorize(lambda n: (n + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1))
            return torch.from_numpy(np.asarray(wrapped(found)).astype(dtype).reshape(whole))

        x = np.where(x == 0, 2, x).astype(dtype) if (y < 0).any() else x
        # onnxruntime computes powers as doubles, so they must be exact there.
        return Sample({"x": x, "y": y.astype(kind)}, function, frozenset("y" if known else ""))

    return sample


def _range(dtype: str) -> Callable[[random.Random], Sample]:
    def sample(rng: random.Random) -> Sample:
        count = rng.choice([1, 2, 5, 40])
        if dtype in (REAL, WIDE):
            start, step = rng.randint(-99, 99) / 8, rng.choice([-0.5, 0.25, 2.0])
        else:
            start, step = rng.randint(-9, 9), rng.choice([-2, 1, 7])
        ends = (np.asarray(n, dtype) for n in (start, start + count * step, step))

        def function(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
            return a + torch.arange(count) * c

        largest = abs(start) + abs(step) * count
        known = frozenset(rng.choice(["", "c", "ac"]))
        facts: dict[str, Any] = {"terms": count + 2, "scale": largest}
        return Sample(dict(zip("abc", ends, strict=True)), function, known, **facts)

    return sample


def _eye(dtype: str) -> Callable[[random.Random], Sample]:
    def sample(rng: random.Random) -> Sample:
        rows, columns = rng.choice([1, 2, 5, 9]), rng.choice([1, 3, 8])
        k = rng.choice([None, -2, 0, 3])
        facts: dict[str, Any] = {} if k is None else {"k": k}
        if rng.random() < 0.5:
            facts["dtype"] = int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        ones = torch.from_numpy(np.eye(rows, columns, k or 0))
        x = values(rng, dtype, (rows, columns))
        return Sample({"x": x}, lambda x: ones.to(x.dtype), attributes=facts)

    return sample


def _det(rng: random.Random) -> Sample:
    """Matrices whose largest pivots lie anywhere, some of them singular."""
    rows = rng.choice([1, 2, 3, 4, 6])
    x = normal(rng, (*random_shape(rng, 0, 2, 6), rows, rows))
    if rows > 1 and rng.random() < 0.3:
        x[..., 0, :] = 0
    # The bound of Hadamard, times what rounding grows with.
    scale = float(np.prod(np.linalg.norm(x.astype(np.float64), axis=-1), -1).max()) * rows
    terms = rows**2 + STEPS
    return Sample({"x": x}, lambda x: torch.linalg.det(x), terms=terms, scale=max(scale, 1e-3))


def _unpool(rng: random.Random) -> Sample:
    """Indices as MaxPool gives them, with overlaps; a given shape that is larger."""
    sizes = [rng.choice([1, 2, 3]) for _ in range(2)]
    kernel = [rng.choice([1, 2, 3]) for _ in sizes]
    strides = [rng.choice([1, 2]) if k > 1 else 1 for k in kernel]
    pads = [rng.choice([0, 0, (k - 1) // 2]) for k in kernel] * 2
    whole = [
        (n - 1) * s - 2 * p + k for n, s, p, k in zip(sizes, strides, pads, kernel, strict=False)
    ]
    if min(whole) < 1:
        return _unpool(rng)
    batch, channels = rng.choice([1, 2]), rng.choice([1, 3])
    made = np.random.default_rng(rng.getrandbits(32))
    count, places, pictures = prod(sizes), prod(whole), batch * channels
    own = np.stack([made.integers(0, places, count) for _ in range(pictures)])
    x = normal(rng, (pictures, places))
    picked = np.take_along_axis(x, own, 1).reshape(batch, channels, *sizes)
    index = (own + np.arange(pictures)[:, None] * places).reshape(picked.shape)
    more = rng.choice([None, (0, 1), (2, 0)])
    goal = [n + m for n, m in zip(whole, more or (0, 0), strict=True)]

    def function(x: Tensor, i: Tensor, **_: Tensor) -> Tensor:
        found = torch.zeros(pictures * places, dtype=x.dtype)
        found[i.reshape(-1)] = x.reshape(-1)
        found = found.reshape(batch, channels, *whole)
        return F.pad(found, [0, goal[1] - whole[1], 0, goal[0] - whole[0]])

    shape = None if more is None else np.array([batch, channels, *goal])
    facts = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    return Sample({"x": picked, "i": index, "shape": shape}, function, frozenset({"shape"}), facts)


def _limits(dtype: Any) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _linear_conv(rng: random.Random) -> Sample:
    """Scales that are powers of two; short sums as singles and long ones as doubles."""
    made, elem = np.random.default_rng(rng.getrandbits(32)), rng.choice(["uint8", "int8"])
    group, own, rows = rng.choice([1, 1, 2]), rng.choice([1, 3, 40]), rng.choice([1, 2])
    kernel, pad, stride = (rng.choice([1, 2, 3]), 2), rng.randint(0, 1), rng.choice([1, 2])
    x = made.integers(*_limits(elem), (1, group * own, 5, 4), endpoint=True).astype(elem)
    w = made.integers(*_limits(elem), (group * rows, own, *kernel), endpoint=True).astype(elem)
    each = (group * rows,) if rng.random() < 0.5 else ()
    sx, s = (np.asarray(2.0 ** rng.randint(-6, 0), np.float32) for _ in range(2))
    sw = np.asarray(np.exp2(made.integers(-9, -3, each)), np.float32)
    zx, z = (np.asarray(made.integers(0, 100), elem) for _ in range(2))
    zw = np.zeros(each, elem) if elem == "int8" else np.asarray(made.integers(0, 9), elem)
    b = made.integers(-5000, 5000, group * rows).astype(np.int32) if rng.random() < 0.5 else None
    low, high = _limits(elem)

    def function(x: Tensor, sx: Tensor, zx: Tensor, w: Tensor, sw: Tensor, zw: Tensor,
                 s: Tensor, z: Tensor, b: Tensor | None = None) -> Tensor:  # fmt: skip
        left, right = x.double() - zx.double(), w.double() - zw.double().reshape(-1, 1, 1, 1)
        found = F.conv2d(left, right, None if b is None else b.double(), stride, pad, 1, group)
        found = found * (sx * sw / s).reshape(-1, 1, 1)
        return (found.round() + z).clamp(low, high).to(torch.int64)

    named = {"x": x, "sx": sx, "zx": zx, "w": w, "sw": sw, "zw": zw, "s": s, "z": z, "b": b}
    facts = {"pads": [pad] * 4, "strides": [stride] * 2, "group": group}
    fixed = frozenset(named) - {"x", "b"} if rng.random() < 0.5 else frozenset()
    return Sample(named, function, fixed, facts)


def _rows() -> Iterator[Row]:
    yield Row("Mean", "Float", REAL, _mean, ELEMENTWISE)
    yield Row("Mean", "Double", WIDE, widened(_mean), ELEMENTWISE, host=mean_as_sum)
    for dtype in (WHOLE, LONG):
        yield Row("Pow", DTYPES[dtype].value, dtype, _power(dtype), FUNCTION, range(6))
    for dtype in (REAL, WIDE, WHOLE, LONG):
        yield Row("Range", DTYPES[dtype].value, dtype, _range(dtype), SUM, range(1))
    for dtype, claim in DTYPES.items():
        yield Row("EyeLike", claim.value, dtype, _eye(dtype), MOVE, range(2, 3))
    yield Row("Det", "Float", REAL, _det, SUM, range(2, 5))
    yield Row("Det", "Double", WIDE, widened(_det), SUM, range(2, 5))
    yield Row("MaxUnpool", "Float", REAL, _unpool, MOVE, range(4, 5))
    yield Row("MaxUnpool", "Double", WIDE, widened(_unpool), MOVE, range(4, 5))
    yield Row("QLinearConv", "Int", "", _linear_conv, MOVE, range(4, 5))


ROWS: tuple[Row, ...] = tuple(_rows())
