"""Merges the nodes of a segment into one stream of lines, where they do not touch common words.

See docs/compiler/merging.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..layers.fragment import Fragment, Move, Step
from ..machine import Target
from .addressed_lines import Ready, Shelf
from .clock import Clock
from .hazards import Accesses, Tracker
from .move_costs import MoveCosts
from .text import Addresses
from .timeline import Placed, Timeline
from .writer import Code, Listing, Writer

#: A pass over the program that saves less than this share of the cycles is the last one.
LEAST_SAVING = 0.005
_MOST_PASSES = 4


@dataclass(frozen=True, eq=False)
class Unit:
    """An MV, or lines of node ``owner`` that must follow each other without a gap."""

    owner: int
    lines: Sequence[Ready]

    @property
    def is_move(self) -> bool:
        """Whether it is an MV."""
        return isinstance(self.lines[0].line, Move)


def merge(
    fragments: Sequence[tuple[str, str, Fragment]], addresses: Addresses, target: Target
) -> Code | None:
    """Make one program of ``(node, comment, fragment)``, in which nodes share lines.

    None if lines that belong together cannot be kept together.
    """
    shelf = Shelf(addresses, target, ports=True)
    ready = [shelf.of(fragment) for _, _, fragment in fragments]
    costs = MoveCosts(addresses, target)
    units: list[Unit] = []
    for owner, lines in enumerate(ready):
        found = _units(owner, lines.lines)
        if found is None:
            return None
        units += found
    best: Code | None = None
    for _ in range(_MOST_PASSES):
        placed = place(units, costs, target)
        listing = Listing(
            [(node, comment) for node, comment, _ in fragments],
            [lines.busy for lines in ready],
            Writer(target, addresses, Tracker(target), Clock(costs, target), early_waits=True),
        )
        code = _written(placed, listing)
        if best is not None and code.cycles > (1 - LEAST_SAVING) * best.cycles:
            return min(best, code, key=lambda one: one.cycles)
        best = code
        units = _in_time(units, placed)
    return best


def _units(owner: int, lines: Sequence[Ready]) -> list[Unit] | None:
    """Cut a node into units; None if lines of one unit would have to wait for an MV among them."""
    out: list[Unit] = []
    run: list[Ready] = []
    between: list[Ready] = []  # MVs that stand between two lines of the run

    def close() -> None:
        if run:
            out.append(Unit(owner, tuple(run)))
        out.extend(Unit(owner, (move,)) for move in between)
        run.clear()
        between.clear()

    before: frozenset[str] = frozenset()
    for ready in lines:
        if isinstance(ready.line, Move):
            between.append(ready)
            continue
        taken = frozenset(slot for op in ready.ops for slot in op.takes)
        if not taken <= before:
            return None
        if not taken:
            close()
        elif any(move.touched.conflicts(ready.touched) for move in between):
            return None
        run.append(ready)
        before = frozenset(op.slot for op in ready.ops)
    close()
    return out


def place(units: Sequence[Unit], costs: MoveCosts, target: Target) -> list[Placed]:
    """Return all lines and MVs with their steps, in the order of placing."""
    ops = (op for unit in units for line in unit.lines for op in line.ops)
    anywhere = {memory for op in ops for memory in (*op.anywhere_read, *op.anywhere_written)}
    timeline = Timeline(costs, target, anywhere)
    for unit in units:
        if unit.is_move:
            timeline.place_move(unit.lines[0], unit.owner)
        else:
            timeline.place_lines(unit.lines, unit.owner)
    return timeline.placed


def _in_time(units: Sequence[Unit], placed: Sequence[Placed]) -> list[Unit]:
    """Return the units in the order of their steps."""
    order: list[tuple[int, int, Unit]] = []
    number = 0
    for unit in units:
        order.append((placed[number].step, number, unit))
        number += len(unit.lines)
    order.sort(key=lambda one: one[:2])
    return [unit for _, _, unit in order]


def _written(placed: Sequence[Placed], listing: Listing) -> Code:
    """Write the lines in the order of their steps, those of one step as one line."""
    joined: dict[tuple[int, ...], Ready] = {}
    begun = -1
    order = sorted(placed, key=lambda one: (one.step, not one.end, one.number))
    at = 0
    while at < len(order):
        here = [order[at]]
        if not here[0].end:
            while at + len(here) < len(order) and order[at + len(here)].step == here[0].step:
                here.append(order[at + len(here)])
        at += len(here)
        owner = max(one.owner for one in here)
        while begun < owner:
            begun += 1
            listing.begin(begun)
        ready = here[0].ready
        if len(here) > 1:
            key = tuple(id(one.ready) for one in here)
            found = joined.get(key)
            ready = joined[key] = found or _joined([one.ready for one in here])
        listing.put(ready, here[0].owner)
    while begun < listing.nodes - 1:
        begun += 1
        listing.begin(begun)
    return listing.finish()


def _joined(lines: Sequence[Ready]) -> Ready:
    """Return one line of all instructions."""
    instructions = tuple(
        one for ready in lines if isinstance(ready.line, Step) for one in ready.line.instructions
    )
    touched = Accesses(
        tuple(access for ready in lines for access in ready.touched.reads),
        tuple(access for ready in lines for access in ready.touched.writes),
    )
    text = "; ".join(ready.text for ready in lines)
    return Ready(Step(instructions), touched, text, any(ready.shared for ready in lines))
