"""What the training path does not have: each use says so (P0703)."""

from __future__ import annotations

from ..errors import PycompilerError, error

_REMEDY = "call backward() and the step() of an MNCoreOptimizer inside the function"


def missing(name: str) -> PycompilerError:
    """Return the diagnostic for a name of the training path."""
    reason = "the compiler does not add a backward pass by itself yet"
    return error("P0703", name=name, reason=reason, remedy=_REMEDY)
