"""All elementwise functions by operator name."""

from __future__ import annotations

from . import (
    activation,
    arithmetic,
    convert,
    exponential,
    hyperbolic,
    inverses,
    logarithm,
    logic,
    remainders,
    roots,
    trigonometry,
)
from .elementwise_function import Function
from .fused import FUSED, fused

_FAMILIES = (
    arithmetic,
    roots,
    exponential,
    logarithm,
    activation,
    logic,
    convert,
    trigonometry,
    inverses,
    hyperbolic,
    remainders,
)

FUNCTIONS: dict[str, Function] = {
    function.op: function for family in _FAMILIES for function in family.FUNCTIONS
}
FUNCTIONS[FUSED] = fused(FUNCTIONS)
