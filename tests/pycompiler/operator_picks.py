"""Rows of the operators that pick by index, and of the losses."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from operator_rows import (
    DTYPES,
    HUGE,
    LONG,
    NUMBERS,
    REAL,
    REALS,
    WHOLE,
    WIDE,
    Row,
    Sample,
    Tensor,
    normal,
    random_shape,
    signed,
    values,
    widened,
)
from operator_sums import STEPS

from pycompiler.tolerance import MOVE, SUM

F = torch.nn.functional


def _indices(rng: random.Random, size: int, shape: tuple[int, ...]) -> np.ndarray:
    """Both ends of an axis, and counted from its end."""
    made = np.random.default_rng(rng.getrandbits(32))
    found = made.integers(-size, size, shape)
    return found.astype(rng.choice([WHOLE, LONG]))


def _gather(dtype: str) -> Callable[[random.Random], Sample]:
    """An index of any rank, or one constant place."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 4, 48)
        axis, inner = rng.randrange(len(shape)), rng.randint(0, 2)
        single = rng.random() < 0.2
        index = _indices(rng, shape[axis], (1,) * inner if single else (3, 2)[:inner])

        def function(x: Tensor, i: Tensor) -> Tensor:
            whole = i.long() % shape[axis]
            found = x.index_select(axis, whole.reshape(-1))
            return found.reshape((*shape[:axis], *index.shape, *shape[axis + 1 :]))

        facts = {"axis": signed(rng, axis, len(shape))}
        fixed = frozenset("i") if single or rng.random() < 0.2 else frozenset()
        return Sample({"x": values(rng, dtype, shape), "i": index}, function, fixed, facts)

    return sample


def _gather_elements(dtype: str) -> Callable[[random.Random], Sample]:
    """An index that may be shorter than the table."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 5, 90)
        axis = rng.randrange(len(shape))
        wanted = tuple(
            rng.randint(1, 4) if place == axis else rng.randint(max(1, size - 1), size)
            for place, size in enumerate(shape)
        )
        return Sample(
            {"x": values(rng, dtype, shape), "i": _indices(rng, shape[axis], wanted)},
            lambda x, i: x.gather(axis, i.long() % shape[axis]),
            attributes={"axis": signed(rng, axis, len(shape))},
        )

    return sample


def _gather_nd(dtype: str) -> Callable[[random.Random], Sample]:
    """Indices of one or more numbers, in some samples one list for each of a batch."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 4, 90)
        batches = rng.randint(0, min(2, len(shape) - 1))
        sizes = shape[batches : rng.randint(batches + 1, len(shape))]
        outer = (*shape[:batches], *(2, 3)[: rng.randint(0, 2)])
        parts = [_indices(rng, size, outer).astype(LONG) for size in sizes]

        def function(x: Tensor, i: Tensor) -> Tensor:
            own = [torch.arange(size) for size in shape[:batches]]
            front = [
                places.reshape(-1, *[1] * (len(outer) - 1 - axis))
                for axis, places in enumerate(own)
            ]
            return x[(*front, *(i[..., place] % size for place, size in enumerate(sizes)))]

        facts = {"batch_dims": batches} if batches or rng.random() < 0.5 else {}
        operands = {"x": values(rng, dtype, shape), "i": np.stack(parts, -1)}
        return Sample(operands, function, attributes=facts)

    return sample


def _one_hot(dtype: str, result: str) -> Callable[[random.Random], Sample]:
    """Indices out of range hit nothing."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 5, 60)
        size = rng.randint(1, 9)
        made = np.random.default_rng(rng.getrandbits(32))
        index = made.integers(0 if dtype == HUGE else -size - 2, size + 2, shape).astype(dtype)
        ends = values(rng, result, (2,))
        axis = signed(rng, rng.randint(0, len(shape)), len(shape) + 1)

        def function(i: Tensor, depth: Tensor, ends: Tensor) -> Tensor:
            whole = torch.where(i < 0, i + size, i)
            places = torch.arange(size)
            found = torch.where(whole[..., None] == places, ends[1], ends[0])
            return found.movedim(-1, axis)

        # onnxruntime accepts few types of the depth
        operands = {"i": index, "depth": np.array(size, dtype=dtype), "ends": ends}
        fixed = frozenset({"depth", *(["ends"] if rng.random() < 0.5 else [])})
        # ONNX's own evaluator computes off + (on - off).
        most = float(np.abs(ends.astype(np.float64)).max())
        return Sample(operands, function, fixed, {"axis": axis}, absolute=most * 2.0**-50)

    return sample


def _extreme_index(op: str, dtype: str) -> Callable[[random.Random], Sample]:
    """Draw values with many ties: the first or the last place counts."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 6, 240)
        axis, keep, last = rng.randrange(len(shape)), rng.randint(0, 1), rng.randint(0, 1)

        def function(x: Tensor) -> Tensor:
            find = torch.argmax if op == "ArgMax" else torch.argmin
            # torch promises no choice among equal elements: the first where it holds is compared.
            found = x.flip(axis) if last else x
            best = found.gather(axis, find(found, axis, True))
            place = (found == best).to(torch.int64).argmax(axis, bool(keep))
            return shape[axis] - 1 - place if last else place

        facts = {"axis": signed(rng, axis, len(shape)), "keepdims": keep, "select_last_index": last}
        x = np.round(normal(rng, shape)).astype(dtype)
        if dtype not in REALS and rng.random() < 0.5:
            x = values(rng, dtype, shape)
        return Sample({"x": x}, function, attributes=facts)

    return sample


def _loss(op: str) -> Callable[[random.Random], Sample]:
    """Weights, targets that are ignored, and all reductions."""

    def sample(rng: random.Random) -> Sample:
        rows, size = rng.randint(1, 8), rng.choice([1, 2, 5, 8])
        shape = (rows, size, *random_shape(rng, 0, 2, 6))
        made = np.random.default_rng(rng.getrandbits(32))
        target = made.integers(0, size, (rows, *shape[2:])).astype(rng.choice([WHOLE, LONG]))
        ignored = rng.choice([None, -100, -1, *([0] if size > 1 else [])])
        flat = target.reshape(-1)
        if ignored is not None and ignored < 0:
            flat[1::3] = ignored
        if ignored is not None:
            flat[0] = size - 1  # not all of them
        weight = np.abs(normal(rng, (size,))) + np.float32(0.5) if rng.random() < 0.5 else None
        reduction = rng.choice(["mean", "sum", "none"])
        x = normal(rng, shape) * 2
        facts: dict[str, Any] = {"reduction": reduction}
        if ignored is not None:
            facts["ignore_index"] = ignored
        both = op == "SoftmaxCrossEntropyLoss" and rng.random() < 0.3

        def function(x: Tensor, t: Tensor, w: Tensor | None = None) -> Any:
            chances = x.log_softmax(1) if op == "SoftmaxCrossEntropyLoss" else x
            left = -(10**6) if ignored is None else ignored
            found = F.nll_loss(chances, t.long(), w, ignore_index=left, reduction=reduction)
            return (found, chances) if both else found

        wide = 1.0 if weight is None else float(weight.max() / min(1.0, weight.min()))
        return Sample(
            {"x": x, "t": target, "w": weight},
            function,
            frozenset("w") if rng.random() < 0.5 else frozenset(),
            facts,
            outputs=1 + both,
            terms=target.size + size + STEPS,
            scale=(2 * float(np.abs(x).max()) + 3) * wide,
        )

    return sample


def _rows() -> Iterator[Row]:
    for dtype, claim in DTYPES.items():
        yield Row("Gather", claim.value, dtype, _gather(dtype), MOVE, range(1, 5))
        yield Row("GatherND", claim.value, dtype, _gather_nd(dtype), MOVE, range(1, 5))
    for dtype in NUMBERS:
        claim = DTYPES[dtype].value
        yield Row("GatherElements", claim, dtype, _gather_elements(dtype), MOVE, range(1, 6))
        for op in ("ArgMax", "ArgMin"):
            yield Row(op, claim, LONG, _extreme_index(op, dtype), MOVE, range(1, 7))
    of = {REAL: REAL, WIDE: HUGE, WHOLE: REAL, LONG: LONG, HUGE: WIDE}
    for dtype, result in of.items():
        claim = DTYPES[dtype].value
        yield Row("OneHot", claim, result, _one_hot(dtype, result), MOVE, range(1, 6))
    for op in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
        yield Row(op, "Float", REAL, _loss(op), SUM, range(2, 5))
        yield Row(op, "Double", WIDE, widened(_loss(op)), SUM, range(2, 5))


ROWS: tuple[Row, ...] = tuple(_rows())
