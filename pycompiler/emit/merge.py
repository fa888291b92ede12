"""Merges the nodes of a segment into one stream of lines, where they do not touch common words.

See docs/compiler/merging.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import lcm

from ..layers.fragment import Fragment, Move
from ..machine import Target
from .addressed_lines import Lines, Ready, Shelf, joined_line
from .clock import Clock
from .download_order import by_first_read, downloads_before
from .hazards import Access, Tracker
from .kept_masks import with_kept_masks
from .line_shift import Shift
from .move_costs import MoveCosts
from .node_order import by_urgency
from .other_words import OtherWords
from .reorder_addresses import ReorderedAddresses
from .shifted import MEMORY, Shifted
from .text import Addresses
from .timeline import Placed, Timeline
from .writer import Code, Listing, Writer

#: How many places of L2BM are tried for a chunk of a download.
_PLACES = 8
_NO_LIMIT = 1 << 32  # past the end of any memory


class Kind(Enum):
    """What the pass makes of the lines of a node."""

    #: a download: it gets other addresses, and its lines are placed one by one
    DOWNLOAD = "download"
    #: another transfer: its lines are placed one by one
    TRANSFER = "transfer"
    OTHER = "other"
    #: as the last, but other nodes read what it leaves in registers and in memories of transfers
    FIXED = "fixed"


@dataclass(frozen=True, eq=False)
class Unit:
    """An MV, or lines of node ``owner`` that must follow each other without a gap."""

    owner: int
    lines: Sequence[Ready]
    #: whether it belongs to a chunk of a download; and the MVs of the chunk that it begins
    streams: bool = False
    begins: Sequence[Ready] | None = None

    @property
    def is_move(self) -> bool:
        """Whether it is an MV."""
        return isinstance(self.lines[0].line, Move)


@dataclass(frozen=True, eq=False)
class Prepared:
    """The lines of some nodes, and all units in the order of placing.

    Words of downloads in L2BM stay below ``limit``.
    """

    lines: Sequence[Lines]
    units: Sequence[Unit]
    costs: MoveCosts
    limit: int
    #: gives the units of a node with other words; nodes that keep their words are not in ``free``
    again: Callable[[int, Shift], Sequence[Unit]]
    free: Collection[int]
    downloads: Collection[int]
    #: whether masks stay in their registers from node to node
    masks_stay: bool


def merge(
    fragments: Sequence[tuple[str, str, Fragment]],
    addresses: Addresses,
    target: Target,
    kinds: Sequence[Kind],
) -> Code | None:
    """Make one program of ``(node, comment, fragment)``, in which nodes share lines.

    ``kinds`` has the kind of each node. None if lines that belong together cannot be kept together.
    """
    best: tuple[Prepared, list[Placed]] | None = None
    for made in _ways([fragment for _, _, fragment in fragments], addresses, target, kinds):
        placed = place(made, target)
        # What waits add when the lines are written differs by less than a hundredth.
        if best is None or _end(placed) * 100 < _end(best[1]) * 99:
            best = made, placed
    if best is None:
        return None
    made, placed = best
    listing = Listing(
        [(node, comment) for node, comment, _ in fragments],
        [lines.busy for lines in made.lines],
        Writer(target, addresses, Tracker(target), Clock(made.costs, target), early_waits=True),
    )
    return _written(placed, listing)


def _ways(
    fragments: Sequence[Fragment], addresses: Addresses, target: Target, kinds: Sequence[Kind]
) -> Iterator[Prepared]:
    """Yield what may be placed; nothing if lines that belong together cannot be kept together.

    Masks stay in their registers, and nodes have their own words, or others. Or nodes make their
    own masks and come in another order. A line that is placed early may hold up a longer chain, so
    no way is always best.
    """
    shelf = Shelf(addresses, target, ports=True)
    kept = prepare(fragments, addresses, target, kinds, shelf)
    if kept is None:
        return
    yield replace(kept, free=())
    yield kept
    if len(kept.free) + len(kept.downloads) < len(kept.lines):
        return  # nodes read what others leave in registers, or downloads have an order of their own
    made = prepare(fragments, addresses, target, kinds, shelf, masks_stay=False)
    order = None if made is None else by_urgency(made.lines, made.costs, target)
    if made is not None and order is not None:
        own: dict[int, list[Unit]] = {}
        for unit in made.units:
            own.setdefault(unit.owner, []).append(unit)
        yield replace(made, units=[unit for node in order for unit in own.get(node, ())])


def _end(placed: Sequence[Placed]) -> int:
    """Return the last step in which a line stands or an MV begins."""
    return max((one.step for one in placed), default=0)


def prepare(
    fragments: Sequence[Fragment],
    addresses: Addresses,
    target: Target,
    kinds: Sequence[Kind],
    shelf: Shelf | None = None,
    *,
    masks_stay: bool = True,
) -> Prepared | None:
    """Return what is placed; None if lines that belong together cannot be kept together.

    With ``masks_stay``, masks stay in their registers from node to node. ``shelf`` has the lines
    that were made for the same addresses and kinds before.
    """
    shelf = shelf or Shelf(addresses, target, ports=True)
    other = ReorderedAddresses(target)

    def own(fragment: Fragment, kind: Kind) -> Fragment:
        if kind is Kind.DOWNLOAD:
            fragment = other.of(fragment)
        # Lines of transfers are placed one by one.
        alone = fragment.loose or kind in (Kind.DOWNLOAD, Kind.TRANSFER)
        return replace(fragment, packed=True) if alone else fragment

    made = [own(fragment, kind) for fragment, kind in zip(fragments, kinds, strict=True)]
    # A node that others rely on leaves in registers exactly what its lines say.
    masks_stay = masks_stay and Kind.FIXED not in kinds
    made = with_kept_masks(made, target) if masks_stay else made
    ready = [shelf.of(fragment) for fragment in made]
    units: list[list[Unit]] = []
    for owner, lines in enumerate(ready):
        found = _units(owner, lines.lines)
        if found is None:
            return None
        units.append(_chunks(found) if kinds[owner] is Kind.DOWNLOAD else found)
    loose = [number for number, fragment in enumerate(fragments) if fragment.loose]
    limit = _lowest([ready[number] for number in loose])
    order = _in_order(units, ready, kinds, loose, target)

    def again(owner: int, shift: Shift) -> Sequence[Unit]:
        found = _units(owner, shelf.of(made[owner], shift).lines)
        assert found is not None
        return found

    downloads = {n for n, kind in enumerate(kinds) if kind is Kind.DOWNLOAD}
    free = {n for n, kind in enumerate(kinds) if kind not in (Kind.DOWNLOAD, Kind.FIXED)}
    costs = MoveCosts(addresses, target)
    return Prepared(ready, order, costs, limit, again, free - set(loose), downloads, masks_stay)


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


def _chunks(units: Sequence[Unit]) -> list[Unit]:
    """Return the units of a download, each with its index in a chunk: MVs and the lines after them.

    If a line reads words of L2BM that the MVs of its chunk did not write, the words must keep their
    addresses. Then the units are returned unchanged.
    """
    out: list[Unit] = []
    brought: list[Access] = []
    for number, unit in enumerate(units):
        begins = None
        if unit.is_move and not (number and units[number - 1].is_move):
            end = number
            while end < len(units) and units[end].is_move:
                end += 1
            begins = [one.lines[0] for one in units[number:end]]
            brought = [access for move in begins for access in move.touched.writes]
        elif not unit.is_move:
            for access in (access for line in unit.lines for access in line.touched.reads):
                if access.memory == MEMORY and not any(
                    one.low <= access.low and access.high <= one.high for one in brought
                ):
                    return list(units)
        out.append(replace(unit, streams=True, begins=begins))
    return out


def _in_order(
    units: Sequence[Sequence[Unit]],
    ready: Sequence[Lines],
    kinds: Sequence[Kind],
    loose: Sequence[int],
    target: Target,
) -> list[Unit]:
    """Return the units of all nodes; downloads before a loose node in the order of their use."""
    out: list[Unit] = []
    done = 0
    downloads = [kind is Kind.DOWNLOAD for kind in kinds]
    for reader in loose:
        run = downloads_before(reader, downloads, ready)
        out += (unit for own in units[done : run.start] for unit in own)
        chunks = [list(_split(units[number])) for number in run]
        lines = [[[line for unit in one for line in unit.lines] for one in own] for own in chunks]
        for download, number in by_first_read(lines, ready[reader], target):
            out += chunks[download][number]
        done = reader
    return [*out, *(unit for own in units[done:] for unit in own)]


def _lowest(nodes: Sequence[Lines]) -> int:
    """Return the first word of L2BM that lines of these nodes touch.

    Such lines run beside downloads. If a chunk of a download took their words, all of them that
    stand behind it would wait for it.
    """
    lines = (line for node in nodes for line in node.lines if line.shared)
    touched = (one for line in lines for one in (*line.touched.reads, *line.touched.writes))
    return min((one.low for one in touched if one.memory == MEMORY), default=_NO_LIMIT)


def _split(units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
    """Cut the units of a download into its chunks."""
    starts = [at for at, unit in enumerate(units) if unit.begins is not None]
    starts = [0, *starts[1:]] if starts else [0]
    for start, end in zip(starts, [*starts[1:], len(units)], strict=True):
        yield units[start:end]


def place(made: Prepared, target: Target, kind: type[Timeline] = Timeline) -> list[Placed]:
    """Return all lines and MVs with their steps, in the order of placing.

    ``kind`` says where a line may stand.
    """
    units, limit = made.units, made.limit
    ops = (op for unit in units for line in unit.lines for op in line.ops)
    anywhere = {memory for op in ops for memory in (*op.anywhere_read, *op.anywhere_written)}
    timeline = kind(made.costs, target, anywhere)
    shifted, others = Shifted(target), OtherWords(target, limit, masks_stay=made.masks_stay)
    shift = 0
    waiting: Iterator[Unit] = iter(())
    owner = -1
    for unit in units:
        if unit.owner != owner:
            owner = unit.owner
            waiting = iter(())
            if owner in made.free:
                words = others.of(made.lines[owner], timeline)
                waiting = iter(made.again(owner, words) if words else ())
        unit = next(waiting, unit)
        if unit.begins is not None:
            shift = _best_shift(unit.begins, timeline, target, limit)
        elif not unit.streams:
            shift = 0
        lines = [shifted.of(line, shift) for line in unit.lines] if shift else unit.lines
        if unit.is_move:
            timeline.place_move(lines[0], unit.owner)
        else:
            timeline.place_lines(lines, unit.owner)
    return timeline.placed


def _best_shift(moves: Sequence[Ready], timeline: Timeline, target: Target, limit: int) -> int:
    """Return how far the words of a chunk move in L2BM, so that its MVs begin early.

    They stay below ``limit`` if there is room.
    """
    writes = [access for move in moves for access in move.touched.writes]
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
        starts = max(timeline.start_of(move, shift) for move in moves)
        found = starts, abs(shift), shift
        if best is None or found < best:
            best = found
    return 0 if best is None else best[2]


def _written(placed: Sequence[Placed], listing: Listing) -> Code:
    """Write the lines in the order of their steps, those of one step as one line.

    A node is named before the first line that counts for it. One without such a line is named
    before the next node that has one.
    """
    joined: dict[tuple[int, ...], Ready] = {}
    named: set[int] = set()
    waiting: dict[int, None] = {}
    order = sorted(placed, key=lambda one: (one.step, not one.end, one.number))

    def name(nodes: Iterable[int]) -> None:
        for node in nodes:
            if node not in named:
                named.add(node)
                listing.begin(node)

    owners = _owners(order)
    at = 0
    while at < len(order):
        here = [order[at]]
        if not here[0].end:
            while at + len(here) < len(order) and order[at + len(here)].step == here[0].step:
                here.append(order[at + len(here)])
        at += len(here)
        owner = here[0].owner
        if owner not in named:
            name(waiting)
            waiting.clear()
            name([owner])
        waiting |= dict.fromkeys(one.owner for one in here[1:] if one.owner not in owners)
        ready = here[0].ready
        if len(here) > 1:
            key = tuple(id(one.ready) for one in here)
            found = joined.get(key)
            ready = joined[key] = found or joined_line([one.ready for one in here])
        listing.put(ready, owner)
    name(range(listing.nodes))
    return listing.finish()


def _owners(order: Sequence[Placed]) -> set[int]:
    """Return the nodes for which a line or an MV counts: the first one of each step."""
    last = None
    found: set[int] = set()
    for one in order:
        if one.end or one.step != last:
            found.add(one.owner)
        last = None if one.end else one.step
    return found
