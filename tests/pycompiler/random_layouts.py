"""Random layouts, and an independent reader of their text."""

from __future__ import annotations

import random
import re
from itertools import product
from math import prod

import numpy as np
from hypothesis import strategies as st

from pycompiler.errors import PycompilerError
from pycompiler.graph import Broadcast, Layout, Level, MNDtype, SubAxis
from pycompiler.graph.layout import UNIT_LEVELS
from pycompiler.graph.verify import layout_ranges
from pycompiler.machine import Target
from pycompiler.planners.axis_classes import machine_digits

LEVELS = [level for level in Level if level is not Level.TIME]


def brute_force(text: str, index: tuple[int, ...]) -> dict[str, int]:
    """Return the coordinates of one element, read from the text digit by digit."""
    spec = text.split(";")[0]
    axes = re.findall(r"\(((?:[^()])*)\)", spec[1:])
    coordinates: dict[str, int] = {}
    for axis, x in zip(axes, index, strict=True):
        subaxes = [s.strip() for s in axis.split(",") if s.strip()]
        sizes = [int(re.match(r"\d+", s).group()) for s in subaxes]
        # The digits of x are the x-th entry of the ordered list of all digit tuples.
        digits = list(product(*(range(size) for size in sizes)))[x] if subaxes else ()
        for sub, digit in zip(subaxes, digits, strict=True):
            level = re.search(r"_([A-Za-z0-9]+)", sub)
            stride = re.search(r":(\d+)", sub)
            name = level.group(1) if level else "Addr"
            step = int(stride.group(1)) if stride else 1
            coordinates[name] = coordinates.get(name, 0) + digit * step
    return coordinates


subaxes = st.builds(SubAxis, st.integers(1, 5), st.sampled_from(LEVELS), st.integers(0, 64))
broadcasts = st.one_of(
    st.sampled_from(LEVELS).map(Broadcast),
    st.builds(Broadcast, st.sampled_from(LEVELS), st.integers(1, 8), st.integers(1, 8)),
    st.just(Broadcast(None)),
)
layouts = st.builds(
    Layout,
    st.lists(st.lists(subaxes, max_size=3).map(tuple), max_size=3).map(tuple),
    st.lists(broadcasts, max_size=3).map(tuple),
)


def some_layout(
    rng: random.Random, shape: tuple[int, ...], dtype: MNDtype, target: Target
) -> Layout:
    """Draw a legal layout of a tensor; unit digits and Addr digits come in any order."""
    for _ in range(200):
        axes: list[list[SubAxis]] = [[] for _ in shape]
        copies: list[Broadcast] = []
        packed = bool(shape) and rng.random() < 0.7
        digits = list(machine_digits(target, dtype.words_per_long))
        rng.shuffle(digits)
        reach = [1] * len(shape)
        for digit in digits:
            sub = SubAxis(digit.size, digit.level, digit.stride)
            if digit.level is Level.W:
                if packed:
                    axis = rng.randrange(len(shape))
                    axes[axis].append(sub)
                    reach[axis] *= digit.size
                continue
            axis = rng.randrange(len(shape)) if shape else 0
            if shape and rng.random() < 0.6 and reach[axis] < shape[axis]:
                axes[axis].append(sub)
                reach[axis] *= digit.size
            elif rng.random() < 0.8:
                copies.append(Broadcast(digit.level, digit.size, digit.stride))
        places: list[tuple[int, int]] = []
        for axis, size in enumerate(shape):
            while reach[axis] < size:
                part = rng.choice([2, 3, 4, 5, 7, -(-size // reach[axis])])
                axes[axis].insert(rng.randrange(len(axes[axis]) + 1), SubAxis(part, Level.ADDR, 0))
                reach[axis] *= part
            places += [(axis, i) for i, s in enumerate(axes[axis]) if s.level is Level.ADDR]
        rng.shuffle(places)
        stride = 1
        for axis, index in places:
            part = axes[axis][index].size
            axes[axis][index] = SubAxis(part, Level.ADDR, stride)
            stride *= part
        layout = Layout(tuple(map(tuple, axes)), tuple(copies))
        try:
            layout.check(shape, dtype, layout_ranges(target), target.words("lm0") // 2)
        except PycompilerError:
            continue
        return layout
    return Layout(tuple((SubAxis(size),) if size > 1 else () for size in shape))


def elements(layout: Layout, shape: tuple[int, ...], dtype: MNDtype, target: Target) -> np.ndarray:
    """Which element each word of LM holds, -1 where none: axes are units, address, word."""
    ranges = {Level(k): v for k, v in target.level_range.items()}
    words, step = dtype.words_per_long, target.cycles
    out = np.full((*(ranges[lv] for lv in UNIT_LEVELS), layout.num_lw(step), words), -1)
    levels = (*UNIT_LEVELS, Level.ADDR, Level.W)
    index = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), int)
    found = layout.coordinates(*index)
    number = np.arange(max(1, prod(shape)))
    own = [found.get(level, np.zeros_like(number)) for level in levels]
    shifts = [(0,) * len(levels)]
    entries = list(layout.copies({**ranges, Level.W: words}))
    if not layout.on(Level.W) and all(entry.level is not Level.W for entry in entries):
        entries.append(SubAxis(words, Level.W))
    for entry in entries:
        which = levels.index(entry.level)
        shifts = [
            (*shift[:which], shift[which] + digit * entry.stride, *shift[which + 1 :])
            for shift in shifts
            for digit in range(entry.size)
        ]
    for shift in shifts:
        out[tuple(at + more for at, more in zip(own, shift, strict=True))] = number
    return out
