"""Operators on complex numbers that torch's exporter does not know, on pairs of real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch

_ATEN = torch.ops.aten
_SUMS = ("add", "sub", "mul", "div")


def _padded(x: torch.Tensor, pad: Sequence[int], value: float = 0) -> Any:
    if not x.is_complex() or value:
        return NotImplemented
    pairs = torch.constant_pad_nd(torch.view_as_real(x), [0, 0, *pad], 0)
    return torch.view_as_complex(pairs)


def _conjugate(x: torch.Tensor) -> Any:
    if not x.is_complex():
        return NotImplemented
    pairs = torch.view_as_real(x)
    sign = 1 - 2 * torch.arange(2, dtype=pairs.dtype)
    return torch.view_as_complex(pairs * sign)


def _einsum(
    equation: str, operands: Sequence[torch.Tensor], *, path: Sequence[int] | None = None
) -> Any:
    """Multiply out the real and imaginary parts of all operands."""
    if not any(x.is_complex() for x in operands):
        return NotImplemented
    parts = [(x.real, x.imag) if x.is_complex() else (x,) for x in operands]
    sums: list[list[torch.Tensor]] = [[], []]
    for chosen in product(*(range(len(part)) for part in parts)):
        factors = [part[at] for part, at in zip(parts, chosen, strict=True)]
        found = torch.einsum(equation, *factors)
        imaginary = sum(chosen)  # powers of i: 1, i, -1, -i
        sums[imaginary % 2].append(-found if imaginary % 4 > 1 else found)
    return torch.complex(*(torch.stack(part).sum(0) for part in sums))


def _filled(size: Sequence[int], value: complex, *, dtype: Any = None, **_: Any) -> Any:
    own = torch.get_default_dtype()
    kind = dtype or (own.to_complex() if isinstance(value, complex) else own)
    if not kind.is_complex:
        return NotImplemented
    parts = complex(value).real, complex(value).imag
    return torch.complex(*(torch.full(size, part, dtype=kind.to_real()) for part in parts))


def _with_number(op: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule of an operator one of whose operands may be a complex number of Python."""

    def made_of(x: Any, y: Any, alpha: complex = 1) -> Any:
        if not any(isinstance(one, complex) for one in (x, y, alpha)):
            return NotImplemented
        y = y if alpha == 1 else y * alpha
        kind = torch.result_type(x, y)
        rank = max(one.ndim for one in (x, y) if torch.is_tensor(one))

        def whole(one: Any) -> Any:
            if not torch.is_tensor(one):
                return _filled([1] * rank, one, dtype=kind)
            real = one if one.is_complex() else one.to(kind.to_real())
            return real if one.is_complex() else torch.complex(real, torch.zeros_like(real))

        return op(whole(x), whole(y))

    return made_of


def meets_number(node: torch.fx.Node) -> bool:
    """Whether a complex number is an operand or a factor."""
    return any(isinstance(one, complex) for one in (*node.args, *node.kwargs.values()))


#: Operators of a tensor and a number.
WITH_NUMBERS: dict[Any, Callable[..., Any]] = {
    **{getattr(_ATEN, op).Tensor: _with_number(getattr(torch, op)) for op in _SUMS},
    _ATEN.rsub.Scalar: lambda x, y, alpha=1: _with_number(torch.add)(x * -alpha, y + 0 * alpha),
}

#: Constants, which the exporter makes of single numbers.
FILLED: dict[Any, Callable[..., Any]] = {
    _ATEN.full.default: _filled,
    _ATEN.ones.default: lambda size, **facts: _filled(size, 1, **facts),
    _ATEN.zeros.default: lambda size, **facts: _filled(size, 0, **facts),
}


def of_reals(function: Callable[..., Any]) -> Callable[..., Any]:
    """Leave calls with complex operands as they are."""

    def made_of(*args: Any, **kwargs: Any) -> Any:
        complex_ones = (isinstance(x, torch.Tensor) and x.is_complex() for x in args)
        return NotImplemented if any(complex_ones) else function(*args, **kwargs)

    return made_of


#: They leave real numbers to the exporter.
COMPLEX: dict[Any, Callable[..., Any]] = {
    _ATEN.einsum.default: _einsum,
    _ATEN.constant_pad_nd.default: _padded,
    _ATEN._conj_physical.default: _conjugate,
    _ATEN.conj_physical.default: _conjugate,
}
