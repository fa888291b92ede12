"""Resizes that ONNX computes otherwise than torch: products with the weights of each axis.

The places of the nearest elements are those of torch, which multiplies by a rounded scale where
ONNX divides. Doubles have weights of doubles. Images of bytes have weights of 15 bits and are
rounded after each axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .gradient_rules.constants import constant

_ATEN = torch.ops.aten
Array = Any


def _sizes(
    x: torch.Tensor, size: Sequence[int] | None, scales: Sequence[float | None]
) -> list[int]:
    if size is not None:
        return list(size)
    return [int(n * s) for n, s in zip(x.shape[2:], scales, strict=True)]  # type: ignore[operator]


def _scales(axes: int, given: Sequence[Any]) -> list[float | None]:
    """Return the scale of each axis: from one list, or from as many numbers."""
    found = given[0] if given and isinstance(given[0], (list, tuple)) else given
    return list(found) if len(found) == axes else [None] * axes


def _step(size: int, count: int, scale: float | None) -> float:
    return 1.0 / scale if scale else size / count


def _nearest_places(size: int, count: int, scale: float | None, exact: bool) -> Array:
    step = np.float32(_step(size, count, scale))
    places = np.arange(count, dtype=np.float32) + np.float32(0.5 if exact else 0.0)
    return np.minimum(np.floor(places * step).astype(np.int64), size - 1)


def _nearest_of_onnx(size: int, count: int, scale: float | None) -> Array:
    factor = np.float32(scale) if scale else np.float32(count) / np.float32(size)
    places = np.floor(np.arange(count, dtype=np.float32) / factor).astype(np.int64)
    return np.minimum(places, size - 1)


@dataclass(frozen=True)
class _Resize:
    """A resize as a rule for its operator. The exporter keeps what ONNX computes alike."""

    def concerns(self, node: torch.fx.Node) -> bool:
        """Whether ONNX computes a call otherwise."""
        x, *rest = node.args
        return not self._stays(x.meta["val"], *rest, *node.kwargs.values())  # type: ignore[union-attr]

    def __call__(self, x: torch.Tensor, *given: Any) -> Any:
        """Return the resized picture, or NotImplemented for a call that does not concern it."""
        return NotImplemented if self._stays(x, *given) else self._made(x, *given)

    def _stays(self, x: torch.Tensor, *given: Any) -> bool:
        raise NotImplementedError

    def _made(self, x: torch.Tensor, *given: Any) -> torch.Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class _Nearest(_Resize):
    """A resize that picks elements; with ``exact``, those nearest to the middle of each result."""

    exact: bool

    def _facts(self, x: Any, size: Any, given: Any) -> list[tuple[int, int, float | None]]:
        scales = _scales(x.ndim - 2, given)
        return list(zip(x.shape[2:], _sizes(x, size, scales), scales, strict=True))

    def _stays(self, x: torch.Tensor, size: Sequence[int] | None = None, *given: Any) -> bool:
        return not self.exact and all(
            np.array_equal(_nearest_places(n, count, scale, False), _nearest_of_onnx(n, count, way))
            for n, count, scale in self._facts(x, size, given)
            for way in {scale, None}
        )

    def _made(
        self, x: torch.Tensor, size: Sequence[int] | None = None, *given: Any
    ) -> torch.Tensor:
        for axis, fact in enumerate(self._facts(x, size, given)):
            places = _nearest_places(*fact, self.exact)
            if not np.array_equal(places, np.arange(fact[0])):
                x = _picked(x, axis + 2, places)
        return x.clone()


def _picked(x: torch.Tensor, axis: int, places: Array) -> torch.Tensor:
    return x.index_select(axis, constant(lambda: torch.from_numpy(places)))


def _linear(distance: Array) -> Array:
    return np.maximum(1 - np.abs(distance), 0)


def _cubic(a: float) -> Callable[[Array], Array]:
    def weight(distance: Array) -> Array:
        far = np.abs(distance)
        near = ((a + 2) * far - (a + 3)) * far * far + 1
        rest = (((far - 5) * far + 8) * far - 4) * a
        return np.where(far < 1, near, np.where(far < 2, rest, 0))

    return weight


def _weights(
    size: int, count: int, step: float, weight: Callable[[Array], Array], reach: int, corners: bool
) -> Array:
    """Return the weights (count, size) of a filter; elements beyond the edge are those at it."""
    place = np.arange(count, dtype=np.float64)
    at = step * place if corners else step * (place + 0.5) - 0.5
    at = np.maximum(at, 0) if reach == 1 else at
    found = np.zeros((count, size))
    first = np.floor(at)
    for tap in range(1 - reach, reach + 1):
        near = np.clip(first + tap, 0, size - 1).astype(np.int64)
        np.add.at(found, (np.arange(count), near), weight(first + tap - at))
    return found


def _averaging(
    size: int, count: int, step: float, weight: Callable[[Array], Array], reach: int
) -> Array:
    """Return the weights of a filter that is as wide as the elements of the result."""
    wide = max(step, 1.0)
    center = (step * (np.arange(count) + 0.5))[:, None]
    first, last = (np.floor(center + side * reach * wide + 0.5) for side in (-1, 1))
    place = np.arange(size)
    found = weight((place - center + 0.5) / wide)
    found = np.where((place >= first) & (place < last), found, 0)
    return found / found.sum(1, keepdims=True)


@dataclass(frozen=True)
class _Smooth(_Resize):
    """A resize by the weights of a filter; with ``averaging``, one as wide as a result."""

    weight: Callable[[Array], Array]
    reach: int
    averaging: bool

    def _stays(self, x: torch.Tensor, size: Any, corners: bool, *given: Any) -> bool:
        scales = _scales(x.ndim - 2, given)
        facts = zip(x.shape[2:], _sizes(x, size, scales), scales, strict=True)
        plain = all(scale is None or n * scale == count for n, count, scale in facts)
        return plain and not self.averaging and x.dtype not in (torch.float64, torch.uint8)

    def _made(self, x: torch.Tensor, size: Any, corners: bool, *given: Any) -> torch.Tensor:
        scales = _scales(x.ndim - 2, given)
        facts = list(zip(x.shape[2:], _sizes(x, size, scales), scales, strict=True))
        for axis, (n, count, scale) in reversed(list(enumerate(facts))):
            step = _step(n, count, scale)
            if corners:
                step = (n - 1) / (count - 1) if count > 1 else 0.0
            if self.averaging:
                matrix = _averaging(n, count, step, self.weight, self.reach)
            else:
                matrix = _weights(n, count, step, self.weight, self.reach, corners)
            if n != count or not np.array_equal(matrix, np.eye(n)):
                join = _joined_bytes if x.dtype == torch.uint8 else _joined
                x = join(x, axis + 2, matrix)
        return x.clone()


def _joined(x: torch.Tensor, axis: int, matrix: Array) -> torch.Tensor:
    held = constant(lambda: torch.from_numpy(matrix.T.copy()).to(x.dtype))
    return (x.movedim(axis, -1) @ held).movedim(-1, axis)


def _joined_bytes(x: torch.Tensor, axis: int, matrix: Array) -> torch.Tensor:
    bits = 0
    while bits < 22 and int(0.5 + matrix.max() * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    whole = np.trunc(matrix * (1 << bits) + np.copysign(0.5, matrix)).astype(np.int32)
    found = _joined(x.to(torch.int32), axis, whole) + (1 << (bits - 1))
    found = torch.div(found, 1 << bits, rounding_mode="floor")
    return found.clamp(0, 255).to(torch.uint8)


def _rules() -> dict[Any, _Resize]:
    found: dict[str, _Resize] = {
        **{f"upsample_nearest{axes}d": _Nearest(False) for axes in (1, 2, 3)},
        **{f"_upsample_nearest_exact{axes}d": _Nearest(True) for axes in (1, 2, 3)},
        **dict.fromkeys(
            ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"),
            _Smooth(_linear, 1, False),
        ),
        "upsample_bicubic2d": _Smooth(_cubic(-0.75), 2, False),
        "_upsample_bilinear2d_aa": _Smooth(_linear, 1, True),
        "_upsample_bicubic2d_aa": _Smooth(_cubic(-0.5), 2, True),
    }
    packets = {getattr(_ATEN, name): rule for name, rule in found.items()}
    return {op: rule for packet, rule in packets.items() for op in (packet.default, packet.vec)}


RESIZES = _rules()
