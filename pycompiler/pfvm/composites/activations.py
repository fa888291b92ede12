"""Activation functions that are written with other functions."""

from __future__ import annotations

from .writer import Writer

#: Above this argument, Mish is its argument in single precision.
_LINEAR = 20.0


def prelu(write: Writer) -> bool:
    """Multiply negative elements by the slope."""
    value, slope = write.node.input
    below = write.op("Less", value, write.number(0.0))
    scaled = write.op("Mul", value, slope)
    write.op("Where", below, scaled, value, result=write.node.output[0])
    return True


def mish(write: Writer) -> bool:
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
    write.op("Mul", found, half, result=write.node.output[0])
    return True
