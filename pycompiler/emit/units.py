"""What is placed: the lines of all nodes, cut into units that stand together.

See docs/compiler/merging.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from emu2._core import Access, Ready

from ..code.lines import Fragment, Move
from ..machine import Target
from .addressed_lines import Lines, Shelf
from .download_order import by_first_read, downloads_before
from .kept_masks import with_kept_masks
from .line_shift import Shift
from .reorder_addresses import ReorderedAddresses
from .shifted import MEMORY
from .short_moves import with_short_moves
from .text import Addresses

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
    limit: int
    #: gives the units of a node with other words; nodes that keep their words are not in ``free``
    again: Callable[[int, Shift], Sequence[Unit]]
    free: Collection[int]
    kinds: Sequence[Kind]
    #: whether masks stay in their registers from node to node
    masks_stay: bool


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
    shelf = shelf or Shelf(addresses, target)
    other = ReorderedAddresses(target)

    def own(fragment: Fragment, kind: Kind) -> Fragment:
        if kind is Kind.DOWNLOAD:
            fragment = other.of(fragment)
        # Lines of transfers are placed one by one.
        alone = fragment.loose or kind in (Kind.DOWNLOAD, Kind.TRANSFER)
        return replace(fragment, packed=True) if alone else fragment

    short = with_short_moves(fragments, target)
    made = [own(fragment, kind) for fragment, kind in zip(short, kinds, strict=True)]
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

    free = {n for n, kind in enumerate(kinds) if kind not in (Kind.DOWNLOAD, Kind.FIXED)}
    return Prepared(ready, order, limit, again, free - set(loose), kinds, masks_stay)


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
        elif any(move.conflicts(ready) for move in between):
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
            brought = [access for move in begins for access in move.writes]
        elif not unit.is_move:
            for access in (access for line in unit.lines for access in line.reads):
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
    touched = (one for line in lines for one in (*line.reads, *line.writes))
    return min((one.low for one in touched if one.memory == MEMORY), default=_NO_LIMIT)


def _split(units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
    """Cut the units of a download into its chunks."""
    starts = [at for at, unit in enumerate(units) if unit.begins is not None]
    starts = [0, *starts[1:]] if starts else [0]
    for start, end in zip(starts, [*starts[1:], len(units)], strict=True):
        yield units[start:end]
