"""Resizes that ONNX computes otherwise than torch: picks, and products with the weights of an axis.

torch itself says which elements its kernels pick and which weights they have. Images of bytes have
weights of 15 bits and are rounded after each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch._prims_common import suggest_memory_format

from .gradient_rules.constants import constant, outside_the_trace
from .gradient_rules.resizes import axis_weights

_ATEN = torch.ops.aten
Array = Any
_Fact = tuple[int, int, float | None]


def _facts(x: torch.Tensor, size: Sequence[int] | None, given: Sequence[Any]) -> list[_Fact]:
    """Return the size, the new size and the scale of each axis.

    The scales come last: as one list, or as so many numbers.
    """
    found = given[-1] if given and isinstance(given[-1], (list, tuple)) else given
    sizes = x.shape[2:]
    scales = list(found)[-len(sizes) :] if len(found) >= len(sizes) else [None] * len(sizes)
    if size is None:
        size = [int(n * s) for n, s in zip(sizes, scales, strict=True)]
    return list(zip(sizes, size, scales, strict=True))


@dataclass(frozen=True)
class _Resize:
    """A resize as a rule for its operator. The exporter keeps what ONNX computes alike."""

    operator: Any

    def concerns(self, node: torch.fx.Node) -> bool:
        """Whether ONNX computes a call otherwise."""
        x, *rest = node.args
        with outside_the_trace():
            return not self._stays(x.meta["val"], *rest, *node.kwargs.values())  # type: ignore[union-attr]

    def __call__(self, x: torch.Tensor, *given: Any) -> Any:
        """Return the resized picture, or NotImplemented for a call that does not concern it."""
        with outside_the_trace():
            stays = self._stays(x, *given)
        return NotImplemented if stays else self._made(x, *given).clone()

    def _stays(self, x: torch.Tensor, size: Any, *given: Any) -> bool:
        raise NotImplementedError

    def _made(self, x: torch.Tensor, size: Any, *given: Any) -> torch.Tensor:
        raise NotImplementedError


class _Nearest(_Resize):
    """A resize that picks elements."""

    def _places(self, x: torch.Tensor, axis: int, size: Any, given: Any) -> list[int]:
        """Return which elements of an axis the kernel picks that torch takes for such a picture."""
        numbers = torch.arange(float(x.shape[axis])).reshape([-1, *[1] * (x.ndim - axis - 1)])
        held = numbers.expand(1, min(4, max(1, x.shape[1])), *x.shape[2:])
        held = held.contiguous(memory_format=suggest_memory_format(x))
        _, sizes, scales = zip(*_facts(x, size, given), strict=True)
        found = self.operator.overloadpacket.default(held, sizes, *scales).movedim(axis, -1)
        return [int(number) for number in found.reshape(-1, found.shape[-1])[0].tolist()]

    def _stays(self, x: torch.Tensor, size: Any, *given: Any) -> bool:
        # onnxruntime resizes singles and bytes; onnx's own evaluator multiplies by 0 and 1.
        known = x.dtype in (torch.float32, torch.uint8) and "exact" not in self.operator.name()
        return known and all(
            self._places(x, axis, size, given) == _of_onnx(n, count, way).tolist()
            for axis, (n, count, scale) in enumerate(_facts(x, size, given), 2)
            for way in {scale, None}
        )

    def _made(self, x: torch.Tensor, size: Any, *given: Any) -> torch.Tensor:
        with outside_the_trace():
            places = [self._places(x, axis, size, given) for axis in range(2, x.ndim)]
        for axis, picked in enumerate(places, 2):
            if picked != list(range(x.shape[axis])):
                x = x.index_select(axis, constant(partial(torch.tensor, picked)))
        return x


def _of_onnx(size: int, count: int, scale: float | None) -> Array:
    factor = np.float32(scale) if scale else np.float32(count) / np.float32(size)
    places = np.floor(np.arange(count, dtype=np.float32) / factor).astype(np.int64)
    return np.minimum(places, size - 1)


class _Smooth(_Resize):
    """A resize by the weights of a filter."""

    def _stays(self, x: torch.Tensor, size: Any, corners: bool, *given: Any) -> bool:
        # ONNX has scales of singles, and computes the size from them.
        plain = all(
            scale is None or n * scale == n * float(np.float32(scale)) == count
            for n, count, scale in _facts(x, size, given)
        )
        averages = "_aa" in self.operator.name()
        return plain and not averages and x.dtype not in (torch.float64, torch.uint8)

    def _made(self, x: torch.Tensor, size: Any, corners: bool, *given: Any) -> torch.Tensor:
        bytes_ = x.dtype == torch.uint8
        for place, (n, count, scale) in reversed(list(enumerate(_facts(x, size, given)))):
            way = self.operator.overloadpacket.default, x.ndim - 2, place
            matrix = np.array(axis_weights(*way, (n, count), scale, corners).tolist())
            if n != count or not (bytes_ or np.array_equal(matrix, np.eye(n))):
                x = (_joined_bytes if bytes_ else _joined)(x, place + 2, matrix)
        return x


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
    names = ("linear1d", "bilinear2d", "trilinear3d", "bicubic2d")
    found: dict[str, type[_Resize]] = {
        **{f"upsample_nearest{axes}d": _Nearest for axes in (1, 2, 3)},
        **{f"_upsample_nearest_exact{axes}d": _Nearest for axes in (1, 2, 3)},
        **{f"upsample_{name}": _Smooth for name in names},
        **{f"_upsample_{name}_aa": _Smooth for name in ("bilinear2d", "bicubic2d")},
    }
    packets = {getattr(_ATEN, name): rule for name, rule in found.items()}
    return {op: rule(op) for packet, rule in packets.items() for op in (packet.default, packet.vec)}


RESIZES = _rules()


def keep_kernels(stack: ExitStack) -> None:
    """Hide torch's forms in Python that differ from its kernels, up to an exit.

    They are those of resizes, and of a backward pass that loses the gradient of a NaN.
    """
    for op in (*RESIZES, _ATEN.softshrink.default):
        stack.callback(op.py_kernels.update, dict(op.py_kernels))
        stack.callback(op._dispatch_cache.clear)
        for key in op.py_kernels.keys() - {torch._C.DispatchKey.Meta}:
            del op.py_kernels[key]
        op._dispatch_cache.clear()
