"""Gradients of resizing and of adaptive pools: products with the weights of each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from .constants import constant, outside_the_trace, wide_dtype

_ATEN = torch.ops.aten


def _joined(grad: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return ``grad`` with the matrix of each of the last axes, ``(out, in)``, applied to it."""
    first, found = grad.ndim - len(weights), grad.to(weights[0].dtype)
    for place, matrix in enumerate(weights):
        axis = first + place
        found = (found.movedim(axis, -1) @ matrix).movedim(-1, axis)
    return found.to(grad.dtype)


def axis_weights(
    operator: Any,
    axes: int,
    place: int,
    sizes: tuple[int, int],
    scale: float | None,
    *options: bool,
) -> torch.Tensor:
    """Return the weights ``(out, in)``, doubles, of a resize along one axis.

    ``operator`` is the resize, or its gradient: torch itself says which weights its kernel has.
    """
    size, out = sizes

    def along(number: Any, other: Any) -> list[Any]:
        return [number if axis == place else other for axis in range(axes)]

    backward = operator.name().endswith("_backward")
    count = out if backward else size
    given = [[1, out, *along(size, 2)]] if backward else []
    with outside_the_trace():
        # The other axes have length 2: torch's antialiased kernels err where one has length 1.
        eye = torch.eye(count, dtype=torch.float64).reshape(1, count, *along(count, 1))
        eye = eye.expand(1, count, *along(count, 2)).contiguous()
        found = operator(eye, along(out, 2), *given, *options, *along(scale, None))
        weights: torch.Tensor = found.movedim(place + 2, -1).reshape(
            count, -1, found.shape[place + 2]
        )[:, 0]
        return weights if backward else weights.t().contiguous()


def _resize_backward(operator: Any) -> Callable[..., torch.Tensor]:
    def rule(
        grad: torch.Tensor, sizes: Sequence[int], given: Sequence[int], *rest: Any
    ) -> torch.Tensor:
        if operator is _ATEN.upsample_bicubic2d.default and list(sizes) == list(given[2:]):
            return grad.clone()  # as torch's kernel, which forgets the scale there
        options = [one for one in rest if isinstance(one, bool)]
        scales = rest[len(options) :] or [None] * len(sizes)
        facts = enumerate(zip(given[2:], sizes, scales, strict=True))
        wide = wide_dtype(grad.dtype)

        def weights(place: int, size: int, out: int, scale: float | None) -> torch.Tensor:
            return axis_weights(operator, len(sizes), place, (size, out), scale, *options).to(wide)

        return _joined(grad, [constant(partial(weights, at, *fact)) for at, fact in facts])

    return rule


def _adaptive_backward(axes: int) -> Callable[..., torch.Tensor]:
    def rule(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        def weights(out: int, size: int) -> torch.Tensor:
            eye = torch.eye(size, dtype=wide_dtype(grad.dtype))
            return torch.nn.functional.adaptive_avg_pool1d(eye[None], out)[0].t().contiguous()

        facts = zip(grad.shape[-axes:], x.shape[-axes:], strict=True)
        return _joined(grad, [constant(partial(weights, *fact)) for fact in facts])

    return rule


def _resizes() -> dict[Any, Callable[..., Any]]:
    exact = [f"_upsample_nearest_exact{axes}d" for axes in (1, 2, 3)]
    smooth = ["linear1d", "bilinear2d", "trilinear3d", "bicubic2d"]
    names = [f"upsample_{name}" for name in ("nearest1d", "nearest2d", "nearest3d", *smooth)]
    found = {}
    for name in (*exact, *names, "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
        way_back = getattr(_ATEN, f"{name}_backward").default
        own = name.startswith("_") or "nearest" in name
        weights_of = way_back if own else getattr(_ATEN, name).default
        found[way_back] = _resize_backward(weights_of)
    return found


RESIZE_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN._adaptive_avg_pool2d_backward.default: _adaptive_backward(2),
    _ATEN._adaptive_avg_pool3d_backward.default: _adaptive_backward(3),
    **_resizes(),
}
