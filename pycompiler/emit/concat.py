"""Concatenate the fragments of a segment into one program, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emu2._core import Ready

from ..code.lines import Fragment, Move
from ..machine import Target
from .addressed_lines import Shelf
from .clock import Clock
from .hazards import Tracker
from .text import Addresses
from .writer import START, Behind, Code, Listing, Writer


def concatenate(
    fragments: Sequence[tuple[str, str, Fragment]],
    addresses: Addresses,
    target: Target,
    shelf: Shelf | None = None,
    behind: Behind = START,
) -> Code:
    """Make one program of ``(node, comment, fragment)``; at its end every MV has finished.

    A transfer from DRAM is issued as soon as its buffer in L2BM is free. So it runs while earlier
    nodes still compute. ``shelf`` keeps the lines for other programs of the same nodes. The program
    stands ``behind`` others.
    """
    writer = Writer(target, Tracker(target, behind.steps), Clock(target))
    shelf = shelf or Shelf(addresses, target)
    ready = [shelf.of(fragment) for _, _, fragment in fragments]
    names = [(node, comment) for node, comment, _ in fragments]
    listing = Listing(names, [lines.busy for lines in ready], writer, behind.nodes)
    for owner, line in _hoisted([lines.lines for lines in ready]):
        listing.put((line,), (owner,))
    return listing.finish()


def _hoisted(nodes: Sequence[Sequence[Ready]]) -> Iterator[tuple[int, Ready]]:
    """Yield each line in the order of issue, with its node.

    A transfer from DRAM is issued right after the last line that it must follow. That is the line
    that wrote the data it reads, or the last line that used its buffer.
    """
    # By node and line number: the transfers that are issued right behind this line.
    behind: dict[tuple[int, int], list[tuple[int, Ready]]] = {}
    moved: set[tuple[int, int]] = set()
    slots: list[tuple[int, int]] = []
    shared: list[Ready] = []
    for number, lines in enumerate(nodes):
        for index, ready in enumerate(lines):
            if not ready.shared:
                continue
            place = number, index
            line = ready.line
            if isinstance(line, Move) and line.source.memory == "dram":
                found = len(shared) - 1
                while found >= 0 and not shared[found].conflicts(ready):
                    found -= 1
                moved.add(place)
                place = slots[found] if found >= 0 else (-1, 0)
                behind.setdefault(place, []).append((number, ready))
            shared.append(ready)
            slots.append(place)
    for owner, ready in behind.get((-1, 0), ()):
        yield owner, ready
    for number, lines in enumerate(nodes):
        for index, ready in enumerate(lines):
            place = number, index
            if place not in moved:
                yield number, ready
            for owner, other in behind.get(place, ()):
                yield owner, other
