"""Activation functions that are written with other functions."""

from __future__ import annotations

from .writer import Writer

#: Above this argument, Mish is its argument in single precision.
_LINEAR = 20.0


def mish(write: Writer) -> str | bool:
    """Write x tanh(log(1 + e^x)) as x e (e + 2) / (e (e + 2) + 2), with e = e^x.

    Two factors e^(x/2) stand for e, so that the product does not vanish before the result does. The
    ratio is the first factor, so that no product overflows.
    """
    value, two = write.node.input[0], write.number(2.0)
    small = write.op("Min", value, write.number(_LINEAR))
    half = write.op("Exp", write.op("Mul", small, write.number(0.5)))
    power = write.op("Mul", half, half)
    above = write.op("Add", power, two)
    below = write.op("Add", write.op("Mul", power, above), two)
    ratio = write.op("Mul", above, write.op("Reciprocal", below))
    found = write.op("Mul", write.op("Mul", value, ratio), half)
    return write.op("Mul", found, half)


def swish(write: Writer) -> str | bool:
    """Scale the operand of x sigmoid(x) by `alpha`, and the result by its inverse."""
    value = write.node.input[0]
    if not write.node.attribute:
        return False
    alpha = write.single("alpha", 1.0)
    if alpha in (0.0, 1.0):
        return write.op("Swish", value) if alpha else write.op("Mul", value, 0.5)
    found = write.op("Swish", write.op("Mul", value, write.number(alpha)))
    return write.op("Mul", found, write.number(1 / alpha))


def floored_remainder(write: Writer) -> str | bool:
    """Add the divisor to the remainder of fmod where their signs differ."""
    if int(write.attribute("fmod", 0)):
        return False
    (value, divisor), zero = write.node.input, write.number(0.0)
    rest = write.op("Mod", value, divisor, fmod=1)
    signs = (write.op("Less", name, zero) for name in (rest, divisor))
    none = write.op("Equal", rest, zero)
    apart = write.op("And", write.op("Xor", *signs), write.op("Not", none))
    return write.op("Where", apart, write.op("Add", rest, divisor), rest)
