"""All elementwise functions by operator name."""

from __future__ import annotations

from . import activation, arithmetic, convert, exponential, logarithm, logic, roots
from .elementwise_function import Function

_FAMILIES = (arithmetic, roots, exponential, logarithm, activation, logic, convert)

FUNCTIONS: dict[str, Function] = {
    function.op: function for family in _FAMILIES for function in family.FUNCTIONS
}
