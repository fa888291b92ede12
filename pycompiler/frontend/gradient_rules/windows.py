"""Gradients of convolutions and pools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import torch

from ...pfvm.windows import APART
from ..marked import compared
from .constants import constant, wide_dtype
from .own_pools import made_by_pool

_ATEN = torch.ops.aten
#: Stride, padding and dilation of a convolution, by axis.
_Steps = tuple[list[int], list[int], list[int]]
_Fact = tuple[int, int, int, int]  # windows, their distance, that of their elements, elements


def _every(values: Sequence[int], axes: int) -> list[int]:
    return list(values) * axes if len(values) == 1 else list(values)


def _taps(
    x: torch.Tensor, facts: Sequence[_Fact]
) -> Iterator[tuple[tuple[int, ...], torch.Tensor]]:
    """Yield each tap of windows over the last axes, and what all windows have there."""
    for tap in product(*(range(taps) for *_, taps in facts)):
        part = x
        for axis, (count, step, gap, _) in enumerate(facts, x.ndim - len(facts)):
            first = tap[axis - x.ndim] * gap
            part = _ATEN.slice.Tensor(part, axis, first, first + (count - 1) * step + 1, step)
        yield tap, part


def _transposed(
    grad: torch.Tensor, weight: torch.Tensor, sizes: Sequence[int], steps: _Steps, groups: int
) -> torch.Tensor:
    """Return the gradient of a convolution's input, whose windowed axes have ``sizes``."""
    kernel, given, (stride, padding, dilation) = weight.shape[2:], grad.shape[2:], steps
    reached = [
        (given[a] - 1) * stride[a] - 2 * padding[a] + dilation[a] * (kernel[a] - 1) + 1
        for a in range(len(sizes))
    ]
    rest = [size - end for size, end in zip(sizes, reached, strict=True)]
    out: torch.Tensor = _ATEN.convolution(
        grad, weight, None, stride, padding, dilation, True, rest, groups
    )
    return out


def _turned(
    x: torch.Tensor, grad: torch.Tensor, kernel: Sequence[int], steps: _Steps
) -> torch.Tensor:
    """Return the gradient of the weights of a convolution without groups.

    It is a convolution with channels for pictures: the gradients are its kernel. Where nothing is
    padded, places that no window reached are cut off, as they give taps that there are not.
    """
    stride, padding, dilation = steps
    for a, count in enumerate(grad.shape[2:]):
        reached = (count - 1) * stride[a] + (kernel[a] - 1) * dilation[a] + 1
        if not padding[a] and reached < x.shape[2 + a]:
            x = x.narrow(2 + a, 0, reached)
    ends = (x.transpose(0, 1), grad.transpose(0, 1))
    none = [0] * len(kernel)
    found: torch.Tensor = _ATEN.convolution(*ends, None, dilation, padding, stride, False, none, 1)
    for axis, taps in enumerate(kernel):
        found = found.narrow(2 + axis, 0, taps)
    return found.transpose(0, 1)


def _weights(
    x: torch.Tensor, grad: torch.Tensor, kernel: Sequence[int], steps: _Steps, groups: int
) -> torch.Tensor:
    """Return the gradient of the weights ``(out, in / groups, *kernel)`` of groups.

    A product adds over places, so it gives a matrix of taps and channels by channels.
    """
    (stride, padding, dilation), ins = steps, x.shape[1] // groups
    x = torch.nn.functional.pad(x, [end for pad in reversed(padding) for end in (pad, pad)])
    pictures, outs, given = grad.shape[0], grad.shape[1] // groups, grad.shape[2:]
    places = prod(given)
    whole = places < APART and pictures > 1

    def rows(tensor: torch.Tensor, channels: int) -> torch.Tensor:
        """Return the tensor as (pictures, groups, channels, places)."""
        parts = tensor.reshape(pictures, groups, channels, places)
        if whole:
            parts = parts.permute(1, 2, 0, 3).reshape(1, groups, channels, pictures * places)
        return parts.squeeze(1) if groups == 1 else parts

    facts = list(zip(given, stride, dilation, kernel, strict=True))
    taps = [rows(part, ins) for _, part in _taps(x, facts)]
    found = torch.cat(taps, -2) @ rows(grad, outs).transpose(-1, -2)
    found = found.sum(0) if found.shape[0] > 1 else found.squeeze(0)
    found = found.reshape(groups, len(taps), ins, outs).permute(0, 3, 2, 1)
    return found.reshape(groups * outs, ins, *kernel)


def _convolution_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """Return the gradients of input, weights and bias; None for one that is not wanted."""
    axes = weight.ndim - 2
    steps = (_every(stride, axes), _every(padding, axes), _every(dilation, axes))
    kernel = weight.shape[2:]
    own = weights = bias = None
    if wanted[0]:
        if transposed:
            own = _ATEN.convolution(grad, weight, None, *steps, False, [0] * axes, groups)
            own = own[tuple(map(slice, x.shape))]
        else:
            own = _transposed(grad, weight, x.shape[2:], steps, groups)
    if wanted[1]:
        # A transposed convolution is the gradient of a convolution from `grad` to `x`.
        ends = (grad, x) if transposed else (x, grad)
        if groups == 1:
            weights = _turned(*ends, kernel, steps)
        else:
            weights = _weights(*ends, kernel, steps, groups)
    if wanted[2]:
        bias = grad.sum([0, *range(2, grad.ndim)])
    return own, weights, bias


def _spread(part: torch.Tensor, axis: int, stride: int, first: int, size: int) -> torch.Tensor:
    """Put the elements of an axis ``stride`` apart from ``first`` on, among ``size`` zeros."""
    pad = torch.nn.functional.pad
    if stride > 1:
        part = part.unsqueeze(axis + 1)
        ends = [0, 0] * (part.ndim - axis - 2) + [0, stride - 1]
        part = pad(part, ends).flatten(axis, axis + 1)
    rest = size - first - part.shape[axis]
    return pad(part, [0, 0] * (part.ndim - axis - 1) + [first, rest])


_Hits = list[tuple[tuple[int, ...], torch.Tensor]]


def _first_greatest(
    x: torch.Tensor, facts: Sequence[_Fact], ends: Sequence[tuple[int, int]]
) -> _Hits:
    """Return by tap whether its element is the place of a window: the first that is the greatest.

    As in torch, an element wins if it is greater than all before it, or a NaN; the last one counts.
    So does the first element of a window that begins in the padding.
    """
    low = float("-inf") if x.is_floating_point() else torch.iinfo(x.dtype).min
    flat = [end for pair in reversed(ends) for end in pair]
    wide = torch.nn.functional.pad(x, flat, value=low)
    parts = list(_taps(wide, facts))
    (first, greatest), hits = parts[0], []
    firsts = [
        [max(0, -((window * step - pad) // gap)) for window in range(count)]
        for (count, step, gap, _), (pad, _) in zip(facts, ends, strict=True)
    ]
    for tap, part in parts[1:]:
        won = compared("first", torch.gt, part, greatest)
        if all(map(list.__contains__, firsts, tap)):
            won = won | constant(partial(_begins, firsts, tap))
        hits.append((tap, won))
        greatest = torch.maximum(greatest, part)
    last = torch.ones_like(greatest, dtype=torch.bool) if len(parts) == 1 else ~hits[-1][1]
    for place in range(len(hits) - 2, -1, -1):
        tap, won = hits[place]
        hits[place] = tap, won & last
        last = last ^ hits[place][1]
    return [*reversed(hits), (first, last)]


def _begins(firsts: Sequence[Sequence[int]], tap: Sequence[int]) -> torch.Tensor:
    """Return in which windows a tap is the first, by the first taps on each axis."""
    found = torch.ones((), dtype=torch.bool)
    for axis, own in zip(firsts, tap, strict=True):
        found = found[..., None] & (torch.tensor(axis) == own)
    return found


def _max_pool_backward(axes: int) -> Callable[..., torch.Tensor]:
    def rule(
        grad: torch.Tensor,
        x: torch.Tensor,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool,
        indices: torch.Tensor,
    ) -> torch.Tensor:
        """Give each gradient to the element that its index names.

        That is the first one that is the greatest, if the indices are those of this pool.
        """
        if not made_by_pool(indices, x, (kernel, stride, padding, dilation, ceil_mode)):
            found = grad.new_zeros(*x.shape[:-axes], prod(x.shape[-axes:]))
            found = found.scatter_add(-1, indices.flatten(-axes), grad.flatten(-axes))
            return found.reshape(x.shape)
        kernel = _every(kernel, axes)
        steps = _every(stride, axes) if stride else kernel
        pads, gaps = _every(padding, axes), _every(dilation, axes)
        front, given = x.ndim - axes, grad.shape[-axes:]
        facts = list(zip(given, steps, gaps, kernel, strict=True))
        reach = [(count - 1) * step + gap * (taps - 1) + 1 for count, step, gap, taps in facts]
        sizes = [
            max(end, size + 2 * pad)
            for end, size, pad in zip(reach, x.shape[front:], pads, strict=True)
        ]
        ends = [
            (pad, total - size - pad)
            for pad, total, size in zip(pads, sizes, x.shape[front:], strict=True)
        ]
        out: torch.Tensor | None = None
        for tap, hit in _first_greatest(x, facts, ends):
            placed = torch.where(hit, grad, 0)
            for axis, (_, step, gap, _) in enumerate(facts):
                first, size = tap[axis] * gap, sizes[axis] + step
                placed = _spread(placed, front + axis, step, first, size)
            out = placed if out is None else out + placed
        assert out is not None
        for axis, pad in enumerate(pads):
            out = out.narrow(front + axis, pad, x.shape[front + axis])
        return out

    return rule


def _average_pool_backward(axes: int) -> Callable[..., torch.Tensor]:
    def rule(
        grad: torch.Tensor,
        x: torch.Tensor,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> torch.Tensor:
        kernel = _every(kernel, axes)
        steps = _every(stride, axes) if stride else kernel
        pads = _every(padding, axes)
        front, sizes, given = x.ndim - axes, x.shape[-axes:], grad.shape[-axes:]

        def inverses() -> torch.Tensor:
            """Return one over the elements of each window."""
            counts = torch.ones(())
            for count, size, taps, step, pad in zip(given, sizes, kernel, steps, pads, strict=True):
                first = torch.arange(count) * step - pad
                low, high = (0, size) if not count_include_pad else (-pad, size + pad)
                length = (first + taps).clamp(max=high) - first.clamp(min=low)
                counts = counts[..., None] * length
            counts = counts if divisor_override is None else counts * 0 + divisor_override
            return 1.0 / counts.to(wide)

        wide = wide_dtype(grad.dtype)
        spread = (grad * constant(inverses)).reshape(prod(grad.shape[:front]), 1, *given)
        ones = constant(lambda: torch.ones(1, 1, *kernel, dtype=wide))
        none, once = [0] * axes, [1] * axes
        out: torch.Tensor = _ATEN.convolution(spread, ones, None, steps, none, once, True, none, 1)
        for axis, (pad, size) in enumerate(zip(pads, sizes, strict=True)):
            missing = max(0, pad + size - out.shape[2 + axis])
            ends = [0, 0] * (axes - axis - 1) + [0, missing]
            out = torch.nn.functional.pad(out, ends).narrow(2 + axis, pad, size)
        return out.reshape(x.shape).to(grad.dtype)

    return rule


WINDOW_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN.avg_pool2d_backward.default: _average_pool_backward(2),
    _ATEN.avg_pool3d_backward.default: _average_pool_backward(3),
    _ATEN.convolution_backward.default: _convolution_backward,
    _ATEN.max_pool2d_with_indices_backward.default: _max_pool_backward(2),
    _ATEN.max_pool3d_with_indices_backward.default: _max_pool_backward(3),
}
