"""All elementwise functions by operator name."""

from __future__ import annotations

from . import arithmetic
from .function import Function

FUNCTIONS: dict[str, Function] = {
    function.op: function for family in (arithmetic,) for function in family.FUNCTIONS
}
