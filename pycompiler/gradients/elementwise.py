"""Gradients of operators on single elements.

A rule reads the result rather than the operand where it can: the next operator often needs it too.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import numpy as np

from .back import Back, Rule


def _unary(slope: Callable[[Back, str, str, str], str]) -> Rule:
    """Make a rule of a function from operand, result and gradient to the operand's gradient."""

    def rule(back: Back) -> bool:
        back.give(0, slope(back, back.input(0), back.node.output[0], back.grad))
        return True

    return rule


def _complement(back: Back, y: str) -> str:
    return back.op("Sub", back.number(1.0), y)


def _sigmoid(back: Back, x: str, y: str, grad: str) -> str:
    return back.op("Mul", grad, back.op("Mul", y, _complement(back, y)))


def _tanh(back: Back, x: str, y: str, grad: str) -> str:
    return back.op("Mul", grad, _complement(back, back.op("Mul", y, y)))


def _reciprocal(back: Back, x: str, y: str, grad: str) -> str:
    return back.op("Neg", back.op("Mul", grad, back.op("Mul", y, y)))


def _atan(back: Back, x: str, y: str, grad: str) -> str:
    return back.op("Div", grad, back.op("Add", back.op("Mul", x, x), back.number(1.0)))


def _cos(back: Back, x: str, y: str, grad: str) -> str:
    return back.op("Neg", back.op("Mul", grad, back.op("Sin", x)))


def _tan(back: Back, x: str, y: str, grad: str) -> str:
    return back.op("Mul", grad, back.op("Add", back.op("Mul", y, y), back.number(1.0)))


def _inverse(sign: float, square: float, more: float, *, root: bool) -> Callable[..., str]:
    """Make a gradient of ``sign`` over ``square`` times x**2 plus ``more``, or over its root."""

    def slope(back: Back, x: str, y: str, grad: str) -> str:
        below = back.op("Add", back.times(back.op("Mul", x, x), square), back.number(more))
        return back.op("Div", back.times(grad, sign), back.op("Sqrt", below) if root else below)

    return slope


def _erf(back: Back, x: str, y: str, grad: str) -> str:
    bell = back.op("Exp", back.op("Neg", back.op("Mul", x, x)))
    return back.op("Mul", grad, back.times(bell, 2 / sqrt(pi)))


def _relu(back: Back, x: str, y: str, grad: str) -> str:
    return back.where(back.op("Greater", y, back.number(0.0)), grad)


def _leaky(back: Back, x: str, y: str, grad: str) -> str:
    positive = back.op("Greater", x, back.number(0.0))
    alpha = float(back.attribute("alpha", 0.01))
    return back.op("Where", positive, grad, back.times(grad, alpha))


def _exponential(alpha: float, gamma: float) -> Rule:
    """Elu and Selu: ``gamma x`` above 0, ``gamma alpha (e^x - 1)`` below."""

    def slope(back: Back, x: str, y: str, grad: str) -> str:
        below = float(back.attribute("alpha", alpha))
        scale = float(back.attribute("gamma", gamma))
        positive = back.op("Greater", x, back.number(0.0))
        other = back.op("Mul", grad, back.op("Add", y, back.number(below * scale)))
        return back.op("Where", positive, back.times(grad, scale), other)

    return _unary(slope)


def _celu(back: Back, x: str, y: str, grad: str) -> str:
    alpha = float(back.attribute("alpha", 1.0))
    positive = back.op("Greater", x, back.number(0.0))
    slope = back.op("Add", back.times(y, 1 / alpha), back.number(1.0))
    return back.op("Where", positive, grad, back.op("Mul", grad, slope))


def _inside(back: Back, value: str, low: float, high: float) -> str:
    above = back.op("Greater", value, back.number(low))
    return back.op("And", above, back.op("Less", value, back.number(high)))


def _hard_sigmoid(back: Back, x: str, y: str, grad: str) -> str:
    alpha = float(back.attribute("alpha", 0.2))
    return back.where(_inside(back, y, 0.0, 1.0), back.times(grad, alpha))


def _hard_swish(back: Back, x: str, y: str, grad: str) -> str:
    middle = back.op("Add", back.times(x, 1 / 3), back.number(0.5))
    high = back.op("GreaterOrEqual", x, back.number(3.0))
    slope = back.op("Where", high, back.number(1.0), middle)
    return back.where(back.op("Greater", x, back.number(-3.0)), back.op("Mul", grad, slope))


def _swish(back: Back, x: str, y: str, grad: str) -> str:
    alpha = float(back.attribute("alpha", 1.0))
    gate = back.op("Sigmoid", back.times(x, alpha))
    slope = back.op("Add", gate, back.op("Mul", back.times(y, alpha), _complement(back, gate)))
    return back.op("Mul", grad, slope)


def _softplus(back: Back, x: str, y: str, grad: str) -> str:
    return back.op("Mul", grad, back.op("Sigmoid", x))


def _gelu(back: Back, x: str, y: str, grad: str) -> str:
    if bytes(back.attribute("approximate", b"none")) == b"none":
        half = back.op("Erf", back.times(x, sqrt(0.5)))
        share = back.times(back.op("Add", half, back.number(1.0)), 0.5)
        bell = back.op("Exp", back.times(back.op("Mul", x, x), -0.5))
        rest = back.op("Mul", x, back.times(bell, 1 / sqrt(2 * pi)))
        return back.op("Mul", grad, back.op("Add", share, rest))
    scale, cube = sqrt(2 / pi), 0.044715
    square = back.op("Mul", x, x)
    inner = back.op("Add", back.times(square, cube), back.number(1.0))
    bent = back.op("Tanh", back.op("Mul", back.times(x, scale), inner))
    share = back.times(back.op("Add", bent, back.number(1.0)), 0.5)
    steep = back.op("Add", back.times(square, 3 * cube), back.number(1.0))
    rest = back.op("Mul", _complement(back, back.op("Mul", bent, bent)), steep)
    rest = back.op("Mul", back.times(x, 0.5 * scale), rest)
    return back.op("Mul", grad, back.op("Add", share, rest))


def _flat(back: Back) -> bool:
    """Give nothing: the operator is constant between its steps."""
    return True


def _add(back: Back) -> bool:
    for index in range(len(back.node.input)):
        if back.wants(index):
            back.give_each(index, back.grad)
    return True


def _sub(back: Back) -> bool:
    if back.wants(0):
        back.give_each(0, back.grad)
    if back.wants(1):
        back.give_each(1, back.op("Neg", back.grad))
    return True


def _mul(back: Back) -> bool:
    for index in (0, 1):
        if back.wants(index):
            back.give_each(index, back.op("Mul", back.grad, back.input(1 - index)))
    return True


def _div(back: Back) -> bool:
    each = back.op("Div", back.grad, back.input(1))
    if back.wants(0):
        back.give_each(0, each)
    if back.wants(1):
        back.give_each(1, back.op("Neg", back.op("Mul", each, back.node.output[0])))
    return True


def _mod(back: Back) -> bool:
    """``x - y * q``, where the quotient ``q`` is a whole number, which has no slope."""
    if back.wants(0):
        back.give_each(0, back.grad)
    if back.wants(1):
        multiple = back.op("Sub", back.input(0), back.node.output[0])
        quotient = back.op("Round", back.op("Div", multiple, back.input(1)))
        back.give_each(1, back.op("Neg", back.op("Mul", back.grad, quotient)))
    return True


def _pow(back: Back) -> bool:
    x, exponent = back.input(0), back.input(1)
    if back.wants(0):
        if exponent in back.data:
            power = np.asarray(back.data[exponent]) - 1
            less = back.constant(power, "exponent")
        else:
            one = np.ones((), dtype=_dtype(back.type(1).elem))
            less = back.op("Sub", exponent, back.constant(one, "one"))
        factor = exponent
        if back.type(1).elem != back.type(0).elem:
            factor = back.op("CastLike", exponent, x)
        back.give_each(
            0, back.op("Mul", back.grad, back.op("Mul", factor, back.op("Pow", x, less)))
        )
    if back.wants(1):
        positive = back.op("Greater", x, back.number(0.0))
        slope = back.op("Mul", back.node.output[0], back.op("Log", x))
        back.give_each(1, back.op("Mul", back.grad, back.where(positive, slope)))
    return True


def _dtype(elem: str) -> np.dtype[np.generic]:
    names = {"float": "float32", "double": "float64"}
    return np.dtype(names.get(elem, elem))


def _extreme(back: Back) -> bool:
    """Share each gradient among the operands that are the largest (or smallest)."""
    y = back.node.output[0]
    hits = [back.op("Equal", name, y) for name in back.node.input]
    ones = [back.op("Where", hit, back.number(1.0), back.number(0.0)) for hit in hits]
    count = ones[0] if len(ones) == 1 else back.op("Sum", *ones)
    share = back.op("Div", back.grad, count)
    for index, hit in enumerate(hits):
        if back.wants(index):
            back.give_each(index, back.where(hit, share))
    return True


def _clip(back: Back) -> bool:
    x, low, high = back.input(0), back.input(1), back.input(2)
    inside = ""
    for index, bound, within, beyond in (
        (1, low, "GreaterOrEqual", "Less"),
        (2, high, "LessOrEqual", "Greater"),
    ):
        if not bound:
            continue
        held = back.op(within, x, bound)
        inside = back.op("And", inside, held) if inside else held
        if back.wants(index):
            back.give_each(index, back.where(back.op(beyond, x, bound), back.grad))
    if back.wants(0):
        back.give(0, back.where(inside, back.grad) if inside else back.grad)
    return True


def _where(back: Back) -> bool:
    condition, zero = back.input(0), back.number_like(1)
    if back.wants(1):
        back.give_each(1, back.op("Where", condition, back.grad, zero))
    if back.wants(2):
        back.give_each(2, back.op("Where", condition, zero, back.grad))
    return True


def _cast(back: Back) -> bool:
    back.give(0, back.op("CastLike", back.grad, back.input(0)))
    return True


ELEMENTWISE: dict[str, Rule] = {
    "Abs": _unary(lambda back, x, y, g: back.op("Mul", g, back.op("Sign", x))),
    "Acos": _unary(_inverse(-1.0, -1.0, 1.0, root=True)),
    "Acosh": _unary(_inverse(1.0, 1.0, -1.0, root=True)),
    "Add": _add,
    "Asin": _unary(_inverse(1.0, -1.0, 1.0, root=True)),
    "Asinh": _unary(_inverse(1.0, 1.0, 1.0, root=True)),
    "Atan": _unary(_atan),
    "Atanh": _unary(_inverse(1.0, -1.0, 1.0, root=False)),
    "Cast": _cast,
    "Ceil": _flat,
    "Celu": _unary(_celu),
    "Clip": _clip,
    "Cos": _unary(_cos),
    "Cosh": _unary(lambda back, x, y, g: back.op("Mul", g, back.op("Sinh", x))),
    "Div": _div,
    "Elu": _exponential(1.0, 1.0),
    "Erf": _unary(_erf),
    "Exp": _unary(lambda back, x, y, g: back.op("Mul", g, y)),
    "Floor": _flat,
    "Gelu": _unary(_gelu),
    "HardSigmoid": _unary(_hard_sigmoid),
    "HardSwish": _unary(_hard_swish),
    "Identity": _unary(lambda back, x, y, g: g),
    "LeakyRelu": _unary(_leaky),
    "Log": _unary(lambda back, x, y, g: back.op("Div", g, x)),
    "Max": _extreme,
    "Min": _extreme,
    "Mod": _mod,
    "Mul": _mul,
    "Neg": _unary(lambda back, x, y, g: back.op("Neg", g)),
    "Pow": _pow,
    "Reciprocal": _unary(_reciprocal),
    "Relu": _unary(_relu),
    "Round": _flat,
    "Selu": _exponential(1.67326319217681884765625, 1.05070102214813232421875),
    "Sigmoid": _unary(_sigmoid),
    "Sign": _flat,
    "Sin": _unary(lambda back, x, y, g: back.op("Mul", g, back.op("Cos", x))),
    "Sinh": _unary(lambda back, x, y, g: back.op("Mul", g, back.op("Cosh", x))),
    "Softplus": _unary(_softplus),
    "Sqrt": _unary(lambda back, x, y, g: back.op("Div", back.times(g, 0.5), y)),
    "Sub": _sub,
    "Sum": _add,
    "Swish": _unary(_swish),
    "Tan": _unary(_tan),
    "Tanh": _unary(_tanh),
    "Where": _where,
}
