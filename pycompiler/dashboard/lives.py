"""The memory of values over time: one rectangle each."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import PycompilerError
from ..graph.graph import Location, MNGraph, MNValue
from ..layers.dram_transfer_plan import plan_transfer
from ..machine import Target


@dataclass(frozen=True)
class Life:
    """A value from the node ``start`` to before the node ``stop``, at ``addr`` (long words).

    ``words`` are long words of each PE in LM, and of each group in DRAM.
    """

    value: str
    memory: str
    start: int
    stop: int
    addr: int
    words: int


_MEMORIES = (Location.LM0, Location.LM1, Location.DRAM)


def lives(graph: MNGraph, target: Target) -> list[Life]:
    """Return the lives of all values that have an address. Time counts nodes in their order.

    Constants and inputs are there from the beginning; constants stay, because the next call reads
    them again.
    """
    made = {out: k for k, node in enumerate(graph.nodes) for out in node.outputs if out}
    last = graph.last_use()
    found = []
    for name, value in graph.values.items():
        if value.location not in _MEMORIES or value.addr is None or value.layout is None:
            continue
        words = _words(value, target)
        if words is None:
            continue
        start = made.get(name, 0)
        stop = len(graph.nodes) if name in graph.constants else last.get(name, start) + 1
        stop = min(max(stop, start + 1), len(graph.nodes))
        found.append(Life(name, value.location.value, start, stop, value.addr, words))
    return found


def _words(value: MNValue, target: Target) -> int | None:
    if value.location is not Location.DRAM:
        return value.num_lw
    assert value.layout is not None
    try:
        return value.layout.slices * plan_transfer(value.layout, target).dram_words
    except PycompilerError:
        return None


def sizes(target: Target) -> dict[str, int]:
    """Return the long words of one instance of each memory."""
    return {place.value: target.words(place.memory) for place in _MEMORIES}
