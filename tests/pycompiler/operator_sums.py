"""Rows of reductions, matrix products and normalisations."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import torch
from operator_rows import (
    DTYPES,
    HUGE,
    LONG,
    NATURAL,
    REAL,
    TRUTH,
    WHOLE,
    WIDE,
    Row,
    Sample,
    Tensor,
    normal,
    part_of,
    random_shape,
    signed,
    values,
    widened,
)

from pycompiler.tolerance import MOVE, PRODUCT, SUM

F = torch.nn.functional
MOST = 480  # elements
#: The other operations of a composite count as this many terms of its sum.
STEPS = 8
BLOCK = 16  # terms of a block of halves


def _most(*arrays: np.ndarray) -> float:
    return float(max(np.abs(array).max() for array in arrays))


_REDUCTIONS: dict[str, Callable[[Tensor, list[int], bool], Tensor]] = {
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keep),
    "ReduceProd": lambda x, axes, keep: _product(x, axes, keep),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keep),
    "ReduceMax": lambda x, axes, keep: x.amax(axes, keep),
    "ReduceMin": lambda x, axes, keep: x.amin(axes, keep),
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keep),
    "ReduceL2": lambda x, axes, keep: x.square().sum(axes, keep).sqrt(),
    "ReduceLogSumExp": lambda x, axes, keep: x.logsumexp(axes, keep),
}
_EXACT = ("ReduceMax", "ReduceMin")


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keepdim=keep)
    return x


#: Reductions that an attribute can tell to reduce no axis.
_OPTIONAL = (*_EXACT, "ReduceSum", "ReduceMean", "ReduceProd")


def _reduction(op: str, dtype: str = REAL) -> Callable[[random.Random], Sample]:
    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 6, MOST)
        rank, keep, kind = len(shape), rng.randint(0, 1), rng.random()
        axes = rng.sample(range(rank), rng.randint(1, rank))
        said: np.ndarray | None = np.array([signed(rng, axis, rank) for axis in axes])
        facts = {"keepdims": keep}
        if kind < 0.15:  # without axes, it reduces all of them, or none if the attribute says so
            said, axes = None, list(range(rank))
            facts["noop_with_empty_axes"] = int(kind < 0.05 and op in _OPTIONAL)
        nothing = bool(facts.get("noop_with_empty_axes"))

        def function(x: Tensor, axes: Any = None, found: list[int] = axes) -> Tensor:
            if nothing:
                return x
            if dtype == TRUTH:  # torch has no extremes of truth values over several axes
                return _REDUCTIONS[op](x.int(), found, bool(keep)).bool()
            return _REDUCTIONS[op](x, found, bool(keep))

        x = normal(rng, shape) if dtype == REAL else values(rng, dtype, shape)
        if op == "ReduceSum" and x.dtype.kind != "f":  # onnxruntime adds them up as doubles
            x >>= x.dtype.type(x.dtype.itemsize * 3)
        if op == "ReduceProd" and dtype == REAL:  # no product of some elements leaves the range
            x = np.sign(x) * np.exp(x / 16) * (x < 3)
        elif op == "ReduceProd":
            signs = [1, 1, 2] if dtype == HUGE else [-1, 1, 1, 2]
            x = np.random.default_rng(rng.getrandbits(32)).choice(signs, shape).astype(dtype)
            x = np.where(np.cumsum(x.reshape(-1) == 2).reshape(shape) < 30, x, 1).astype(dtype)
        terms = 2 if op == "ReduceMean" else prod(shape[axis] for axis in axes)
        terms += 0 if op == "ReduceSum" else STEPS
        operands = {"x": x, "axes": said}
        scale = 1 + _most(x) if x.dtype.kind == "f" else 1.0
        return Sample(operands, function, frozenset({"axes"}), facts, terms=terms, scale=scale)

    return sample


SIZES = (1, 2, 3, 4, 7, 8, 10, 16, 17, 33)


def _matmul(rng: random.Random) -> Sample:
    """Batched and broadcast, or with a vector on either side."""
    m, n, k = (rng.choice(SIZES) for _ in range(3))
    batch = tuple(rng.choice([1, 2, 3]) for _ in range(rng.randint(0, 4)))
    while prod(batch) > 12:
        batch = batch[1:]
    a = normal(rng, (k,) if rng.random() < 0.1 else (*part_of(rng, batch), m, k))
    b = normal(rng, (k,) if rng.random() < 0.1 else (*part_of(rng, batch), k, n))
    fixed = frozenset(rng.choice(["", "", "a", "b"]))
    return Sample({"a": a, "b": b}, lambda a, b: a @ b, fixed, terms=k, scale=_most(a) * _most(b))


def _matmul_of_halves(rng: random.Random) -> Sample:
    """Draw factors that come from the host, with whole blocks."""
    m, n, k = rng.choice(SIZES), rng.choice(SIZES), rng.choice([BLOCK, 2 * BLOCK])
    batch = tuple(rng.choice([1, 2, 3]) for _ in range(rng.randint(0, 2)))
    a, b = normal(rng, (*batch, m, k)), normal(rng, (k, n))
    scale = _most(a) * _most(b)
    return Sample({"a": a, "b": b}, lambda a, b: a @ b, frozenset("b"), terms=k, scale=scale)


def _gemm(halves: bool) -> Callable[[random.Random], Sample]:
    """All transpositions; factors, and a C of any shape that broadcasts."""

    def sample(rng: random.Random) -> Sample:
        m, n = rng.choice(SIZES), rng.choice(SIZES)
        k = rng.choice([BLOCK, 2 * BLOCK] if halves else SIZES)
        left, right = rng.randint(0, 1), rng.randint(0, 1)
        alpha, beta = (rng.choice([1.0, 1.0, 0.5, -1.5]) for _ in range(2))
        a, b = normal(rng, (k, m) if left else (m, k)), normal(rng, (n, k) if right else (k, n))
        shape = rng.choice([None, (n,), (1, n), (m, 1), (1,), (), (m, n)])
        c = None if shape is None else normal(rng, shape)

        def function(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
            found = alpha * ((a.T if left else a) @ (b.T if right else b))
            return found if c is None else found + beta * c

        bias = 0.0 if c is None else _most(c) * abs(beta)
        return Sample(
            {"a": a, "b": b, "c": c},
            function,
            frozenset("bc" if halves or rng.random() < 0.5 else ""),
            {"transA": left, "transB": right, "alpha": alpha, "beta": beta},
            terms=k + 1,
            scale=max(_most(a) * _most(b) * max(1.0, abs(alpha)), bias),
        )

    return sample


def _softmax(rng: random.Random) -> Sample:
    shape = random_shape(rng, 1, 6, MOST)
    axis = signed(rng, rng.randrange(len(shape)), len(shape))
    x = normal(rng, shape) * 4
    terms = shape[axis] + STEPS
    return Sample({"x": x}, lambda x: x.softmax(axis), attributes={"axis": axis}, terms=terms)


def _log_softmax(rng: random.Random) -> Sample:
    shape = random_shape(rng, 1, 6, MOST)
    axis = signed(rng, rng.randrange(len(shape)), len(shape))
    x = normal(rng, shape) * 4
    return Sample(
        {"x": x},
        lambda x: x.log_softmax(axis),
        attributes={"axis": axis},
        terms=shape[axis] + STEPS,
        scale=2 * _most(x) + 1,
    )


def _layer_norm(rng: random.Random) -> Sample:
    shape = random_shape(rng, 1, 6, MOST)
    axis = rng.randrange(len(shape))
    own = shape[axis:]
    x, scale = normal(rng, shape), normal(rng, own)
    bias = normal(rng, own) if rng.random() < 0.7 else None
    epsilon = rng.choice([2.0**-17, 2.0**-7])
    spread = np.sqrt(x.var(tuple(range(axis, len(shape)))) + epsilon).min()

    def function(x: Tensor, s: Tensor, b: Tensor | None = None) -> Tensor:
        return F.layer_norm(x, own, s, b, epsilon)

    return Sample(
        {"x": x, "s": scale, "b": bias},
        function,
        frozenset("sb") if rng.random() < 0.5 else frozenset(),
        {"axis": signed(rng, axis, len(shape)), "epsilon": epsilon},
        terms=prod(own) + STEPS,
        scale=2 * _most(x) / float(spread) * _most(scale) + (0 if bias is None else _most(bias)),
    )


def _rms_norm(rng: random.Random) -> Sample:
    shape = random_shape(rng, 1, 6, MOST)
    axis = rng.randrange(len(shape))
    own = shape[axis:]
    x, scale = normal(rng, shape), normal(rng, own)
    epsilon = rng.choice([2.0**-17, 2.0**-7])
    spread = np.sqrt((x * x).mean(tuple(range(axis, len(shape)))) + epsilon).min()
    return Sample(
        {"x": x, "s": scale},
        lambda x, s: F.rms_norm(x, own, s, epsilon),
        frozenset("s") if rng.random() < 0.5 else frozenset(),
        {"axis": signed(rng, axis, len(shape)), "epsilon": epsilon},
        terms=prod(own) + STEPS,
        scale=_most(x) / float(spread) * _most(scale),
    )


def _batch_norm(rng: random.Random) -> Sample:
    """In inference, or in training with all three outputs."""
    shape = random_shape(rng, 2, 6, MOST)
    scale, bias, mean, spread = (normal(rng, shape[1:2]) for _ in range(4))
    spread, x = np.abs(spread) + np.float32(0.25), normal(rng, shape)
    epsilon, trains = rng.choice([2.0**-17, 2.0**-7]), rng.random() < 0.4
    momentum = rng.choice([0.875, 0.75])
    inner = tuple(axis for axis in range(len(shape)) if axis != 1)
    least = float((x.var(inner) + epsilon).min() if trains else spread.min())

    def function(x: Tensor, s: Tensor, b: Tensor, m: Tensor, v: Tensor) -> Any:
        if not trains:
            return F.batch_norm(x, m, v, s, b, False, 0.1, epsilon)
        found, moved = x.mean(inner), x.var(inner, unbiased=False)
        running = (momentum * old + (1 - momentum) * new for old, new in ((m, found), (v, moved)))
        return F.batch_norm(x, found, moved, s, b, False, 0.1, epsilon), *running

    return Sample(
        {"x": x, "s": scale, "b": bias, "m": mean, "v": spread},
        function,
        frozenset("sbmv") if rng.random() < 0.5 else frozenset(),
        {"epsilon": epsilon, "training_mode": int(trains), "momentum": momentum},
        outputs=3 if trains else 1,
        terms=STEPS + (x.size // shape[1] if trains else 0),
        scale=2 * (_most(x) + _most(mean)) / np.sqrt(least) * _most(scale)
        + _most(bias)
        + _most(spread)
        + (_most(x) ** 2 if trains else 0),
    )


def _instance_norm(rng: random.Random) -> Sample:
    shape = (*random_shape(rng, 2, 2, 24), *random_shape(rng, 1, 4, 20))
    inner = tuple(range(2, len(shape)))
    x, scale, bias = normal(rng, shape), normal(rng, shape[1:2]), normal(rng, shape[1:2])
    epsilon = rng.choice([2.0**-17, 2.0**-7])
    spread = np.sqrt(x.var(inner) + epsilon).min()
    wide = (-1, *[1] * len(inner))

    def function(x: Tensor, s: Tensor, b: Tensor) -> Tensor:
        deviation = torch.sqrt(x.var(inner, unbiased=False, keepdim=True) + epsilon)
        normal = (x - x.mean(inner, keepdim=True)) / deviation
        return normal * s.reshape(wide) + b.reshape(wide)

    return Sample(
        {"x": x, "s": scale, "b": bias},
        function,
        frozenset("sb") if rng.random() < 0.5 else frozenset(),
        {"epsilon": epsilon},
        terms=prod(shape[2:]) + STEPS,
        scale=2 * _most(x) / float(spread) * _most(scale) + _most(bias),
    )


def _lp_normalization(rng: random.Random) -> Sample:
    shape = random_shape(rng, 1, 6, MOST)
    axis, power = rng.randrange(len(shape)), rng.choice([1, 2])
    x = normal(rng, shape)
    x[(*[slice(None)] * axis, slice(None), *[0] * (len(shape) - axis - 1))] *= rng.choice([0, 1])

    def function(x: Tensor) -> Tensor:
        norm = x.norm(power, axis, keepdim=True)
        return x / torch.where(norm == 0, 1.0, norm)

    facts = {"axis": signed(rng, axis, len(shape)), "p": power}
    return Sample({"x": x}, function, attributes=facts, terms=shape[axis] + STEPS, scale=1.0)


def _hardmax(rng: random.Random) -> Sample:
    """Draw few different numbers, so that the largest stands in several places."""
    shape = random_shape(rng, 1, 6, MOST)
    axis = rng.randrange(len(shape))
    x = np.round(normal(rng, shape))

    def function(x: Tensor) -> Tensor:
        largest = x == x.amax(axis, keepdim=True)
        return (largest & (largest.cumsum(axis) == 1)).to(x.dtype)

    return Sample({"x": x}, function, attributes={"axis": signed(rng, axis, len(shape))})


FLOAT, HALF, DOUBLE = "Float", "Half", "Double"
SOME = range(1, 7)
ROWS: tuple[Row, ...] = (
    Row("ReduceSum", FLOAT, REAL, _reduction("ReduceSum"), SUM, SOME),
    Row("ReduceProd", FLOAT, REAL, _reduction("ReduceProd"), PRODUCT, SOME),
    *(
        Row(op, DTYPES[dtype].value, dtype, _reduction(op, dtype), error, SOME)
        for op, error, dtypes in (
            ("ReduceSum", SUM, (WHOLE, LONG, HUGE)),
            ("ReduceProd", PRODUCT, (WHOLE, LONG, HUGE)),
            ("ReduceMax", MOVE, (WHOLE, LONG, NATURAL, HUGE, TRUTH)),
            ("ReduceMin", MOVE, (WHOLE, LONG, NATURAL, HUGE, TRUTH)),
        )
        for dtype in dtypes
    ),
    *(
        Row(op, DOUBLE, WIDE, widened(sample), error, ranks, opset=opset)
        for op, sample, error, ranks, opset in (
            ("ReduceSum", _reduction("ReduceSum"), SUM, SOME, 20),
            ("ReduceMean", _reduction("ReduceMean"), SUM, SOME, 20),
            ("ReduceMax", _reduction("ReduceMax"), MOVE, SOME, 20),
            ("ReduceMin", _reduction("ReduceMin"), MOVE, SOME, 20),
            ("ReduceL1", _reduction("ReduceL1"), SUM, SOME, 20),
            ("ReduceL2", _reduction("ReduceL2"), SUM, SOME, 20),
            ("ReduceLogSumExp", _reduction("ReduceLogSumExp"), SUM, SOME, 20),
            ("MatMul", _matmul, SUM, SOME, 20),
            ("Gemm", _gemm(False), SUM, range(2, 3), 20),
            ("Softmax", _softmax, SUM, SOME, 20),
            ("LogSoftmax", _log_softmax, SUM, SOME, 20),
            ("LayerNormalization", _layer_norm, SUM, SOME, 20),
            ("RMSNormalization", _rms_norm, SUM, SOME, 23),
            ("ReduceProd", _reduction("ReduceProd"), PRODUCT, SOME, 20),
            ("Hardmax", _hardmax, MOVE, SOME, 20),
            ("LpNormalization", _lp_normalization, SUM, SOME, 20),
            ("InstanceNormalization", _instance_norm, SUM, range(3, 7), 20),
            ("BatchNormalization", _batch_norm, SUM, range(2, 7), 20),
        )
    ),
    Row("ReduceMean", FLOAT, REAL, _reduction("ReduceMean"), SUM, SOME),
    Row("ReduceMax", FLOAT, REAL, _reduction("ReduceMax"), MOVE, SOME),
    Row("ReduceMin", FLOAT, REAL, _reduction("ReduceMin"), MOVE, SOME),
    Row("ReduceL1", FLOAT, REAL, _reduction("ReduceL1"), SUM, SOME),
    Row("ReduceL2", FLOAT, REAL, _reduction("ReduceL2"), SUM, SOME),
    Row("ReduceLogSumExp", FLOAT, REAL, _reduction("ReduceLogSumExp"), SUM, SOME),
    Row("Hardmax", FLOAT, REAL, _hardmax, MOVE, SOME),
    Row("LpNormalization", FLOAT, REAL, _lp_normalization, SUM, SOME),
    Row("InstanceNormalization", FLOAT, REAL, _instance_norm, SUM, range(3, 7)),
    Row("MatMul", FLOAT, REAL, _matmul, SUM, SOME),
    Row("MatMul", HALF, REAL, _matmul_of_halves, SUM, range(2, 5)),
    Row("Gemm", FLOAT, REAL, _gemm(False), SUM, range(2, 3)),
    Row("Gemm", HALF, REAL, _gemm(True), SUM, range(2, 3)),
    Row("Softmax", FLOAT, REAL, _softmax, SUM, SOME),
    Row("LogSoftmax", FLOAT, REAL, _log_softmax, SUM, SOME),
    Row("LayerNormalization", FLOAT, REAL, _layer_norm, SUM, SOME),
    Row("RMSNormalization", FLOAT, REAL, _rms_norm, SUM, SOME, opset=23),
    Row("BatchNormalization", FLOAT, REAL, _batch_norm, SUM, range(2, 7)),
)
