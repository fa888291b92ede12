"""Rows of ReverseSequence, TensorScatter, AffineGrid, RoiAlign; Mod and Swish with attributes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from operator_rows import (
    DTYPES,
    LONG,
    NATURAL,
    REAL,
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
from operator_sums import STEPS
from torchvision.ops import roi_align

from pycompiler.tolerance import FUNCTION, MOVE, SUM

F = torch.nn.functional


def _reverse(dtype: str) -> Callable[[random.Random], Sample]:
    """Sequences of every length from 0 on, with time on either of the first axes."""

    def sample(rng: random.Random) -> Sample:
        shape, time = random_shape(rng, 2, 5, 120), rng.randint(0, 1)
        lengths = np.array([rng.randint(0, shape[time]) for _ in range(shape[1 - time])])

        def function(x: Tensor, lengths: Tensor) -> Tensor:
            found = x.movedim(time, 1).clone()
            for own, length in zip(found, lengths.tolist(), strict=True):
                own[:length] = own[:length].flip(0)
            return found.movedim(1, time)

        facts = {"time_axis": time, "batch_axis": 1 - time}
        if time == 0 and rng.random() < 0.5:
            facts = {}
        fixed = frozenset(rng.choice([[], ["lengths"]]))
        operands = {"x": values(rng, dtype, shape), "lengths": lengths.astype(LONG)}
        return Sample(operands, function, fixed, facts)

    return sample


def _tensor_scatter(dtype: str) -> Callable[[random.Random], Sample]:
    """Places that are left out, known or computed; circular ones come round."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 2, 5, 120)
        axis, kind = rng.randrange(1, len(shape)), rng.choice(["none", "known", "given", "given"])
        size, circular = shape[axis], rng.random() < 0.5
        count = rng.randint(1, min(size, 4 if kind == "given" else size))
        part = tuple(count if at == axis else n for at, n in enumerate(shape))
        most = 2 * size if circular else size - count
        first = np.array([rng.randint(0, most)] * shape[0], np.int64)
        if kind == "given":
            first = np.array([rng.randint(0, most) for _ in first], np.int64)

        def function(x: Tensor, update: Tensor, first: Tensor | None = None) -> Tensor:
            found = x.movedim(axis, 1).clone()
            starts = [0] * shape[0] if first is None else first.tolist()
            for own, new, start in zip(found, update.movedim(axis, 1), starts, strict=True):
                for step in range(count):
                    own[(start + step) % size] = new[step]
            return found.movedim(1, axis)

        facts: dict[str, Any] = {"axis": signed(rng, axis, len(shape))}
        if circular:
            facts["mode"] = "circular"
        operands = {
            "x": values(rng, dtype, shape),
            "update": values(rng, dtype, part),
            "first": None if kind == "none" else first,
        }
        fixed = frozenset({"first"} if kind == "known" else ())
        return Sample(operands, function, fixed, facts)

    return sample


def _affine_grid(rng: random.Random) -> Sample:
    rank, count, corners = rng.choice([2, 2, 3]), rng.choice([1, 2, 3]), rng.randint(0, 1)
    size = (count, rng.choice([1, 3]), *(rng.choice([2, 3, 4, 7]) for _ in range(rank)))
    theta = normal(rng, (count, rank, rank + 1))

    def function(theta: Tensor, size_: Tensor) -> Tensor:
        return F.affine_grid(theta, list(size), bool(corners))

    operands = {"theta": theta, "size_": np.array(size, np.int64)}
    facts = {} if not corners and rng.random() < 0.5 else {"align_corners": corners}
    terms, scale = rank + 1 + STEPS, float(np.abs(theta).max())
    return Sample(operands, function, frozenset({"size_"}), facts, terms=terms, scale=scale)


def _largest(
    x: Tensor, boxes: Tensor, goal: tuple[int, int], scale: float, ratio: int, aligned: bool
) -> Tensor:
    """Return the largest share of a place near the samples of each bin, as ONNX has it."""
    found = torch.zeros(len(boxes), x.shape[1], *goal, dtype=x.dtype)
    for number, (picture, *ends) in enumerate(boxes.tolist()):
        shares = []  # of the rows, then of the columns: by bin, the places with their shares
        for axis in (0, 1):
            start, end = (ends[1 - axis + far] * scale - aligned / 2 for far in (0, 2))
            length = end - start if aligned else max(end - start, 1.0)
            count, size = goal[axis], x.shape[2 + axis]
            samples = ratio or math.ceil(length / count)
            bins: list[list[tuple[int, float]]] = [[] for _ in range(count)]
            for sample in range(count * samples):
                at = start + length * (sample + 0.5) / (count * samples)
                near, inside = min(max(at, 0.0), size - 1.0), float(-1 <= at <= size)
                low = int(near)
                bins[sample // samples] += [
                    (low, inside * (low + 1 - near)),
                    (min(low + 1, size - 1), inside * (near - low)),
                ]
            shares.append(bins)
        for row, rows in enumerate(shares[0]):
            for column, columns in enumerate(shares[1]):
                parts = [x[int(picture), :, r, c] * a * b for r, a in rows for c, b in columns]
                if parts:
                    found[number, :, row, column] = torch.stack(parts).amax(0)
    return found


def _roi_align(rng: random.Random) -> Sample:
    """Regions inside of pictures, across their edges and beyond, some smaller than a place."""
    sizes = rng.choice([1, 3, 5, 8]), rng.choice([2, 4, 7])
    batch, count, channels = rng.choice([1, 2, 3]), rng.choice([1, 2, 4]), rng.choice([1, 3])
    goal, aligned = (rng.choice([1, 2, 3]), rng.choice([1, 2, 4])), rng.random() < 0.5
    scale, ratio = rng.choice([1.0, 0.5]), rng.choice([0, 1, 2])
    largest = rng.random() < 0.5
    made = np.random.default_rng(rng.getrandbits(32))
    start = made.uniform(-2, 6, (count, 2)) / scale
    regions = np.concatenate([start, start + made.uniform(0.2, 6, (count, 2)) / scale], 1)
    x, index = normal(rng, (batch, channels, *sizes)), made.integers(0, batch, count)

    def function(x: Tensor, regions: Tensor, index: Tensor) -> Tensor:
        boxes = torch.cat([index.double()[:, None], regions], 1)
        if largest:
            return _largest(x, boxes, goal, scale, ratio, aligned)
        return roi_align(x, boxes, goal, scale, ratio, aligned)

    ways = "half_pixel" if aligned else "output_half_pixel"
    facts = {
        "output_height": goal[0],
        "output_width": goal[1],
        "spatial_scale": scale,
        "sampling_ratio": ratio,
        "coordinate_transformation_mode": ways,
        "mode": "max" if largest else "avg",
    }
    return Sample(
        {"x": x, "regions": regions.astype(REAL), "index": index},
        function,
        frozenset({"regions"} if not ratio or rng.random() < 0.3 else ()),
        facts,
        terms=sum(sizes) + STEPS,
        scale=16 * float(np.abs(x).max()),  # places up to 16 are rounded
    )


def _floored(rng: random.Random) -> Sample:
    """Draw multiples of an eighth, so that the sum with the divisor is exact."""
    shape = random_shape(rng, 0, 5, 200)
    shapes = [shape, part_of(rng, shape)]
    rng.shuffle(shapes)
    made = np.random.default_rng(rng.getrandbits(32))
    x, divisor = (np.asarray(made.integers(-200, 200, own)) / 8 for own in shapes)
    divisor = np.where(divisor == 0, 1.5, divisor)
    operands = {"x": x.astype(REAL), "y": divisor.astype(REAL)}
    facts = {"fmod": 0} if rng.random() < 0.5 else {}
    return Sample(operands, lambda x, y: torch.remainder(x, y), attributes=facts)


def _swish(rng: random.Random) -> Sample:
    """Factors that are powers of two, whose products are exact."""
    alpha = rng.choice([0.0, 0.5, 1.0, 4.0, -2.0])
    x = values(rng, REAL, random_shape(rng, 0, 6, 300))

    def function(x: Tensor) -> Tensor:
        return x * torch.sigmoid(x * alpha)

    return Sample({"x": x}, function, attributes={"alpha": alpha}, absolute=1e-5)


def _rows() -> Iterator[Row]:
    for dtype, claim in DTYPES.items():
        some = range(2, 6)
        yield Row("ReverseSequence", claim.value, dtype, _reverse(dtype), MOVE, some)
        if dtype != NATURAL:
            sample = _tensor_scatter(dtype)
            yield Row("TensorScatter", claim.value, dtype, sample, MOVE, some, opset=24)
    for op, made, ranks in (
        ("AffineGrid", _affine_grid, range(3, 4)),
        ("RoiAlign", _roi_align, range(4, 5)),
    ):
        yield Row(op, "Float", REAL, made, SUM, ranks, opset=22)
        yield Row(op, "Double", WIDE, widened(made), SUM, ranks, opset=22)
    yield Row("Mod", "Float", REAL, _floored, MOVE, range(6), slow=True)
    yield Row("Mod", "Double", WIDE, widened(_floored), MOVE, range(6), slow=True)
    yield Row("Swish", "Float", REAL, _swish, FUNCTION, opset=24)
    yield Row("Swish", "Double", WIDE, widened(_swish), FUNCTION, opset=24, slow=True)


ROWS: tuple[Row, ...] = tuple(_rows())
