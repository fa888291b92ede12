"""Rows of convolutions."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from typing import Any

import torch
from operator_rows import REAL, WIDE, Row, Sample, Tensor, normal, widened
from operator_windows import Axis, pool_axes

from pycompiler.tolerance import SUM

F = torch.nn.functional
_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
BLOCK = 16  # channels of a block of halves
MOST = 64  # terms of a sum: the machine of most samples has small memories


def _most(array: Any) -> float:
    return float(abs(array).max())


def _channels(rng: random.Random, halves: bool) -> tuple[int, int, int]:
    """Groups, and channels of a group in input and result; groups of single channels are common."""
    if halves:
        return 1, rng.choice([BLOCK, 2 * BLOCK]), rng.choice([1, 5, BLOCK, 20])
    group = rng.choice([1, 1, 1, 2, 3, 5])
    own = rng.choice([1, 1, 2, 3]) if group > 1 else rng.choice([1, 3, 5, 8, 17])
    return group, own, rng.choice([1, 1, 2]) if group > 1 else rng.choice([1, 2, 7, 16, 19])


def _padded(x: Tensor, axes: list[Axis]) -> Tensor:
    ends = [(axis.before, axis.after) for axis in reversed(axes)]
    return F.pad(x, [end for pair in ends for end in pair])


def conv(
    halves: bool, channels: Callable[[random.Random, bool], tuple[int, int, int]] = _channels
) -> Callable[[random.Random], Sample]:
    """Return samples; ``channels`` chooses the groups, and a group's channels and results."""

    def sample(rng: random.Random) -> Sample:
        axes, facts = pool_axes(rng, dilates=True)
        group, own, rows = channels(rng, halves)
        while "ceil_mode" in facts or own * prod(axis.kernel for axis in axes) > MOST:
            axes, facts = pool_axes(rng, dilates=True)
        facts |= {"group": group} if group > 1 or rng.random() < 0.5 else {}
        batch = rng.choice([1, 2, 3])
        x = normal(rng, (batch, group * own, *(axis.size for axis in axes)))
        w = normal(rng, (group * rows, own, *(axis.kernel for axis in axes)))
        b = normal(rng, (group * rows,)) if rng.random() < 0.5 else None
        stride, dilation = [a.stride for a in axes], [a.dilation for a in axes]

        def function(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
            found = _CONV[len(axes)](
                _padded(x, axes), w, b, stride=stride, dilation=dilation, groups=group
            )
            return found

        bias = 0.0 if b is None else _most(b)
        return Sample(
            {"x": x, "w": w, "b": b},
            function,
            frozenset("wb" if halves or rng.random() < 0.7 else ""),
            facts,
            terms=own * prod(axis.kernel for axis in axes) + 1,
            scale=max(_most(x) * _most(w), bias),
        )

    return sample


def _conv_transpose(rng: random.Random) -> Sample:
    """Strides, dilations, padding of input and result, groups."""
    rank = rng.randint(1, 3)
    sizes = [rng.choice([1, 2, 3, 5, 7][: 5 - rank]) for _ in range(rank)]
    kernel, dilation = ([rng.choice(of) for _ in sizes] for of in ((1, 2, 3, 4), (1, 1, 2)))
    stride = [rng.choice([1, 2, 3]) for _ in sizes]
    more = [rng.randint(0, s - 1) for s in stride]
    pads: list[int] = []
    for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        most = ((size - 1) * s + (k - 1) * d) // 2
        pads.append(rng.randint(0, min(most, 3)))
    group, own, rows = _channels(rng, False)
    own = max(1, min(own, MOST // prod(kernel)))
    x = normal(rng, (rng.choice([1, 2, 3]), group * own, *sizes))
    w = normal(rng, (group * own, rows, *kernel))
    b = normal(rng, (group * rows,)) if rng.random() < 0.5 else None
    facts: dict[str, Any] = {"kernel_shape": kernel, "strides": stride, "dilations": dilation}
    facts |= {"pads": pads + pads, "output_padding": more, "group": group}

    def function(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        return _TRANSPOSE[rank](
            x,
            w,
            b,
            stride=stride,
            padding=pads,
            output_padding=more,
            groups=group,
            dilation=dilation,
        )

    bias = 0.0 if b is None else _most(b)
    return Sample(
        {"x": x, "w": w, "b": b},
        function,
        frozenset("wb" if rng.random() < 0.7 else ""),
        facts,
        terms=own * prod(kernel) + 1,
        scale=max(_most(x) * _most(w), bias),
    )


ROWS: tuple[Row, ...] = (
    Row("Conv", "Float", REAL, conv(halves=False), SUM, range(3, 6)),
    Row("Conv", "Double", WIDE, widened(conv(halves=False)), SUM, range(3, 6)),
    Row("Conv", "Half", REAL, conv(halves=True), SUM, range(3, 6)),
    Row("ConvTranspose", "Float", REAL, _conv_transpose, SUM, range(3, 6)),
    Row("ConvTranspose", "Double", WIDE, widened(_conv_transpose), SUM, range(3, 6)),
)
