"""Operators on complex numbers that torch's exporter does not know, on pairs of real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from typing import Any

import torch

_ATEN = torch.ops.aten
_SUMS = ("add", "sub", "mul", "div")
#: Arguments that are alike for both parts.
_PLACES = {"condition", "mask", "index", "indices"}


def _by_parts(op: Any) -> Callable[..., Any]:
    """Return the rule of an operator that treats real and imaginary parts alike."""
    facts = {one.name: str(one.type) for one in op._schema.arguments}

    def parts(name: str, given: Any) -> Any:
        if isinstance(given, torch.dtype):
            return (given.to_real() if given.is_complex else given,) * 2
        if facts[name] == "number":
            return complex(given).real, complex(given).imag
        if name in _PLACES or not torch.is_tensor(given):
            return given, given
        return (given.real, given.imag) if given.is_complex() else (given, torch.zeros_like(given))

    def made_of(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(facts, args, strict=False)) | kwargs
        real = given.get("dtype") is not None and not given["dtype"].is_complex
        if real or not any(map(_is_complex, given.values())):
            return NotImplemented
        pairs = {name: parts(name, one) for name, one in given.items()}
        return torch.complex(*(op(**{n: pair[k] for n, pair in pairs.items()}) for k in (0, 1)))

    return made_of


def _is_complex(one: Any) -> bool:
    kind = one.dtype if torch.is_tensor(one) else one
    return kind.is_complex if isinstance(kind, torch.dtype) else isinstance(kind, complex)


#: Operators that move, choose or add up elements, or make constants.
_ALIKE = (
    *(_ATEN.constant_pad_nd.default, _ATEN.index_put.default, _ATEN.expand.default),
    *(_ATEN.where.self, _ATEN.where.Scalar, _ATEN.where.ScalarOther, _ATEN.where.ScalarSelf),
    *(_ATEN.masked_fill.Scalar, _ATEN.index_fill.int_Scalar, _ATEN.alias.default),
    *(_ATEN.sum.default, _ATEN.sum.dim_IntList, _ATEN.cumsum.default, _ATEN._to_copy.default),
    *(_ATEN.full.default, _ATEN.full_like.default, _ATEN.new_full.default),
    *(_ATEN.scalar_tensor.default, _ATEN.linspace.default, _ATEN.index.Tensor),
    *(_ATEN.select.int, _ATEN.repeat.default, _ATEN.tril.default, _ATEN.triu.default),
    torch.ops.prims.convert_element_type.default,
)
#: By operator that makes constants: the operator that is given the number.
_FILLS = {"full": (("zeros", 0), ("ones", 1)), "full_like": (("zeros_like", 0), ("ones_like", 1))}
_FILLS["new_full"] = (("new_zeros", 0), ("new_ones", 1))

BY_PARTS: dict[Any, Callable[..., Any]] = {op: _by_parts(op) for op in _ALIKE}


def _filled(rule: Callable[..., Any], number: int) -> Callable[..., Any]:
    return lambda *args, **facts: rule(*args, number, **facts)


for _name, _others in _FILLS.items():
    _rule = BY_PARTS[getattr(_ATEN, _name).default]
    BY_PARTS |= {getattr(_ATEN, other).default: _filled(_rule, n) for other, n in _others}


def _conjugate(x: torch.Tensor) -> Any:
    if not x.is_complex():
        return NotImplemented
    return torch.complex(x.real, -x.imag)


def _einsum(
    equation: str, operands: Sequence[torch.Tensor], *, path: Sequence[int] | None = None
) -> Any:
    if not any(x.is_complex() for x in operands):
        return NotImplemented
    return torch.complex(*multiplied_out(partial(torch.einsum, equation), operands))


def multiplied_out(
    function: Callable[..., torch.Tensor], operands: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    """Return the two parts of a product of operands of which some are complex."""
    parts = [(x.real, x.imag) if x.is_complex() else (x,) for x in operands]
    sums: list[list[torch.Tensor]] = [[], []]
    for chosen in product(*(range(len(part)) for part in parts)):
        found = function(*(part[at] for part, at in zip(parts, chosen, strict=True)))
        imaginary = sum(chosen)  # powers of i: 1, i, -1, -i
        sums[imaginary % 2].append(-found if imaginary % 4 > 1 else found)
    return [torch.stack(part).sum(0) for part in sums]


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
                return BY_PARTS[_ATEN.full.default]([1] * rank, one, dtype=kind)
            return one if one.is_complex() else BY_PARTS[_ATEN._to_copy.default](one, dtype=kind)

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


def of_reals(function: Callable[..., Any]) -> Callable[..., Any]:
    """Leave calls with complex operands as they are."""

    def made_of(*args: Any, **kwargs: Any) -> Any:
        return NotImplemented if any(map(_is_complex, args)) else function(*args, **kwargs)

    return made_of


def _exp(x: torch.Tensor) -> torch.Tensor:
    size = torch.exp(x.real)
    turned = size * torch.sin(x.imag)  # of an infinite size, real numbers stay real
    return torch.complex(size * torch.cos(x.imag), torch.where(x.imag == 0, x.imag, turned))


def _log(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(torch.log(torch.abs(x)), torch.atan2(x.imag, x.real))


def _sqrt(x: torch.Tensor) -> torch.Tensor:
    """Return the root with a real part that is not negative; no part is a difference."""
    larger = torch.sqrt((torch.abs(x) + x.real.abs()) / 2)
    other = torch.where(larger > 0, x.imag.abs() / (2 * larger), larger)
    ahead = x.real >= 0
    imaginary = torch.where(ahead, other, larger)
    return torch.complex(
        torch.where(ahead, larger, other), torch.where(x.imag < 0, -imaginary, imaginary)
    )


#: The largest power that is written as products.
_MOST_FACTORS = 16


def _power(x: torch.Tensor, exponent: complex) -> Any:
    """Return products of the squares of the number, or of its inverse."""
    power = complex(exponent).real
    whole = exponent == power and power.is_integer()
    if not x.is_complex() or not whole or not 1 <= abs(power) <= _MOST_FACTORS:
        return NotImplemented
    square, factors = x, []
    for bit in reversed(f"{int(abs(power)):b}"):
        factors += [square] * int(bit)
        square = square * square  # the last one is not read
    found = reduce(torch.mul, factors)
    return found if power > 0 else torch.reciprocal(found)


def _of_complex(function: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    """Leave calls with real numbers as they are."""
    return lambda x: function(x) if x.is_complex() else NotImplemented


#: They leave real numbers to the exporter.
COMPLEX: dict[Any, Callable[..., Any]] = {
    _ATEN.einsum.default: _einsum,
    **BY_PARTS,
    _ATEN._conj_physical.default: _conjugate,
    _ATEN.conj_physical.default: _conjugate,
    _ATEN.exp.default: _of_complex(_exp),
    _ATEN.log.default: _of_complex(_log),
    _ATEN.sqrt.default: _of_complex(_sqrt),
    _ATEN.pow.Tensor_Scalar: _power,
}
