"""The steps that hazards take between lines."""

from __future__ import annotations

from ..machine import Target


def pass_hazards(target: Target) -> int:
    """Return the steps that hazards take before and behind a pass between units.

    guess: a vector each; the hazards of the spec depend on the memories of the lines beside it.
    """
    return 2 * target.cycles
