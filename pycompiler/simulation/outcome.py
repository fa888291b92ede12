"""What a simulation tells of a node under one setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """The costs of a node in one setting, as its code says.

    ``steps`` and ``cycles`` count the node alone, from its first line to the end of its last MV.
    ``lm0`` and ``lm1`` are the long words of a PE that its operands take at most. ``read`` and
    ``written`` are long words of DRAM over all groups. ``busy`` counts the steps that use each
    issue slot. ``refused`` says why the node cannot run so; all numbers are then 0. ``estimated``
    says that no code was made.
    """

    key: str
    steps: int = 0
    cycles: int = 0
    lm0: int = 0
    lm1: int = 0
    read: int = 0
    written: int = 0
    busy: tuple[tuple[str, int], ...] = ()
    refused: str = ""
    estimated: bool = False

    def json(self) -> dict[str, Any]:
        """Return the outcome as plain JSON values."""
        return {**asdict(self), "busy": dict(self.busy)}


_NUMBERS = ("steps", "cycles", "lm0", "lm1", "read", "written")
_MOST = 1 << 50


def outcome_of(found: Any, key: str) -> Outcome:
    """Return the outcome that plain values describe. ValueError if they describe none of ``key``.

    A worker may run other code, or be broken: nothing that it says is taken on trust.
    """
    if not isinstance(found, Mapping) or found.keys() != {one.name for one in fields(Outcome)}:
        raise ValueError("it is no outcome of a simulation")
    if found["key"] != key:
        raise ValueError("it belongs to another node")
    busy = found["busy"]
    if not isinstance(busy, Mapping) or not isinstance(found["refused"], str):
        raise ValueError("it is no outcome of a simulation")
    counts = [*(found[name] for name in _NUMBERS), *busy.values()]
    if not all(type(count) is int and 0 <= count < _MOST for count in counts):
        raise ValueError("its counts are impossible")
    if not all(isinstance(slot, str) for slot in busy) or type(found["estimated"]) is not bool:
        raise ValueError("it is no outcome of a simulation")
    slots = tuple(sorted((slot, count) for slot, count in busy.items()))
    return Outcome(**{**found, "busy": slots})
