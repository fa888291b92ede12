"""The steps that hazards take between lines."""

from __future__ import annotations

from functools import lru_cache

from ..machine import Target


def pass_hazards(target: Target) -> int:
    """Return the steps that hazards take before and behind a pass between units.

    guess: a vector each; the hazards of the spec depend on the memories of the lines beside it.
    """
    return 2 * target.cycles


@lru_cache(maxsize=16)
def one_port(target: Target) -> frozenset[str]:
    """Return the memories that serve one line in a step, whatever its addresses."""
    found = (h for h in target.hazards if h.rule == "port" and not h.writers and not h.readers)
    return frozenset(name for hazard in found for name in hazard.memories)
