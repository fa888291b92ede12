"""Which placed buffers share memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pycompiler.scheduler.address_search import Buffer


def overlaps(buffers: Sequence[Buffer], places: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of buffers that share a unit at a time at which both live."""
    for number, one in enumerate(buffers):
        for other in buffers[number + 1 :]:
            a, b = places[one.name], places[other.name]
            apart = one.end <= other.start or other.end <= one.start
            if not apart and a < b + other.size and b < a + one.size:
                yield one.name, other.name
