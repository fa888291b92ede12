"""Ways back of resizing and of adaptive pools: products with the weights of each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .constants import constant, wide_dtype

_ATEN = torch.ops.aten


def _joined(grad: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return ``grad`` with the matrix of each of the last axes, ``(out, in)``, applied to it."""
    first, found = grad.ndim - len(weights), grad.to(weights[0].dtype)
    for place, matrix in enumerate(weights):
        axis = first + place
        found = (found.movedim(axis, -1) @ matrix).movedim(-1, axis)
    return found.to(grad.dtype)


def _axis_weights(
    run: Callable[[torch.Tensor], torch.Tensor], size: int, dtype: torch.dtype
) -> torch.Tensor:
    """Return the matrix ``(out, in)`` of an operator that works along the last axis."""
    wide = wide_dtype(dtype)
    return constant(lambda: run(torch.eye(size, dtype=wide)).t().contiguous())


def _nearest(
    out: int, size: int, scale: float | None, exact: bool, dtype: torch.dtype
) -> torch.Tensor:
    def make() -> torch.Tensor:
        step = size / out if scale is None else 1.0 / scale
        places = torch.arange(out, dtype=torch.float32) + (0.5 if exact else 0.0)
        picked = (places * step).floor().to(torch.int64).clamp(max=size - 1)
        return torch.nn.functional.one_hot(picked, size).to(wide_dtype(dtype))

    return constant(make)


def _nearest_backward(exact: bool) -> Callable[..., torch.Tensor]:
    def rule(
        grad: torch.Tensor,
        sizes: Sequence[int],
        given: Sequence[int],
        *scales: float | None,
    ) -> torch.Tensor:
        scales = scales or (None,) * len(sizes)
        facts = zip(sizes, given[2:], scales, strict=True)
        return _joined(grad, [_nearest(*fact, exact, grad.dtype) for fact in facts])

    return rule


def _smooth_backward(operator: Any, axes: int) -> Callable[..., torch.Tensor]:
    """Return the rule for a resize by weights: one axis at a time, the others of length 1."""

    def rule(
        grad: torch.Tensor,
        sizes: Sequence[int],
        given: Sequence[int],
        corners: bool,
        *scales: float | None,
    ) -> torch.Tensor:
        scales = scales or (None,) * axes

        def along(place: int) -> torch.Tensor:
            out, size = sizes[place], given[2 + place]
            front, back = [1] * place, [1] * (axes - place - 1)

            def run(eye: torch.Tensor) -> torch.Tensor:
                factors = [None] * place + [scales[place]] + [None] * (axes - place - 1)
                x = eye.reshape(1, size, *front, size, *back)
                found: torch.Tensor = operator(x, [*front, out, *back], corners, *factors)
                return found.reshape(size, out)

            return _axis_weights(run, size, grad.dtype)

        return _joined(grad, [along(place) for place in range(axes)])

    return rule


def _adaptive_backward(axes: int) -> Callable[..., torch.Tensor]:
    def rule(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        weights = []
        for place in range(-axes, 0):
            out, size = grad.shape[place], x.shape[place]

            def run(eye: torch.Tensor, out: int = out) -> torch.Tensor:
                return torch.nn.functional.adaptive_avg_pool1d(eye[None], out)[0]

            weights.append(_axis_weights(run, size, grad.dtype))
        return _joined(grad, weights)

    return rule


RESIZE_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN._adaptive_avg_pool2d_backward.default: _adaptive_backward(2),
    _ATEN._adaptive_avg_pool3d_backward.default: _adaptive_backward(3),
    _ATEN._upsample_nearest_exact1d_backward.default: _nearest_backward(True),
    _ATEN._upsample_nearest_exact2d_backward.default: _nearest_backward(True),
    _ATEN._upsample_nearest_exact3d_backward.default: _nearest_backward(True),
    _ATEN.upsample_bicubic2d_backward.default: _smooth_backward(_ATEN.upsample_bicubic2d, 2),
    _ATEN.upsample_bilinear2d_backward.default: _smooth_backward(_ATEN.upsample_bilinear2d, 2),
    _ATEN.upsample_linear1d_backward.default: _smooth_backward(_ATEN.upsample_linear1d, 1),
    _ATEN.upsample_nearest1d_backward.default: _nearest_backward(False),
    _ATEN.upsample_nearest2d_backward.default: _nearest_backward(False),
    _ATEN.upsample_nearest3d_backward.default: _nearest_backward(False),
    _ATEN.upsample_trilinear3d_backward.default: _smooth_backward(_ATEN.upsample_trilinear3d, 3),
}
