"""Rows of the operators that only move elements."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from math import prod

import numpy as np
import torch
from operator_rows import (
    DTYPES,
    Row,
    Sample,
    Shape,
    part_of,
    random_shape,
    signed,
    values,
)

from pycompiler.tolerance import MOVE

MOST = 240  # elements: an axis that two shapes split differently must fit one PE

Draw = Callable[[random.Random, str], Sample]


def _ints(*found: int) -> np.ndarray:
    return np.array(found, dtype=np.int64)


def _drawn(rng: random.Random, dtype: str, least: int = 1, most: int = 6) -> tuple[Shape, int]:
    """A shape, and one of its axes."""
    shape = random_shape(rng, least, most, MOST)
    return shape, rng.randrange(len(shape))


def reshape(rng: random.Random, dtype: str) -> Sample:
    shape = random_shape(rng, 0, 6, MOST)
    count, goal = prod(shape), []
    while count > 1 and len(goal) < 5:
        goal.append(rng.choice([f for f in range(1, count + 1) if count % f == 0]))
        count //= goal[-1]
    if shape or rng.random() < 0.5:
        goal.append(count)
    said = list(goal)
    if said and rng.random() < 0.3:
        said[rng.randrange(len(said))] = -1
    return Sample(
        {"x": values(rng, dtype, shape), "shape": np.array(said, dtype=np.int64)},
        lambda x, shape: x.reshape(goal),
        frozenset({"shape"}),
    )


def flatten(rng: random.Random, dtype: str) -> Sample:
    shape = random_shape(rng, 0, 6, MOST)
    axis = rng.randint(0, len(shape))
    said = axis - len(shape) if 0 < axis < len(shape) and rng.random() < 0.5 else axis
    rows = prod(shape[:axis])
    return Sample(
        {"x": values(rng, dtype, shape)},
        lambda x: x.reshape(rows, -1),
        attributes={"axis": said},
    )


def squeeze(rng: random.Random, dtype: str) -> Sample:
    shape, axis = _drawn(rng, dtype, 1, 5)
    shape = (*shape[:axis], 1, *shape[axis + 1 :])
    axes = [a for a, size in enumerate(shape) if size == 1 and (a == axis or rng.random() < 0.5)]
    said = [signed(rng, a, len(shape)) for a in axes]
    return Sample(
        {"x": values(rng, dtype, shape), "axes": _ints(*said)},
        lambda x, axes: x.squeeze(tuple(said)),
        frozenset({"axes"}),
    )


def unsqueeze(rng: random.Random, dtype: str) -> Sample:
    shape = random_shape(rng, 0, 4, MOST)
    rank = len(shape) + rng.randint(1, 2)
    axes = sorted(rng.sample(range(rank), rank - len(shape)))
    said = [signed(rng, a, rank) for a in axes]

    def function(x: torch.Tensor, axes: torch.Tensor) -> torch.Tensor:
        for axis in sorted(a % rank for a in said):
            x = x.unsqueeze(axis)
        return x

    operands = {"x": values(rng, dtype, shape), "axes": _ints(*said)}
    return Sample(operands, function, frozenset({"axes"}))


def transpose(rng: random.Random, dtype: str) -> Sample:
    shape, _ = _drawn(rng, dtype)
    order = rng.sample(range(len(shape)), len(shape))
    return Sample(
        {"x": values(rng, dtype, shape)}, lambda x: x.permute(order), attributes={"perm": order}
    )


def pick_slice(rng: random.Random, dtype: str) -> Sample:
    shape, first = _drawn(rng, dtype)
    axes = sorted({first, *(a for a in range(len(shape)) if rng.random() < 0.25)})
    rng.shuffle(axes)
    picked = [slice(None)] * len(shape)
    said: dict[str, list[int]] = {"starts": [], "ends": [], "axes": [], "steps": []}
    for axis in axes:
        size = shape[axis]
        step = rng.choice([1, 1, 2, 3, -1, -2])
        low = rng.randrange(size)
        high = rng.randint(low + 1, size)
        picked[axis] = slice(low, high, abs(step))
        start, end = (low, high) if step > 0 else (high - 1, low - 1)
        if step < 0:  # the same elements, from the end
            picked[axis] = slice(low, high)
        if step < 0 and end < 0:
            end = -size - 1
        elif end == size and rng.random() < 0.5:
            end = np.iinfo(np.int64).max
        elif rng.random() < 0.5:
            end -= size if 0 < end < size else 0
        for name, number in zip(said, (start, end, signed(rng, axis, len(shape)), step)):  # noqa: B905
            said[name].append(number)

    def function(x: torch.Tensor, **_: torch.Tensor) -> torch.Tensor:
        found = x[tuple(picked)]
        for axis, step in zip(axes, said["steps"], strict=True):
            if step < 0:
                index = torch.arange(found.shape[axis] - 1, -1, step)
                found = found.index_select(axis, index)
        return found

    operands = {"x": values(rng, dtype, shape), **{n: _ints(*v) for n, v in said.items()}}
    return Sample(operands, function, frozenset(said))


def concat(rng: random.Random, dtype: str) -> Sample:
    shape, axis = _drawn(rng, dtype)
    shape = random_shape(rng, len(shape), len(shape), MOST // 3)
    parts = {
        f"x{i}": values(
            rng, dtype, (*shape[:axis], rng.choice([shape[axis], 1, 2]), *shape[axis + 1 :])
        )
        for i in range(rng.randint(1, 3))
    }
    said = signed(rng, axis, len(shape))
    return Sample(parts, lambda **x: torch.cat([*x.values()], axis), attributes={"axis": said})


def split(rng: random.Random, dtype: str) -> Sample:
    shape, axis = _drawn(rng, dtype)
    size = shape[axis]
    said = signed(rng, axis, len(shape))
    x = values(rng, dtype, shape)
    if rng.random() < 0.3:
        # Equal parts, of which the last may be shorter.
        count = rng.randint(1, size)
        each = -(-size // count)
        count = -(-size // each)
        return Sample(
            {"x": x},
            lambda x: x.split(each, axis),
            attributes={"axis": said, "num_outputs": count},
            outputs=count,
        )
    cuts = sorted(rng.sample(range(1, size), min(size - 1, rng.randint(0, 2))))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    return Sample(
        {"x": x, "split": _ints(*sizes)},
        lambda x, split: x.split(sizes, axis),
        frozenset({"split"}),
        {"axis": said},
        outputs=len(sizes),
    )


def expand(rng: random.Random, dtype: str) -> Sample:
    wide = random_shape(rng, 0, 6, MOST)
    shape = part_of(rng, wide)
    # ONNX's Expand allows size 1 where the input is longer.
    said = [1 if rng.random() < 0.2 else size for size in wide]
    full = tuple(np.broadcast_shapes(shape, tuple(said)))
    return Sample(
        {"x": values(rng, dtype, shape), "shape": np.array(said, dtype=np.int64)},
        lambda x, shape: x.expand(full),
        frozenset({"shape"}),
    )


def pad(rng: random.Random, dtype: str) -> Sample:
    shape = random_shape(rng, 1, 6, 60)
    rank = len(shape)
    axes = sorted(rng.sample(range(rank), min(rank, rng.randint(1, 2))))
    ends = {axis: (rng.randint(0, 2), rng.randint(0, 2)) for axis in axes}
    while prod(size + sum(ends.get(axis, (0, 0))) for axis, size in enumerate(shape)) > MOST:
        ends[axes.pop()] = (0, 0)
    filler = values(rng, dtype, ()) if rng.random() < 0.7 else None
    value = 0 if filler is None else filler.item()
    operands = {"x": values(rng, dtype, shape), "pads": _ints(), "value": filler, "axes": None}
    if not axes or rng.random() < 0.5:
        operands["pads"] = _ints(*(ends.get(a, (0, 0))[p] for p in (0, 1) for a in range(rank)))
    else:
        operands["pads"] = _ints(*(ends[axis][place] for place in (0, 1) for axis in axes))
        operands["axes"] = _ints(*(signed(rng, axis, rank) for axis in axes))
    inner = tuple(
        slice(ends.get(axis, (0, 0))[0], ends.get(axis, (0, 0))[0] + size)
        for axis, size in enumerate(shape)
    )

    def function(x: torch.Tensor, **_: torch.Tensor) -> torch.Tensor:
        # F.pad converts its value to a float
        whole = [size + sum(ends.get(axis, (0, 0))) for axis, size in enumerate(shape)]
        found = torch.full(whole, value, dtype=x.dtype)
        found[inner] = x
        return found

    return Sample(operands, function, frozenset({"pads", "value", "axes"}))


def pad_by_repeating(rng: random.Random, dtype: str) -> Sample:
    """Draw a Pad that repeats elements of the input."""
    shape = random_shape(rng, 1, 4, 40)
    mode = rng.choice(["reflect", "edge", "wrap"])
    ends = [
        [rng.randint(0, min(2, size - (mode == "reflect"))) for size in shape] for _ in range(2)
    ]
    pairs = list(zip(*ends, strict=True))

    def function(x: torch.Tensor, **_: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = x
        for axis, pair in enumerate(pairs):
            places = np.pad(np.arange(shape[axis]), pair, mode=mode)
            found = found.index_select(axis, torch.from_numpy(places))
        return found

    operands = {"x": values(rng, dtype, shape), "pads": _ints(*ends[0], *ends[1])}
    return Sample(operands, function, frozenset({"pads"}), {"mode": mode})


def any_pad(rng: random.Random, dtype: str) -> Sample:
    """Draw a Pad in any mode."""
    return (pad if rng.random() < 0.6 else pad_by_repeating)(rng, dtype)


_DRAWS: dict[str, tuple[Draw, range]] = {
    "Reshape": (reshape, range(7)),
    "Flatten": (flatten, range(7)),
    "Squeeze": (squeeze, range(1, 6)),
    "Unsqueeze": (unsqueeze, range(5)),
    "Transpose": (transpose, range(1, 7)),
    "Slice": (pick_slice, range(1, 7)),
    "Concat": (concat, range(1, 7)),
    "Split": (split, range(1, 7)),
    "Expand": (expand, range(7)),
    "Pad": (any_pad, range(1, 7)),
}


def _rows() -> Iterator[Row]:
    for op, (draw, ranks) in _DRAWS.items():
        for dtype, claim in DTYPES.items():

            def sample(rng: random.Random, draw: Draw = draw, dtype: str = dtype) -> Sample:
                return draw(rng, dtype)

            yield Row(op, claim.value, dtype, sample, MOVE, ranks)


ROWS: tuple[Row, ...] = tuple(_rows())
