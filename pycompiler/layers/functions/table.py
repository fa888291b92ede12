"""All elementwise functions by operator name."""

from __future__ import annotations

from . import arithmetic, convert, logic
from .function import Function

FUNCTIONS: dict[str, Function] = {
    function.op: function for family in (arithmetic, logic, convert) for function in family.FUNCTIONS
}
