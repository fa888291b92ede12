"""Rows of pools, norms of images, and moves between channels and pixels."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from operator_host_forms import (
    largest_of_all,
    neighbours_summed,
    norm_of_all,
    standardised,
)
from operator_rows import (
    DTYPES,
    REAL,
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
MOST = 700  # elements
STEPS = 8  # the other operations of a composite count as this many terms of its sum
SIZES = (1, 2, 3, 5, 6, 8, 11)
_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


@dataclass(frozen=True)
class Axis:
    """The windows along one axis: ``count`` of them, over ``size`` elements and padding."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    count: int

    @property
    def reach(self) -> int:
        """How far the last window goes past the padding."""
        last = (self.count - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return max(0, last - self.before - self.size - self.after)


def _axis(rng: random.Random, dilates: bool, auto: str, ceil: bool) -> Axis:
    """Draw windows that hold at least one element of the input each."""
    while True:
        size, kernel = rng.choice(SIZES), rng.choice((1, 2, 2, 3, 3, 4))
        stride = rng.choice((1, 1, 2, 3, kernel))
        dilation = rng.choice((1, 2)) if dilates else 1
        extent = (kernel - 1) * dilation + 1
        before, after = (rng.randint(0, min(kernel - 1, 2)) for _ in range(2))
        if auto.startswith("SAME"):
            count = -(-size // stride)
            missing = max(0, (count - 1) * stride + extent - size)
            before = (missing + (auto == "SAME_LOWER")) // 2
            after = missing - before
        elif auto == "VALID":
            before = after = 0
        over = size + before + after - extent
        count = (-(-over // stride) if ceil else over // stride) + 1
        if over < 0 or (count - 1) * stride >= size + before:
            continue
        places = np.arange(count)[:, None] * stride - before + np.arange(kernel) * dilation
        if ((places >= 0) & (places < size)).any(1).all():
            return Axis(size, kernel, stride, dilation, before, after, count)


def pool_axes(rng: random.Random, dilates: bool) -> tuple[list[Axis], dict[str, Any]]:
    """One to three axes, and the attributes that say so."""
    auto = rng.choice(["NOTSET"] * 5 + ["SAME_UPPER", "SAME_LOWER", "VALID"])
    ceil = auto == "NOTSET" and rng.random() < 0.4
    dilates = dilates and auto == "NOTSET" and rng.random() < 0.4
    count = rng.randint(1, 3)
    axes = [_axis(rng, dilates, auto, ceil) for _ in range(count)]
    while prod(axis.size for axis in axes) > MOST // 4:
        axes = [_axis(rng, dilates, auto, ceil) for _ in range(count)]
    facts: dict[str, Any] = {"kernel_shape": [axis.kernel for axis in axes]}
    if rng.random() < 0.8 or any(axis.stride > 1 for axis in axes):
        facts["strides"] = [axis.stride for axis in axes]
    if dilates:
        facts["dilations"] = [axis.dilation for axis in axes]
    if auto != "NOTSET":
        facts["auto_pad"] = auto
    elif rng.random() < 0.5 or any(axis.before or axis.after for axis in axes):
        facts["pads"] = [a.before for a in axes] + [a.after for a in axes]
    if ceil:
        facts["ceil_mode"] = 1
    return axes, facts


def _padded(x: Tensor, axes: list[Axis], value: float, more: bool = True) -> Tensor:
    """Pad the input so that every window lies in it; without ``more``, by the attribute only."""
    ends = [(axis.before, axis.after + axis.reach * more) for axis in reversed(axes)]
    return F.pad(x, [end for pair in ends for end in pair], value=value)


def _sums(x: Tensor, axes: list[Axis]) -> Tensor:
    """Sums over windows of an input that is padded already, as a convolution with ones."""
    facts = {"stride": [a.stride for a in axes], "dilation": [a.dilation for a in axes]}
    ones = torch.ones(1, 1, *(a.kernel for a in axes), dtype=x.dtype)
    found = _CONV[len(axes)](x.reshape(-1, 1, *x.shape[2:]), ones, **facts)
    cut = tuple(slice(0, axis.count) for axis in axes)
    return found.reshape(*x.shape[:2], *found.shape[2:])[(..., *cut)]


def images(rng: random.Random, axes: list[Axis]) -> np.ndarray:
    outer = (rng.choice([1, 2, 3]), rng.choice([1, 2, 3, 5]))
    while prod(outer) * prod(axis.size for axis in axes) > MOST:
        outer = (1, max(1, outer[1] - 1))
    return values(rng, REAL, (*outer, *(axis.size for axis in axes)))


def maximum(x: Tensor, axes: list[Axis], indices: bool = False) -> Any:
    """PyTorch's pool over a padded input."""
    facts = {"stride": [a.stride for a in axes], "dilation": [a.dilation for a in axes]}
    kernel = [axis.kernel for axis in axes]
    found = _MAX[len(axes)](_padded(x, axes, -np.inf), kernel, return_indices=indices, **facts)
    cut = (..., *(slice(0, axis.count) for axis in axes))
    return tuple(part[cut] for part in found) if indices else found[cut]


def _max_pool(rng: random.Random) -> Sample:
    axes, facts = pool_axes(rng, dilates=True)
    return Sample({"x": images(rng, axes)}, lambda x: maximum(x, axes), attributes=facts)


def _average_pool(rng: random.Random) -> Sample:
    axes, facts = pool_axes(rng, dilates=True)
    counted = rng.randint(0, 1)
    facts["count_include_pad"] = counted
    x = images(rng, axes)

    def function(x: Tensor) -> Tensor:
        ones = torch.ones_like(x)
        if counted:
            ones = _padded(ones, axes, 1.0, more=False)
            rest = [(0, axis.reach) for axis in reversed(axes)]
            ones = F.pad(ones, [end for pair in rest for end in pair])
        else:
            ones = _padded(ones, axes, 0.0)
        return _sums(_padded(x, axes, 0.0), axes) / _sums(ones, axes)

    terms = sum(axis.kernel for axis in axes) + STEPS
    return Sample({"x": x}, function, attributes=facts, terms=terms, scale=float(np.abs(x).max()))


def _lp_pool(rng: random.Random) -> Sample:
    axes, facts = pool_axes(rng, dilates=True)
    power = rng.choice([1, 2, 2, 3])
    if power != 2 or rng.random() < 0.5:
        facts["p"] = power
    x = images(rng, axes)

    def function(x: Tensor) -> Tensor:
        return _sums(_padded(x.abs() ** power, axes, 0.0), axes) ** (1 / power)

    count = prod(axis.kernel for axis in axes)
    scale = float(np.abs(x).max()) * count ** (1 / power)
    return Sample({"x": x}, function, attributes=facts, terms=count + STEPS, scale=scale)


def _lp_pool_of_doubles(rng: random.Random) -> Sample:
    """Draw no last windows that are cut: onnx's evaluator, the host here, has other sums there."""
    found = _lp_pool(rng)
    return _lp_pool_of_doubles(rng) if found.attributes.get("ceil_mode") else found


def _global(power: int | None, function: Callable[[Tensor, tuple[int, ...]], Tensor]) -> Any:
    def sample(rng: random.Random) -> Sample:
        shape = (*random_shape(rng, 2, 2, 12), *random_shape(rng, 1, 3, 40))
        axes, x = tuple(range(2, len(shape))), values(rng, REAL, shape)
        facts = {} if power is None else {"p": power}
        return Sample(
            {"x": x},
            lambda x: function(x, axes),
            attributes=facts,
            terms=prod(shape[2:]) + STEPS,
            scale=float(np.abs(x).max()) * (1 if power is None else prod(shape[2:])),
        )

    return sample


def _group_norm(rng: random.Random) -> Sample:
    groups = rng.choice([1, 2, 3])
    channels = groups * rng.choice([1, 2, 3])
    inner = random_shape(rng, 1, 3, 30)
    x = normal(rng, (rng.choice([1, 2, 3]), channels, *inner))
    scale, shift = normal(rng, (channels,)), normal(rng, (channels,))
    epsilon = rng.choice([2.0**-17, 2.0**-7])
    apart = x.reshape(x.shape[0], groups, -1)
    spread = float(np.sqrt(apart.var(2) + epsilon).min())
    return Sample(
        {"x": x, "s": scale, "b": shift},
        lambda x, s, b: F.group_norm(x, groups, s, b, epsilon),
        frozenset("sb") if rng.random() < 0.5 else frozenset(),
        {"num_groups": groups, "epsilon": epsilon},
        terms=apart.shape[2] + STEPS,
        scale=2 * float(np.abs(x).max()) / spread * float(np.abs(scale).max())
        + float(np.abs(shift).max()),
        absolute=1e-4,  # ONNX's function computes the mean and the deviation in singles
    )


def _local_response_norm(rng: random.Random) -> Sample:
    shape = (rng.choice([1, 2]), rng.choice([1, 2, 3, 5, 8]), *random_shape(rng, 2, 2, 24))
    # onnxruntime has odd sizes and images with two axes only
    size, x = rng.choice([1, 3, 5]), normal(rng, shape) * 3
    alpha, beta, bias = (
        rng.choice([2.0**-13, 0.5]),  # a single even in doubles
        rng.choice([0.75, 0.5, 1.0]),
        rng.choice([1.0, 2.0]),
    )

    facts = {"size": size, "alpha": alpha, "beta": beta, "bias": bias}
    scale = float(np.abs(x).max())
    return Sample(
        {"x": x},
        lambda x: F.local_response_norm(x, size, alpha, beta, bias),
        attributes=facts,
        terms=size + STEPS,
        scale=scale,
    )


def _mean_variance_norm(rng: random.Random) -> Sample:
    shape = (*random_shape(rng, 2, 2, 12), *random_shape(rng, 2, 2, 24))
    axes = rng.choice([[0, 2, 3], [2, 3], [1, -1]])
    own = tuple(axes)
    x = normal(rng, shape)
    constant = prod(shape[axis] for axis in own) == 1

    def function(x: Tensor) -> Tensor:
        moved = x - x.mean(own, keepdim=True)
        return moved / (moved.square().mean(own, keepdim=True).sqrt() + 1e-9)

    spread = 1.0 if constant else max(float(x.astype(np.float64).std(own).min()), 1e-3)
    scale = 2 * float(np.abs(x).max()) / spread
    return Sample(
        {"x": x},
        function,
        attributes={"axes": axes},
        terms=prod(shape[axis] for axis in own) + STEPS,
        scale=scale * (1 + 1 / spread),
    )


def _prelu(rng: random.Random) -> Sample:
    shape = random_shape(rng, 0, 6, MOST)
    x, slope = values(rng, REAL, shape), values(rng, REAL, part_of(rng, shape))
    return Sample(
        {"x": x, "slope": slope},
        lambda x, slope: torch.where(x < 0, x * slope, x),
        frozenset({"slope"}) if rng.random() < 0.5 else frozenset(),
    )


def _mish(rng: random.Random) -> Sample:
    return Sample({"x": values(rng, REAL, random_shape(rng, 0, 6, MOST))}, lambda x: F.mish(x))


def _depth_to_space(rng: random.Random, dtype: str) -> Sample:
    block, rest = rng.choice([1, 2, 3]), rng.choice([1, 2, 3])
    shape = (rng.choice([1, 2, 3]), block**2 * rest, rng.choice([1, 2, 5]), rng.choice([1, 3, 4]))
    mode = rng.choice(["DCR", "CRD", None])

    def function(x: Tensor) -> Tensor:
        if mode != "CRD":  # torch has the order of CRD
            parts = x.reshape(shape[0], block**2, rest, *shape[2:])
            x = parts.transpose(1, 2).reshape(shape)
        return F.pixel_shuffle(x, block)

    facts: dict[str, Any] = {"blocksize": block}
    if mode is not None:
        facts["mode"] = mode
    return Sample({"x": values(rng, dtype, shape)}, function, attributes=facts)


def _space_to_depth(rng: random.Random, dtype: str) -> Sample:
    block, channels = rng.choice([1, 2, 3]), rng.choice([1, 2, 3])
    shape = (
        rng.choice([1, 2, 3]),
        channels,
        block * rng.choice([1, 2]),
        block * rng.choice([1, 3]),
    )

    def function(x: Tensor) -> Tensor:
        found = F.pixel_unshuffle(x, block)
        parts = found.reshape(shape[0], channels, block**2, *found.shape[2:])
        return parts.transpose(1, 2).reshape(found.shape)

    return Sample({"x": values(rng, dtype, shape)}, function, attributes={"blocksize": block})


_OTHERWISE = {
    "GlobalMaxPool": largest_of_all,
    "GlobalLpPool": norm_of_all,
    "LRN": neighbours_summed,
    "MeanVarianceNormalization": standardised,
}
_MEAN = _global(None, lambda x, axes: x.mean(axes, True))
_SUM_OF_SIZES = _global(1, lambda x, axes: x.abs().sum(axes, True))
_ROOT_OF_SQUARES = _global(2, lambda x, axes: x.square().sum(axes, True).sqrt())
_LARGEST = _global(None, lambda x, axes: x.amax(axes, True))
FLOAT = "Float"
ROWS: tuple[Row, ...] = (
    Row("MaxPool", FLOAT, REAL, _max_pool, MOVE, range(3, 6)),
    Row("AveragePool", FLOAT, REAL, _average_pool, SUM, range(3, 6)),
    Row("LpPool", FLOAT, REAL, _lp_pool, SUM, range(3, 6)),
    Row(
        "GlobalAveragePool",
        FLOAT,
        REAL,
        _MEAN,
        SUM,
        range(3, 6),
    ),
    Row(
        "GlobalMaxPool",
        FLOAT,
        REAL,
        _LARGEST,
        MOVE,
        range(3, 6),
    ),
    Row("GlobalLpPool", FLOAT, REAL, _SUM_OF_SIZES, SUM, range(3, 6)),
    Row("GlobalLpPool", FLOAT, REAL, _ROOT_OF_SQUARES, SUM, range(3, 6)),
    Row("GroupNormalization", FLOAT, REAL, _group_norm, SUM, range(3, 6), opset=21),
    Row("LRN", FLOAT, REAL, _local_response_norm, SUM, range(4, 5)),
    Row("MeanVarianceNormalization", FLOAT, REAL, _mean_variance_norm, SUM, range(4, 5)),
    Row("PRelu", FLOAT, REAL, _prelu, ELEMENTWISE),
    Row("PRelu", "Double", WIDE, widened(_prelu), ELEMENTWISE),
    Row("Mish", FLOAT, REAL, _mish, FUNCTION),
    *(
        Row(op, claim.value, dtype, partial(draw, dtype=dtype), MOVE, range(4, 5))
        for op, draw in (("DepthToSpace", _depth_to_space), ("SpaceToDepth", _space_to_depth))
        for dtype, claim in DTYPES.items()
    ),
    *(
        Row(op, "Double", WIDE, widened(draw), error, ranks, opset=opset, host=_OTHERWISE.get(op))
        for op, draw, error, ranks, opset in (
            ("MaxPool", _max_pool, MOVE, range(3, 6), 20),
            ("AveragePool", _average_pool, SUM, range(3, 6), 20),
            ("GlobalAveragePool", _MEAN, SUM, range(3, 6), 20),
            ("GlobalMaxPool", _LARGEST, MOVE, range(3, 6), 20),
            ("LpPool", _lp_pool_of_doubles, SUM, range(3, 6), 20),
            ("GlobalLpPool", _SUM_OF_SIZES, SUM, range(3, 6), 20),
            ("GlobalLpPool", _ROOT_OF_SQUARES, SUM, range(3, 6), 20),
            ("LRN", _local_response_norm, SUM, range(4, 5), 20),
            ("GroupNormalization", _group_norm, SUM, range(3, 6), 21),
            ("MeanVarianceNormalization", _mean_variance_norm, SUM, range(4, 5), 20),
            ("Mish", _mish, FUNCTION, range(7), 20),
        )
    ),
)
