"""Merges the nodes of a segment into one stream of lines, where they do not touch common words.

See docs/compiler/merging.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import groupby
from math import lcm

from emu2._core import Ready

from ..code.lines import Fragment
from ..machine import Target
from .addressed_lines import Shelf
from .clock import Clock
from .hazards import Tracker
from .node_order import Urgency
from .other_blocks import OtherBlocks, Use
from .other_words import OtherWords
from .shifted import MEMORY, raised
from .text import Addresses
from .timeline import Placed, Timeline
from .units import Kind, Prepared, Unit, prepare
from .writer import START, Behind, Code, Listing, Writer

#: How many places of L2BM are tried for a chunk of a download.
_PLACES = 8


class Way(Enum):
    """How nodes may be placed."""

    #: with the words that their layers use, in their order
    OWN = "own words"
    #: with other words, in their order; masks stay in their registers
    KEPT = "kept masks"
    #: with other words and their own masks, by urgency
    URGENT = "urgent first"
    #: the same, but the time at which a node may start counts half
    LATE = "urgent first, starts count half"


#: How much the time at which a node may start counts in each order of urgency.
_WEIGHTS = {Way.URGENT: 1.0, Way.LATE: 0.5}


def merge(
    fragments: Sequence[tuple[str, str, Fragment]],
    addresses: Addresses,
    target: Target,
    kinds: Sequence[Kind],
    shelf: Shelf | None = None,
    behind: Behind = START,
    known: dict[bool, Way] | None = None,
) -> Code | None:
    """Make one program of ``(node, comment, fragment)``, in which nodes share lines.

    ``kinds`` has the kind of each node. ``shelf`` keeps the lines, with their port needs, for other
    programs of the same nodes. The program stands ``behind`` others. ``known`` has the best ways of
    these, by whether orders of urgency were possible; only the best is tried then. None if lines
    that belong together cannot be kept together.
    """
    best: tuple[Way, Prepared, list[Placed]] | None = None
    shelf, known = shelf or Shelf(addresses, target), {} if known is None else known
    parts = [fragment for _, _, fragment in fragments]
    # Nodes may read what others leave in registers, or downloads have an order of their own.
    free = not any(one.loose for one in parts) and Kind.FIXED not in kinds
    for way, made in _ways(parts, addresses, target, kinds, shelf, free, known.get(free)):
        placed = place(made, target)
        # What waits add when the lines are written differs by less than a hundredth.
        if best is None or _end(placed) * 100 < _end(best[2]) * 99:
            best = way, made, placed
    if best is None:
        return None
    known[free], made, placed = best
    listing = Listing(
        [(node, comment) for node, comment, _ in fragments],
        [lines.busy for lines in made.lines],
        Writer(target, Tracker(target, behind.steps), Clock(target), early_waits=True),
        behind.nodes,
    )
    return _written(placed, listing)


def _ways(
    fragments: Sequence[Fragment],
    addresses: Addresses,
    target: Target,
    kinds: Sequence[Kind],
    shelf: Shelf,
    free: bool,
    wanted: Way | None,
) -> Iterator[tuple[Way, Prepared]]:
    """Yield what may be placed; nothing if lines that belong together cannot be kept together.

    If nodes are ``free``, they may come in orders of urgency. If that is not possible, they may
    have the words that their layers use, or others. A line that is placed early may hold up a
    longer chain, so no way is always best. If ``wanted`` is possible, it is the only one.
    """
    if free and wanted not in (Way.OWN, Way.KEPT):
        made = prepare(fragments, addresses, target, kinds, shelf, masks_stay=False)
        urgency = None if made is None else Urgency.of(made.lines, target)
        if made is not None and urgency is not None:
            if wanted is None:
                yield from _kept(prepare(fragments, addresses, target, kinds, shelf))
            own: dict[int, list[Unit]] = {}
            for unit in made.units:
                own.setdefault(unit.owner, []).append(unit)
            for way, weight in _WEIGHTS.items():
                if wanted in (None, way):
                    order = urgency.order(weight)
                    units = [unit for node in order for unit in own.get(node, ())]
                    yield way, replace(made, units=units)
            return
    kept = prepare(fragments, addresses, target, kinds, shelf)
    if wanted is not Way.KEPT and kept is not None:
        yield Way.OWN, replace(kept, free=())
    if wanted is not Way.OWN:
        yield from _kept(kept)


def _kept(made: Prepared | None) -> Iterator[tuple[Way, Prepared]]:
    if made is not None:
        yield Way.KEPT, made


def _end(placed: Sequence[Placed]) -> int:
    """Return the last step in which a line stands or an MV begins."""
    return max((one.step for one in placed), default=0)


def place(made: Prepared, target: Target, unlimited: bool = False) -> list[Placed]:
    """Return all lines and MVs with their steps, in the order of placing.

    ``unlimited`` is that of `Timeline`.
    """
    crowded: set[int] = set()
    while True:
        found = _placed(made, target, crowded, unlimited)
        if found is not None:
            return found


def _placed(
    made: Prepared, target: Target, crowded: set[int], unlimited: bool
) -> list[Placed] | None:
    """Return what `place` does. Nodes in ``crowded`` move in transfer memories as a whole.

    None if webs of another node found no place: that node is in ``crowded`` now.
    """
    units, limit = made.units, made.limit
    timeline = Timeline(target, unlimited)
    others = OtherWords(target, limit, masks_stay=made.masks_stay)
    blocks = OtherBlocks(target, limit)
    uses, at = _uses(made, blocks, crowded), Counter[int]()
    shift = 0
    waiting: Iterator[Unit] = iter(())
    owner = -1
    for unit in units:
        use = uses.get(unit.owner)
        if unit.owner != owner:
            owner = unit.owner
            waiting = iter(())
            if owner in made.free:
                kept = use.memories if use else ()
                words = others.of(made.lines[owner], timeline.steps, kept)
                waiting = iter(made.again(owner, words) if words else ())
        unit = next(waiting, unit)
        if unit.begins is not None:
            shift = _best_shift(unit.begins, timeline, target, limit)
        elif not unit.streams:
            shift = 0
        lines = unit.lines
        if shift:
            by = ((MEMORY, shift),)
            lines = [raised(line, (by,) * max(1, len(line.ops)), target) for line in lines]
        if use is not None:
            moved = [blocks.of(one, at[owner] + n, use, timeline) for n, one in enumerate(lines)]
            lines = [one for one in moved if one is not None]
            if len(lines) < len(moved):
                crowded.add(owner)
                return None
            at[owner] += len(lines)
        known = len(timeline.placed)
        if unit.is_move:
            timeline.place_move(lines[0], unit.owner)
        else:
            timeline.place_lines(lines, unit.owner)
        for one in timeline.placed[known:]:
            blocks.note(one)
    return timeline.placed


def _uses(made: Prepared, blocks: OtherBlocks, crowded: Collection[int]) -> dict[int, Use]:
    """Return how each node uses transfer memories, if its words may move there."""
    if not made.free:
        return {}
    lines: dict[int, list[Ready]] = {}
    for unit in made.units:
        lines.setdefault(unit.owner, []).extend(unit.lines)
    out: dict[int, Use] = {}
    for owner, own in lines.items():
        kind = made.kinds[owner]
        if owner not in crowded and (owner in made.free or kind is Kind.DOWNLOAD):
            out[owner] = blocks.use(own, kind)
    return out


def _best_shift(moves: Sequence[Ready], timeline: Timeline, target: Target, limit: int) -> int:
    """Return how far the words of a chunk move in L2BM, so that its MVs begin early.

    They stay below ``limit`` if there is room.
    """
    writes = [access for move in moves for access in move.writes]
    low = min(access.low for access in writes)
    words = max(access.high for access in writes) - low
    capacity = target.words(MEMORY)
    unit = lcm(target.mv_unit, target.l2bm_row)
    each = max(1, capacity // _PLACES // unit) * unit
    places = range(0, capacity - words + 1, each)
    best: tuple[int, int, int] | None = None
    below = [at for at in places if at + words <= limit]
    for at in below or places:
        shift = at - low
        starts = max(timeline.steps.start_of(move, shift) for move in moves)
        found = starts, abs(shift), shift
        if best is None or found < best:
            best = found
    return 0 if best is None else best[2]


def _written(placed: Sequence[Placed], listing: Listing) -> Code:
    """Write the lines in the order of their steps, those of one step as one line.

    Such a line counts for the node that was placed there first.
    """
    order = sorted(placed, key=lambda one: (one.step, not one.end, one.number))
    for _, group in groupby(order, lambda one: (one.step, one.number if one.end else -1)):
        here = list(group)
        owners = dict.fromkeys(one.owner for one in here)
        listing.put([one.ready for one in here], tuple(owners))
    return listing.finish()
