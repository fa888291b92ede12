"""Rows of Resize, GridSample, Col2Im, Einsum, and of operators that work along an axis."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from math import prod
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
    widened,
)

from pycompiler.tolerance import MOVE, SUM

F = torch.nn.functional
STEPS = 8  # the other operations of a composite count as this many terms of its sum
MOST = 240  # elements


def _ints(*found: int) -> np.ndarray:
    return np.array(found, dtype=np.int64)


def _resize(rng: random.Random) -> Sample:
    """The modes that torch has: by sizes or scales, in the ways that its functions take."""
    kind = rng.choice(["nearest", "exact", "linear", "linear", "cubic", "small"])
    rank = 2 if kind in ("cubic", "small") else rng.randint(1, 3)
    shape = (
        rng.choice([1, 2]),
        rng.choice([1, 3]),
        *(rng.choice([1, 2, 3, 5, 6]) for _ in range(rank)),
    )
    goal = tuple(rng.choice([size, 2 * size, 3, 4, 7]) for size in shape[2:])
    corners = kind in ("linear", "cubic") and rng.random() < 0.4
    facts: dict[str, Any] = {"mode": "linear"}
    if kind in ("nearest", "exact"):
        ways = {"nearest": "asymmetric", "exact": "half_pixel"}[kind]
        rounded = {"nearest": "floor", "exact": "round_prefer_ceil"}[kind]
        facts = {"mode": "nearest", "nearest_mode": rounded, "coordinate_transformation_mode": ways}
        # so that no place is rounded differently in single and double precision
        goal = tuple(rng.choice([size, 2 * size, 4 * size]) for size in shape[2:])
    elif kind == "small":
        facts = {"mode": rng.choice(["linear", "cubic"]), "antialias": 1, "cubic_coeff_a": -0.5}
        facts["exclude_outside"] = 1  # as torch does
        # onnxruntime and torch differ where the image grows
        goal = tuple(rng.randint(1, size) for size in shape[2:])
    elif kind == "cubic":
        facts = {"mode": "cubic"}
    if "coordinate_transformation_mode" not in facts:
        ways = "align_corners" if corners else "half_pixel"
        facts["coordinate_transformation_mode"] = ways
    mode = {"nearest": "nearest", "exact": "nearest-exact"}.get(kind) or {
        ("linear", 1): "linear",
        ("linear", 2): "bilinear",
        ("linear", 3): "trilinear",
        ("cubic", 2): "bicubic",
    }[facts["mode"], rank]
    scales, sizes = None, _ints(*shape[:2], *goal)
    if rng.random() < 0.4:
        scales, sizes = (np.asarray(goal) / shape[2:]).astype(np.float32), None
        facts["axes"] = [axis - rng.choice([0, rank + 2]) for axis in range(2, rank + 2)]
        if tuple(np.floor(scales * np.asarray(shape[2:], np.float32)).astype(int)) != goal:
            scales, sizes = None, _ints(*goal)
    x = normal(rng, shape) * 4

    def function(x: Tensor, **_: Tensor) -> Tensor:
        said = {} if "nearest" in mode else {"align_corners": corners}
        return F.interpolate(x, goal, mode=mode, antialias=kind == "small", **said)

    # torch and onnxruntime compute places in different precisions
    return Sample(
        {"x": x, "roi": None, "scales": scales, "sizes": sizes},
        function,
        frozenset({"scales", "sizes"}),
        facts,
        terms=rank * 6 + STEPS,
        scale=4 * float(np.abs(x).max()),
    )


def _resize_of_doubles(rng: random.Random) -> Sample:
    """Draw sizes: scales are singles, so torch's are others. The host's places are singles."""
    found = _resize(rng)
    if found.operands["sizes"] is None:
        return _resize_of_doubles(rng)
    return replace(found, absolute=2.0**-18 * found.scale)


#: Each mode by its name in torch.
_GRID_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


def _grid_sample(rng: random.Random) -> Sample:
    """Points in a picture and around it, at least a 16th of a place from where a mode jumps."""
    mode = rng.choice(list(_GRID_MODES))
    padding, corners = rng.choice(["zeros", "border", "reflection"]), rng.random() < 0.5
    rank = 3 if mode != "bicubic" and rng.random() < 0.2 else 2
    batch, channels = rng.choice([1, 2]), rng.choice([1, 3, 6])
    sizes = tuple(rng.choice([1, 2, 4, 5]) for _ in range(rank))
    goal = tuple(rng.choice([1, 2, 3]) for _ in range(rank))
    at = []
    for size in reversed(sizes):
        # Places from two before the first to two behind the last, in units of a 16th.
        places = np.array([rng.randint(-32, 16 * size + 16) for _ in range(batch * prod(goal))])
        places = (places + (places % 8 == 0)) / 16
        span = max(1, size - 1) if corners else size
        at.append((places + (0 if corners else 0.5)) * 2 / span - 1)
    grid = np.stack(at, -1).reshape(batch, *goal, rank).astype(np.float32)
    x = normal(rng, (batch, channels, *sizes))

    def function(x: Tensor, grid: Tensor) -> Tensor:
        return F.grid_sample(x, grid, mode, padding, corners)

    return Sample(
        {"x": x, "grid": grid},
        function,
        frozenset(rng.choice([[], ["grid"]])),
        {"mode": _GRID_MODES[mode], "padding_mode": padding, "align_corners": int(corners)},
        terms=4 ** (rank if mode == "bicubic" else 1) * rank + STEPS,
        scale=4 * float(np.abs(x).max()),
    )


def _col2im(rng: random.Random) -> Sample:
    image = (rng.choice([3, 5, 6]), rng.choice([4, 5, 7]))
    block = (rng.choice([1, 2, 3]), rng.choice([1, 2, 3]))
    strides, dilations, pads = (
        [rng.choice(n) for _ in range(2)] for n in ([1, 2], [1, 1, 2], [0, 1])
    )
    counts = [
        (image[a] + 2 * pads[a] - dilations[a] * (block[a] - 1) - 1) // strides[a] + 1
        for a in range(2)
    ]
    if min(counts) < 1:
        return _col2im(rng)
    shape = (rng.choice([1, 2]), rng.choice([1, 2]) * prod(block), prod(counts))
    x = normal(rng, shape)
    return Sample(
        {"x": x, "image": _ints(*image), "block": _ints(*block)},
        lambda x, **_: F.fold(x, image, block, dilations, pads, strides),
        frozenset({"image", "block"}),
        {"strides": strides, "dilations": dilations, "pads": pads * 2},
        terms=prod(block) + STEPS,
        scale=float(np.abs(x).max()),
    )


#: Equations, and the sizes of their labels; an ellipsis has sizes of its own.
_EQUATIONS = (
    "ij,jk->ik",
    "bij,bjk->bik",
    "bhid,bhjd->bhij",
    "bchw,bcxy->bhwxy",
    "i,j->ij",
    "ij->ji",
    "ii->i",
    "iij->j",
    "ij->",
    "ij,ij->i",
    "ij,jk,kl->il",
    "...ij,...jk->...ik",
    "...i->...",
    "bi,oi",
    "abc,cd,ae->bde",
    "abcde->edc",
)


def _einsum(rng: random.Random) -> Sample:
    equation = rng.choice(_EQUATIONS)
    sizes = {label: rng.choice([1, 2, 3, 4, 5]) for label in "abcdehijklowxy"}
    rest = random_shape(rng, 0, 2, 6)
    terms, inputs = equation.split("->")[0].split(","), {}
    for number, term in enumerate(terms):
        front = rest if term.startswith("...") else ()
        inputs[f"x{number}"] = normal(rng, (*front, *(sizes[n] for n in term.strip("."))))
    summed = {n for term in terms for n in term.strip(".")} - set(equation.partition("->")[2])
    most = float(np.prod([np.abs(x).max() for x in inputs.values()]))
    return Sample(
        inputs,
        lambda **x: torch.einsum(equation, *x.values()),
        frozenset(rng.choice([[], [], ["x0"]]) if len(inputs) > 1 else []),
        {"equation": equation},
        terms=prod(sizes[n] for n in summed) * 2 + STEPS,
        scale=most,
    )


def _tile(dtype: str) -> Callable[[random.Random], Sample]:
    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 5, 40)
        times = [rng.choice([1, 1, 2, 3]) for _ in shape]
        while prod(times) > 6:
            times[times.index(max(times))] = 1
        operands = {"x": values(rng, dtype, shape), "repeats": _ints(*times)}
        return Sample(operands, lambda x, repeats: x.tile(times), frozenset({"repeats"}))

    return sample


def _trilu(dtype: str) -> Callable[[random.Random], Sample]:
    def sample(rng: random.Random) -> Sample:
        shape, upper = random_shape(rng, 2, 5, MOST), rng.randint(0, 1)
        offset = rng.choice([None, -2, -1, 0, 1, 3])
        k = None if offset is None else np.array(offset, dtype=np.int64)
        facts = {} if upper and rng.random() < 0.5 else {"upper": upper}

        def function(x: Tensor, k: Any = None) -> Tensor:
            return (torch.triu if upper else torch.tril)(x, offset or 0)

        return Sample({"x": values(rng, dtype, shape), "k": k}, function, frozenset("k"), facts)

    return sample


def _cumulative_sum(dtype: str) -> Callable[[random.Random], Sample]:
    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 5, MOST)
        axis, exclusive, reverse = rng.randrange(len(shape)), rng.randint(0, 1), rng.randint(0, 1)
        x = normal(rng, shape).astype(REAL) if dtype in REALS else values(rng, dtype, shape)

        def function(x: Tensor, axis_: Tensor) -> Tensor:
            x = x.flip(axis) if reverse else x
            found = x.cumsum(axis, dtype=x.dtype) - (x if exclusive else 0)
            return found.flip(axis) if reverse else found

        return Sample(
            {"x": x, "axis_": np.array(signed(rng, axis, len(shape)), dtype=np.int64)},
            function,
            frozenset({"axis_"}),
            {"exclusive": exclusive, "reverse": reverse},
            terms=shape[axis] + STEPS,
            scale=float(np.abs(x).max()) if dtype in REALS else 1.0,
        )

    return widened(sample) if dtype == WIDE else sample


def _top_k(dtype: str) -> Callable[[random.Random], Sample]:
    """Draw values with many ties: the first place counts. Long results are sorted by rank."""

    def sample(rng: random.Random) -> Sample:
        shape = random_shape(rng, 1, 4, 120)
        axis, largest = rng.randrange(len(shape)), rng.randint(0, 1)
        count = rng.randint(1, min(4, shape[axis]))
        if rng.random() < 0.4:
            count = rng.randint(33, 60)
            shape = (*shape[:axis], count + rng.randint(0, 9), *shape[axis + 1 :])
            shape = tuple(s if at == axis else min(s, 2) for at, s in enumerate(shape))
        x = np.round(normal(rng, shape) * 2).astype(REAL if dtype == HUGE else dtype)
        x = np.abs(x).astype(dtype) if dtype == HUGE else x
        if dtype not in REALS and rng.random() < 0.3:
            x = values(rng, dtype, shape)

        def function(x: Tensor, k: Tensor) -> tuple[Tensor, ...]:
            found, order = x.sort(dim=axis, descending=bool(largest), stable=True)
            return found.narrow(axis, 0, count), order.narrow(axis, 0, count)

        facts = {"axis": signed(rng, axis, len(shape)), "largest": largest}
        return Sample({"x": x, "k": _ints(count)}, function, frozenset("k"), facts, outputs=2)

    return sample


FLOAT = "Float"
ROWS: tuple[Row, ...] = (
    Row("GridSample", FLOAT, REAL, _grid_sample, SUM, range(4, 6)),
    Row("Resize", FLOAT, REAL, _resize, SUM, range(3, 6)),
    Row("Col2Im", FLOAT, REAL, _col2im, SUM, range(3, 4)),
    *(
        Row(op, "Double", WIDE, widened(sample), SUM, ranks)
        for op, sample, ranks in (
            ("GridSample", _grid_sample, range(4, 6)),
            ("Resize", _resize_of_doubles, range(3, 6)),
            ("Col2Im", _col2im, range(3, 4)),
        )
    ),
    Row("Einsum", FLOAT, REAL, _einsum, SUM, range(1, 6)),
    Row("Einsum", "Double", WIDE, widened(_einsum), SUM, range(1, 6)),
    *(
        Row("Tile", claim.value, dtype, _tile(dtype), MOVE, range(1, 6))
        for dtype, claim in DTYPES.items()
    ),
    *(
        Row("Trilu", DTYPES[dtype].value, dtype, _trilu(dtype), MOVE, range(2, 6))
        for dtype in (*NUMBERS, TRUTH)
    ),
    Row("CumSum", FLOAT, REAL, _cumulative_sum(REAL), SUM, range(1, 6)),
    *(
        Row("CumSum", DTYPES[dtype].value, dtype, _cumulative_sum(dtype), SUM, range(1, 6))
        for dtype in (WIDE, WHOLE, LONG, HUGE)
    ),
    *(
        Row("TopK", DTYPES[dtype].value, dtype, _top_k(dtype), MOVE, range(1, 5), second=LONG)
        for dtype in NUMBERS
    ),
)
