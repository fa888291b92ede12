"""Rows of scatters and of quantised operators, against loops and integers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np
import torch
from operator_rows import (
    DTYPES,
    HUGE,
    LONG,
    REAL,
    REALS,
    TRUTH,
    WHOLE,
    WIDE,
    Row,
    Sample,
    Tensor,
    normal,
    random_shape,
    signed,
    values,
)

from pycompiler.tolerance import ELEMENTWISE, MOVE, PRODUCT, SUM

_JOIN: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "none": lambda old, new: new,
    "add": torch.add,
    "mul": torch.mul,
    "max": torch.maximum,
    "min": torch.minimum,
}


def _drawn(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    found = normal(rng, shape).astype(dtype) if dtype in REALS else values(rng, dtype, shape)
    if dtype == HUGE:  # torch compares them as int64
        found >>= np.uint64(40)
    return found


def _reduction(rng: random.Random, dtype: str) -> str:
    return "none" if dtype == TRUTH else rng.choice(list(_JOIN))


def _scale(x: np.ndarray, updates: np.ndarray, most: int) -> float:
    if x.dtype.kind != "f":
        return 1.0
    top = max(1.0, float(np.abs(x).max()), float(np.abs(updates).max()))
    return top ** (most + 1)


def _scatter_elements(dtype: str) -> Callable[[random.Random], Sample]:
    """Updates that hit one place several times, and lines without updates."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 4, 60)
        axis, made = rng.randrange(len(shape)), np.random.default_rng(rng.getrandbits(32))
        count = rng.randint(1, 4)
        part = tuple(
            count if at == axis else rng.randint(max(1, size - 1), size)
            for at, size in enumerate(shape)
        )
        size, join = shape[axis], _reduction(rng, dtype)
        x, updates = _drawn(rng, dtype, shape), _drawn(rng, dtype, part)
        index = made.integers(-size, size, part).astype(rng.choice([WHOLE, LONG]))

        def function(x: Tensor, i: Tensor, u: Tensor) -> Tensor:
            found = x.clone()
            for place in product(*map(range, part)):
                goal = list(place)
                goal[axis] = int(i[place]) % size
                found[tuple(goal)] = _JOIN[join](found[tuple(goal)], u[place])
            return found

        facts: dict[str, Any] = {"axis": signed(rng, axis, len(shape)), "reduction": join}
        return Sample(
            {"x": x, "i": index, "u": updates},
            function,
            attributes=facts,
            terms=count + 1,
            scale=_scale(x, updates, count),
        )

    return sample


def _scatter_nd(dtype: str) -> Callable[[random.Random], Sample]:
    """Updates of elements or of whole rows, some of them twice."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 4, 60)
        made = np.random.default_rng(rng.getrandbits(32))
        depth, outer = rng.randint(1, len(shape)), rng.choice([(3,), (2, 2), (1,)])
        join = _reduction(rng, dtype)
        parts = [made.integers(-size, size, outer) for size in shape[:depth]]
        index = np.stack(parts, -1).astype(np.int64)
        x, updates = _drawn(rng, dtype, shape), _drawn(rng, dtype, (*outer, *shape[depth:]))

        def function(x: Tensor, i: Tensor, u: Tensor) -> Tensor:
            found = x.clone()
            for place in product(*map(range, outer)):
                goal = tuple(int(n) % s for n, s in zip(i[place], shape[:depth], strict=True))
                found[goal] = _JOIN[join](found[goal], u[place])
            return found

        count = prod(outer)
        return Sample(
            {"x": x, "i": index, "u": updates},
            function,
            attributes={"reduction": join},
            terms=count + 1,
            scale=_scale(x, updates, count),
        )

    return sample


def _cumulative_product(dtype: str) -> Callable[[random.Random], Sample]:
    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 5, 240)
        axis, exclusive, reverse = rng.randrange(len(shape)), rng.randint(0, 1), rng.randint(0, 1)
        x = np.exp(normal(rng, shape) / 16).astype(dtype)
        if dtype not in REALS:
            signs = [1, 1, 2] if dtype == HUGE else [-1, 1, 1, 2]
            x = np.random.default_rng(rng.getrandbits(32)).choice(signs, shape)
            x = x.astype(dtype)

        def function(x: Tensor, axis_: Tensor) -> Tensor:
            x = x.flip(axis) if reverse else x
            found = x.cumprod(axis, dtype=x.dtype)
            if exclusive:
                ones = torch.ones_like(found.narrow(axis, 0, 1))
                found = torch.cat([ones, found.narrow(axis, 0, shape[axis] - 1)], axis)
            return found.flip(axis) if reverse else found

        axis_ = np.array(signed(rng, axis, len(shape)), dtype=np.int64)
        facts = {"exclusive": exclusive, "reverse": reverse}
        operands = {"x": x, "axis_": axis_}
        return Sample(operands, function, frozenset({"axis_"}), facts, terms=shape[axis] + 1)

    return sample


def _limits(dtype: str) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _scales(
    rng: random.Random, shape: tuple[int, ...], axis: int
) -> tuple[tuple[int, ...], Callable[[Tensor], Tensor], dict[str, Any]]:
    """Draw a shape of scales, what spreads them over all elements, and the attributes."""
    kind, said = rng.choice(["one", "axis", "blocks"]), signed(rng, axis, len(shape))
    if kind == "one":
        return (), lambda s: s, {}
    if kind == "axis":
        wide = [-1 if at == axis else 1 for at in range(len(shape))]
        return shape[axis : axis + 1], lambda s: s.reshape(wide), {"axis": said}
    block = rng.choice([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
    own = tuple(n // block if at == axis else n for at, n in enumerate(shape))
    return own, lambda s: s.repeat_interleave(block, axis), {"axis": said, "block_size": block}


def _quantize(rng: random.Random) -> Sample:
    """Ties, values out of range, one scale, one for each place of an axis, or one for a block."""
    shape = random_shape(rng, 1, 4, 200)
    axis, elem = rng.randrange(len(shape)), rng.choice(["uint8", "int8", "uint16", "int16"])
    own, whole, facts = _scales(rng, shape, axis)
    made = np.random.default_rng(rng.getrandbits(32))
    scale = np.asarray(made.choice([0.5, 0.25, 0.3, 3.0, 0.007], own), dtype=np.float32)
    zero = made.integers(0, 100, own).astype(elem)
    x = np.round(made.standard_normal(shape) * 200) * np.float32(0.25)
    low, high = _limits(elem)

    def function(x: Tensor, s: Tensor, z: Tensor) -> Tensor:
        ratio = (x.float() / whole(s).float()).double()
        return (ratio.round() + whole(z).double()).clamp(low, high).to(torch.int64)

    return Sample({"x": x.astype(np.float32), "s": scale, "z": zero}, function, attributes=facts)


def _dequantize(rng: random.Random) -> Sample:
    shape = random_shape(rng, 1, 4, 200)
    axis, elem = rng.randrange(len(shape)), rng.choice(["uint8", "int8", "uint16", "int16"])
    own, whole, facts = _scales(rng, shape, axis)
    made = np.random.default_rng(rng.getrandbits(32))
    x = made.integers(*_limits(elem), shape, endpoint=True).astype(elem)
    zero = made.integers(*_limits(elem), own, endpoint=True).astype(elem)
    scale = np.asarray(made.uniform(0.01, 3, own), dtype=np.float32)

    def function(x: Tensor, s: Tensor, z: Tensor) -> Tensor:
        return (x.double() - whole(z).double()) * whole(s)

    return Sample({"x": x, "s": scale, "z": zero}, function, attributes=facts)


def _dynamic(rng: random.Random) -> Sample:
    x = normal(rng, random_shape(rng, 1, 4, 200)) * np.float32(rng.choice([0.1, 1, 30]))
    x += np.float32(rng.choice([-20, 0, 0, 20]))

    def function(x: Tensor) -> tuple[Tensor, ...]:
        single = x.float()
        high, low = single.max().clamp(min=0), single.min().clamp(max=0)
        scale = (high - low) / 255
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        zero = ((0 - low) / scale).round().clamp(0, 255)
        found = ((single / scale).round() + zero).clamp(0, 255)
        return found.to(torch.int64), scale.double(), zero.to(torch.int64)

    return Sample({"x": x}, function, outputs=3)


def _bytes(rng: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    made, elem = np.random.default_rng(rng.getrandbits(32)), rng.choice(["uint8", "int8"])
    return made.integers(*_limits(elem), shape, endpoint=True).astype(elem)


def _integers(rng: random.Random) -> Sample:
    """Short sums as singles and long ones as doubles; zero points of all forms."""
    m, n, k = rng.choice([1, 2, 5, 9]), rng.choice([1, 3, 8]), rng.choice([1, 4, 7, 33, 300])
    a, b = _bytes(rng, (m, k)), _bytes(rng, (k, n))
    zeros = {
        "za": _bytes(rng, ()).astype(a.dtype),
        "zb": _bytes(rng, rng.choice([(), (n,)])).astype(b.dtype),
    }

    def function(a: Tensor, b: Tensor, za: Tensor, zb: Tensor) -> Tensor:
        return ((a.long() - za.long()) @ (b.long() - zb.long())).to(torch.int32)

    return Sample({"a": a, "b": b, **zeros}, function)


def _linear(rng: random.Random) -> Sample:
    """Scales that are powers of two, so that every factor is exact."""
    m, n, k = rng.choice([1, 2, 5]), rng.choice([1, 3, 8]), rng.choice([1, 4, 33])
    a, b = _bytes(rng, (m, k)), _bytes(rng, (k, n))
    made, elem = np.random.default_rng(rng.getrandbits(32)), a.dtype
    zero = [made.integers(0, 100, ()).astype(e) for e in (elem, b.dtype, elem)]
    scales = [np.asarray(2.0 ** rng.randint(-6, 0), dtype=np.float32) for _ in range(3)]
    if rng.random() < 0.4:  # one for each column
        scales[1] = np.exp2(made.integers(-6, 1, n)).astype(np.float32)
        zero[1] = made.integers(0, 100, n).astype(b.dtype)
    low, high = _limits(str(elem))

    def function(**given: Tensor) -> Tensor:
        a, sa, za, b, sb, zb, s, z = given.values()
        found = (a.long() - za.long()) @ (b.long() - zb.long())
        return ((found * sa * sb / s).round() + z).clamp(low, high).to(torch.int64)

    names = ("a", "sa", "za", "b", "sb", "zb", "s", "z")
    held = (a, scales[0], zero[0], b, scales[1], zero[1], scales[2], zero[2])
    return Sample(dict(zip(names, held, strict=True)), function)


def _convolution(rng: random.Random) -> Sample:
    """Padding is the zero point; one zero point of the weights."""
    x, w = _bytes(rng, (rng.choice([1, 2]), 3, 5, 6)), _bytes(rng, (rng.choice([1, 4]), 3, 2, 3))
    zx, zw = _bytes(rng, ()).astype(x.dtype), _bytes(rng, ()).astype(w.dtype)
    pad = rng.randint(0, 1)

    def function(x: Tensor, w: Tensor, zx: Tensor, zw: Tensor) -> Tensor:
        left, right = (x.double() - zx.double()), (w.double() - zw.double())
        return torch.nn.functional.conv2d(left, right, padding=pad).to(torch.int32)

    return Sample({"x": x, "w": w, "zx": zx, "zw": zw}, function, attributes={"pads": [pad] * 4})


def _rows() -> Iterator[Row]:
    for dtype in (REAL, WIDE, WHOLE, LONG, HUGE, TRUTH):
        claim, slow = DTYPES[dtype].value, dtype != WHOLE
        yield Row(
            "ScatterElements", claim, dtype, _scatter_elements(dtype), SUM, range(1, 5), slow=slow
        )
        yield Row("ScatterND", claim, dtype, _scatter_nd(dtype), SUM, range(1, 5), slow=True)
    for dtype in (REAL, WIDE, WHOLE, LONG, HUGE):
        sample = _cumulative_product(dtype)
        claim = DTYPES[dtype].value
        yield Row("CumProd", claim, dtype, sample, PRODUCT, range(1, 6), opset=26)
    some = range(1, 5)
    yield Row("QuantizeLinear", "Float", "", _quantize, MOVE, some, opset=21)
    yield Row("DequantizeLinear", "Int", REAL, _dequantize, ELEMENTWISE, some, opset=21)
    yield Row("DynamicQuantizeLinear", "Float", "uint8", _dynamic, MOVE, some)
    yield Row("MatMulInteger", "Int", WHOLE, _integers, MOVE, range(2, 3))
    yield Row("QLinearMatMul", "Int", "", _linear, MOVE, range(2, 3))
    yield Row("ConvInteger", "Int", WHOLE, _convolution, MOVE, range(4, 5))


ROWS: tuple[Row, ...] = tuple(_rows())
