"""MNCoreJoin: adds up the parts of a weight gradient that units hold, so that each keeps a share.

See :mod:`.shares` for the way that the words take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...code.lines import BlockOperand, Line, Move, PeOperand, single_step
from ...code.nest import Nest, alike
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode, MNValue
from ...graph.layout import Broadcast, Layout
from ...graph.plan import SharedSums
from ...machine import LONGS_PER_WIDE, WORDS_PER_LONG, Target
from ...tolerance import SUM
from ..base import Cut, OtherLm, UntiedAxes, layout_of, not_apart, other_layouts
from ..scratch import vector
from .share_pieces import Piece, Shares, addresses_at_once, lane_mabs
from .shares import shares_by

JOIN = "MNCoreJoin"


class Join(UntiedAxes, OtherLm):
    """The sum over the first axis, which lies on units; the result lies on the same units.

    A second result is no more than words of DRAM that sums take on their way.
    """

    op = JOIN
    dtypes = frozenset({MNDtype.FLOAT})
    error = SUM
    schedules = (SharedSums,)

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield nothing: nodes are cut before they are parted."""
        return iter(())

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands that are not in the two LMs, and another result than the shares."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        yield from not_apart(source, result)
        found = _shares_by(node, graph, target)
        if found is None:
            yield f"the plan {node.plan}"
        else:
            yield from other_layouts({result.name: found.layout}, graph, target)

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        found = _shares_by(node, graph, target)
        assert found is not None
        sums = node.outputs[1] if len(node.outputs) > 1 else None
        return join_code(found, source, result, sums, target)


def whole_layout(parts: Layout) -> Layout:
    """Return the layout of one part: the units of the first axis hold copies."""
    copies = (Broadcast(sub.level, sub.size, sub.stride) for sub in parts.axes[0] if sub.size > 1)
    return Layout(parts.axes[1:], (*parts.broadcast, *copies))


def _shares_by(node: MNNode, graph: MNGraph, target: Target) -> Shares | None:
    """Return how units share the sum over the first axis by the plan; None if they do not."""
    layout = layout_of(graph.values[node.inputs[0]])
    if not isinstance(node.plan, SharedSums):
        return None
    return shares_by(node.plan, whole_layout(layout), layout.axes[0], MNDtype.FLOAT, target)


def _piece_words(found: Shares, target: Target) -> int:
    return found.words * target.counts["pe"]


def dram_words(found: Shares, target: Target) -> int:
    """Return how many long words of each DRAM the code needs."""
    if found.plan.parts == 1:
        return 0
    at_once = min(len(found.pieces), addresses_at_once(found, target))
    words = at_once * found.l2bs * found.mabs * _piece_words(found, target)
    return words // found.plan.parts * found.parts_apart


def join_code(
    found: Shares, source: MNValue, result: MNValue, sums: str | None, target: Target
) -> Nest:
    """Yield the code: as many addresses at once as L2BM holds.

    ``sums`` is the value in DRAM whose words sums take on their way.
    """
    most = addresses_at_once(found, target)

    def part(start: int) -> Iterator[Line]:
        end = min(start + most, len(found.pieces))
        yield from _up(found, start, end, source, target)
        if found.plan.parts > 1:
            yield from _through_dram(found, end - start, sums, target)
        else:
            words = (end - start) * found.mabs * _piece_words(found, target)
            yield from _across(found, words, target)
        yield from _down(found, start, end, result, target)

    starts = range(0, len(found.pieces), most)
    return alike(starts, lambda start: min(most, len(found.pieces) - start), part)


def _up(found: Shares, start: int, end: int, source: MNValue, target: Target) -> Iterator[Line]:
    """Yield the lines that bring pieces to L2BM, joined: those of an L2B beside each other."""
    network, cycles, size = found.network, target.cycles, _piece_words(found, target)
    assert network.mabs is not None
    places = found.mabs * found.parts_apart
    words = (end - start) * places * size
    goals: dict[int, list[tuple[int, Piece]]] = {}
    for a in range(start, end):
        for u, own in enumerate(found.pieces[a]):
            for m, piece in enumerate(own):
                at = u * words + ((a - start) * places + m) * size
                goals.setdefault(piece.word, []).append((at, piece))
    slots = target.half("l1bm") // size
    for number, (word, pieces) in enumerate(sorted(goals.items())):
        below = number % slots * size
        each = _vectors_at_once(found, target)
        for first in range(0, found.words, each * cycles):
            here = _wide(source, word + first, each, target)
            above = BlockOperand(
                "l1bm",
                below + first // cycles * network.mabs.words,
                each * network.mabs.words,
                wide=each > 1,
            )
            yield single_step("l1bm", network.mabs.up, (here,), above)
        for at, piece in pieces:
            yield single_step(
                "l2bm",
                f"l2bmr{network.operation}{piece.l1bs}",
                (BlockOperand("l1bm", below, size),),
                BlockOperand("l2bm", at, size),
            )


def _vectors_at_once(found: Shares, target: Target) -> int:
    """Return how many vectors of long words one instruction of the network of MABs sends up."""
    vectors = found.words // target.cycles
    return LONGS_PER_WIDE if vectors % LONGS_PER_WIDE == 0 else 1


def _wide(value: MNValue, at: int, each: int, target: Target) -> PeOperand:
    """Return the long words of ``value`` from ``at`` on, ``each`` per cycle."""
    here = vector(value, tuple(range(at, at + each * target.cycles, each)))
    return here._replace(words=each * WORDS_PER_LONG) if each > 1 else here


def _across(found: Shares, words: int, target: Target) -> Iterator[Line]:
    """Yield the MVs: every group adds up the words of its L2Bs, and each L2B gets its own."""
    begin, per_group = found.l2bs * words, target.l2bs_per_group
    up = f"mvr{found.network.operation}"
    if found.plan.everywhere:
        there = BlockOperand("pdm", 0, words, group=0)
        yield Move(up, words, BlockOperand("l2bm", 0, words), there)
        yield Move("mvb", words, there, BlockOperand("l2bm", begin, words))
        return
    homes = range(-(-found.l2bs // per_group))
    for group in homes:
        first = group * per_group
        own = (min(found.l2bs, first + per_group) - first) * words
        there = BlockOperand("pdm", 0, own, group=group)
        from_all = BlockOperand("l2bm", first * words, own)
        yield Move(up, own, from_all, there)
    for group in homes:
        for l2b in range(min(per_group, found.l2bs - group * per_group)):
            here = BlockOperand("pdm", l2b * words, words, group=group)
            yield Move("mvp", words, here, BlockOperand("l2bm", begin, words, l2b=l2b, group=group))


def _behind_pieces(found: Shares, addresses: int, target: Target) -> int:
    """Return the word of L2BM behind all pieces of so many addresses."""
    pieces = addresses * found.l2bs * found.mabs * found.parts_apart
    return pieces * _piece_words(found, target)


def _through_dram(
    found: Shares, addresses: int, sums: str | None, target: Target
) -> Iterator[Line]:
    """Yield the MVs: each DRAM gets the sums of its part of all pieces, and gives them back.

    A short MV holds up others less, and words of its addresses may go on before the next arrive.
    """
    size, up = _piece_words(found, target), f"mvr{found.network.operation}"
    row, begin = found.mabs * size, _behind_pieces(found, addresses, target)
    rows = [(l2b, a) for l2b in range(found.l2bs) for a in range(addresses)]
    if found.plan.gathered:
        yield from _gathered(found, rows, begin, sums, target)
        return
    for number in range(len(rows)):
        words = row * found.plan.parts
        from_all = BlockOperand("l2bm", number * words, words)
        yield Move(up, words, from_all, BlockOperand("dram", number * row, row, sums))
    for number, (l2b, a) in enumerate(rows):
        here = BlockOperand("dram", number * row, row, sums)
        yield Move("mvp", row, here, BlockOperand("l2bm", begin + a * row, row, l2b=l2b))


def _gathered(
    found: Shares, rows: Sequence[tuple[int, int]], begin: int, sums: str | None, target: Target
) -> Iterator[Line]:
    """Yield the MVs of ``rows``, L2Bs and addresses, whose L2B gets its parts from all DRAMs.

    The parts of one DRAM lie beside each other then.
    """
    row, up = found.mabs * _piece_words(found, target), f"mvr{found.network.operation}"
    part, per_group = row // found.plan.parts, target.l2bs_per_group
    for number in range(len(rows)):
        from_all = BlockOperand("l2bm", number * row, row)
        yield Move(up, row, from_all, BlockOperand("dram", number * part, part, sums))
    # Each DRAM serves another group in turn.
    for turn in range(found.plan.parts):
        for number, (unit, a) in enumerate(rows):
            group, l2b = divmod(unit, per_group)
            home = (group + turn) % found.plan.parts
            here = BlockOperand("dram", number * part, part, sums, group=home)
            at = begin + a * row + home * part
            yield Move("mvp", part, here, BlockOperand("l2bm", at, part, l2b=l2b, group=group))


def _down(found: Shares, start: int, end: int, result: MNValue, target: Target) -> Iterator[Line]:
    """Yield the lines that distribute the words of each L2B."""
    cycles, size = target.cycles, _piece_words(found, target)
    base, begin = target.half("l1bm"), _behind_pieces(found, end - start, target)
    spread = target.transfer("l2bmd", "down")
    lane = spread.destination_words // cycles
    places = target.counts["mab"] // lane_mabs(target)
    for a in range(end - start):
        for m in range(0, found.mabs, cycles):
            at = begin + (a * found.mabs + m) * size
            below = base + (a * places + m) * lane
            yield single_step(
                "l2bm",
                "l2bmd",
                (BlockOperand("l2bm", at, spread.source_words),),
                BlockOperand("l1bm", below, spread.destination_words),
            )
    vector_words = places * lane * cycles
    for a in range(0, end - start, cycles):
        here = BlockOperand("l1bm", base + a * places * lane, vector_words)
        local = vector(result, tuple(range(start + a, start + a + cycles)))
        yield single_step("l1bm", "l1bmd", (here,), local)


LAYERS = (Join(),)
