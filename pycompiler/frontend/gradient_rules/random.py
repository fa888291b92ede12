"""Random numbers that the device computes: a function of a counter.

Each random operator of a training step has a number, each call of the step too, and each element
of a tensor. A hash of the three is the random number, the same as that of operators of ONNX
(:mod:`pycompiler.pfvm.random_numbers`). So a mask is the same wherever the step reads
it, the next call has another, and the bits do not depend on the device.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import factorial, pi
from typing import Any

import torch

from ...pfvm.random_numbers import CALLS, HIGH16, LOW16, ROUNDS, SITES, first_call
from .constants import constant

_ATEN = torch.ops.aten
_HIGH24 = -(1 << 8)
_Draw = Callable[[Sequence[int]], "torch.Tensor | None"]

_tracing = threading.local()


class Counter:
    """The number of calls of a step, and of random operators that its trace has met."""

    def __init__(self) -> None:
        first = first_call(torch.initial_seed())
        self.calls = torch.tensor(first, dtype=torch.int32)
        self.sites = 0


@contextlib.contextmanager
def counted(counter: Counter) -> Iterator[None]:
    """Let the rules of this thread use ``counter``."""
    _tracing.counter = counter
    try:
        yield
    finally:
        _tracing.counter = None


def _axis(size: int, step: int, shape: Sequence[int]) -> torch.Tensor:
    return (torch.arange(size, dtype=torch.int64) * step).to(torch.int32).reshape(shape)


def _places(shape: Sequence[int]) -> torch.Tensor:
    """Return the number of each element, as a sum of one small constant per axis."""
    total, step = constant(lambda: torch.zeros((), dtype=torch.int32)), 1
    for axis in reversed(range(len(shape))):
        wide = [-1 if a == axis else 1 for a in range(len(shape))]
        own = constant(partial(_axis, shape[axis], step, wide))
        total, step = total + own, step * shape[axis]
    return total


def _mixed(bits: torch.Tensor) -> torch.Tensor:
    """Return the hash of 32-bit integers."""
    for factor in (*ROUNDS, 1):
        # The device has no shift: the upper half is a float of 16 digits, which is exact.
        half = ((bits & HIGH16).to(torch.float32) * 2.0**-16).to(torch.int32)
        bits = bits ^ (half & LOW16)
        if factor != 1:
            bits = bits * factor
    return bits


def uniform(shape: Sequence[int]) -> torch.Tensor | None:
    """Return floats of 24 random bits in [0, 1); None outside of a training step."""
    counter: Counter | None = getattr(_tracing, "counter", None)
    if counter is None:
        return None
    counter.sites += 1
    start = _mixed(counter.calls * CALLS + counter.sites * SITES % (1 << 31))
    bits = _mixed(_places(shape) + start)
    return (bits & _HIGH24).to(torch.float32) * 2.0**-32 + 0.5


def normal(shape: Sequence[int]) -> torch.Tensor | None:
    """Return normal floats, at most 5.77 in size; None outside of a training step.

    Two uniform numbers make one of them, by the formula of Box and Muller. The first lies above 0.
    """
    length, angle = uniform(shape), uniform(shape)
    if length is None or angle is None:
        return None
    return (-2.0 * (1.0 - length).log()).sqrt() * _cosine(angle)


def _cosine(turns: torch.Tensor) -> torch.Tensor:
    """Return the cosine of turns in [0, 1), within 5e-7: the device has none of its own.

    It is the sine of the quarter turns from -1 to 1 that :func:`abs` leaves, by Taylor's series.
    """
    quarter = (turns - 0.5).abs() - 0.25
    square = quarter * quarter
    found = torch.zeros_like(square)
    for power in reversed(range(1, 12, 2)):
        sign = -1.0 if power % 4 == 3 else 1.0
        found = found * square + sign * (2.0 * pi) ** power / factorial(power)
    return found * quarter


def _chosen(like: torch.Tensor, chance: float) -> Any:
    found = uniform(like.shape)
    return NotImplemented if found is None else (found < chance).to(like.dtype)


def _bernoulli_in_place(tensor: torch.Tensor, p: float = 0.5, *, generator: Any = None) -> Any:
    chosen = NotImplemented if generator is not None else _chosen(tensor, p)
    return chosen if chosen is NotImplemented else tensor.copy_(chosen)


def _bernoulli(tensor: torch.Tensor, p: float = 0.5, *, generator: Any = None) -> Any:
    return NotImplemented if generator is not None else _chosen(tensor, p)


def _native_dropout(tensor: torch.Tensor, p: float, train: bool | None) -> Any:
    kept = NotImplemented if train is False else _chosen(tensor, 1 - p)
    if kept is NotImplemented:
        return NotImplemented
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return tensor * kept * scale, kept.to(torch.bool)


def _drawn(draw: _Draw, size: Sequence[int], *, dtype: Any = None, **_: Any) -> Any:
    found = draw(size)
    return NotImplemented if found is None else found.to(dtype or torch.get_default_dtype())


def _drawn_like(draw: _Draw, like: torch.Tensor, *, dtype: Any = None, **_: Any) -> Any:
    return _drawn(draw, like.shape, dtype=dtype or like.dtype)


def _normal_in_place(
    tensor: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None
) -> Any:
    found = None if generator is not None else normal(tensor.shape)
    return NotImplemented if found is None else tensor.copy_(found * std + mean)


def _uniform_in_place(
    tensor: torch.Tensor, first: float = 0.0, end: float = 1.0, *, generator: Any = None
) -> Any:
    found = None if generator is not None else uniform(tensor.shape)
    return NotImplemented if found is None else tensor.copy_(found * (end - first) + first)


def _empty(size: Sequence[int], _: Sequence[int], **facts: Any) -> torch.Tensor:
    """Fill memory without values, which dropout takes for its mask: zeros are as good."""
    return torch.zeros(size, dtype=facts.get("dtype"))


RANDOM_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN.bernoulli_.float: _bernoulli_in_place,
    _ATEN.bernoulli.p: _bernoulli,
    _ATEN.empty_permuted.default: _empty,
    _ATEN.native_dropout.default: _native_dropout,
    _ATEN.normal_.default: _normal_in_place,
    _ATEN.rand.default: partial(_drawn, uniform),
    _ATEN.rand_like.default: partial(_drawn_like, uniform),
    _ATEN.randn.default: partial(_drawn, normal),
    _ATEN.randn_like.default: partial(_drawn_like, normal),
    _ATEN.uniform_.default: _uniform_in_place,
}
