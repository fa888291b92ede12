"""Plans of a schedule: what they decide, do and cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from .problem import Choice

#: What a plan does, in order: an action, a value or node, and where.
RUN, DOWN, UP, COPY, FORGET, PLAIN = "run", "down", "up", "copy", "forget", "plain"


@dataclass(frozen=True)
class Action:
    """A step of a plan.

    ``value`` is moved or forgotten on behalf of ``node``; ``bank`` is where it goes, or, for an
    upload or a forget, where it is. ``again`` says that the node has run before.
    """

    kind: str
    node: int
    value: int = -1
    bank: int = -1
    choice: Choice | None = None
    again: bool = False


@dataclass(frozen=True)
class Plan:
    """The decisions: an order of all nodes, and exceptions from the rules.

    When LM is full, the value that is read furthest in the future leaves first. ``bias`` is added
    to the position of that read. ``remade`` are values that are discarded, not stored. ``picked``
    has the index of a node's choice.
    """

    order: tuple[int, ...]
    bias: dict[int, int] = field(default_factory=dict)
    remade: frozenset[int] = frozenset()
    picked: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Cost:
    """Cycles of nodes and moves one after the other, and words of DRAM over all groups."""

    cycles: int
    words: int
