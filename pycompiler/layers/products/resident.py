"""The schedule in which every MAB holds its operands: vectors and matrix both come from LM.

The ALU converts a vector to block float while the MAU multiplies the vector of the step before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import cycle, product

from ...code.lines import Forward, Line, MatrixOperand, Operand, PeOperand, Step, alu_step
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode, MNValue
from ...graph.layout import Layout, Level, SubAxis
from ...machine import WORDS_PER_LONG, Target
from ..base import layout_of
from ..switch.l1b_sums import sum_l1bs, sum_steps
from ..switch.unit_masks import UnitMasks
from .layouts import l1bs_of, wanted_layouts
from .overlapped import Tile, may_overlap, one_behind_the_other, tile_lines
from .pipelined import product_of, vector_registers
from .roles import Precision, bias_of, precision_of, roles_of
from .tails import Tails, tail_steps
from .tiles import Pair, tile_pairs, tile_steps, vector_operand
from .turns import together_ahead, turns_of

#: Orders of the code beside the own one: one block of columns after the other, or one bank
#: filled at a time.
COLUMNS, ONE_BANK = "columns", "one_bank"
#: Groups of the contracted axis whose vectors are converted together.
_AHEAD = 4


@dataclass(frozen=True)
class _Work:
    """The addresses that a PE works on, in long words.

    ``batches`` has the addresses of each batch index in A, B, C and the bias; ``vectors`` those of
    each m in A and C; ``tiles`` those of each block of rows in B, C and the bias. ``sums`` has for
    each group of the contracted axis, for each tap, its addresses in A and B, its word, and the
    number of its elements that exist. ``row`` is the distance of rows in B. ``width`` is the number
    of words of a result, which is rounded to halves if ``rounded``. ``taps`` counts taps.
    """

    batches: tuple[tuple[int, int, int, int], ...]
    vectors: tuple[tuple[int, int], ...]
    tiles: tuple[tuple[int, int, int], ...]
    sums: tuple[tuple[int, int, int, int], ...]
    row: int
    width: int
    rounded: bool
    taps: int


@lru_cache(maxsize=256)
def axis_addresses(subs: tuple[SubAxis, ...], skip: int) -> tuple[int, ...]:
    """Return the addresses of the Addr digits of an axis from weight ``skip`` on, minor first."""
    out, weight = [0], 1
    for sub in reversed(subs):
        below = max(1, min(sub.size, skip // weight))
        if sub.level is Level.ADDR:
            digits = range(0, sub.size, below)
            out = [at + digit * sub.stride for digit in digits for at in out]
        weight *= sub.size
    return tuple(out)


def work_of(node: MNNode, graph: MNGraph, target: Target) -> _Work:
    """Return the addresses that a PE works on."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    layouts = wanted_layouts(node, graph, target)
    assert layouts is not None
    a, b, c = (layouts[name] for name in (*node.inputs[:2], node.outputs[0]))
    rows = kind.rows
    over = l1bs_of(a.axes[roles.a[2]])

    def along(layout: Layout, axis: int | None, skip: int = 1) -> tuple[int, ...]:
        return (0,) if axis is None else axis_addresses(layout.axes[axis], skip)

    added = bias_of(node)
    batch: list[list[tuple[int, int, int, int]]] = []
    # If the matrix is the same along a batch axis, that axis only adds vectors.
    more: list[list[tuple[int, int, int, int]]] = []
    taps: list[list[tuple[int, int]]] = []
    for index, axis in enumerate(roles.c[0]):
        own = along(c, axis)
        one, other = (
            along(x, side[index]) if side[index] is not None else (0,) * len(own)
            for x, side in ((a, roles.a[0]), (b, roles.b[0]))
        )
        window = roles.windows.get(index)
        if window is not None and not window.trivial:
            one = tuple(one[place * window.stride] for place in range(len(own)))
            along_a, along_b = along(a, roles.a[0][index]), along(b, window.axis)
            taps.append([(along_a[t * window.dilation], along_b[t]) for t in range(window.taps)])
        shared = roles.b[0][index] is None
        row = (0,) * len(own)
        if added is not None and not shared:
            row = along(layouts[added], 0)
        (more if shared else batch).append(list(zip(one, other, own, row, strict=True)))
    m_a, m_c = along(a, roles.a[1]), along(c, roles.c[1])
    more.append([(one, 0, own, 0) for one, own in zip(m_a, m_c, strict=True)])
    batches = _sums_of(batch)
    n_b, n_c = along(b, roles.b[2], rows), along(c, roles.c[2], rows)
    bias = (0,) * len(n_c)
    if added is not None:
        bias = axis_addresses(layouts[added].axes[-1], rows)
    blocks = list(_sums(a.axes[roles.a[2]], b.axes[roles.b[1]], roles.k // over, kind, target))
    first = axis_addresses(b.axes[roles.b[2]], 1) if roles.b[2] is not None else (0, 0)
    return _Work(
        tuple(batches),
        tuple((one, own) for one, _, own, _ in _sums_of(more)),
        tuple(zip(n_b, n_c, bias, strict=True)),
        tuple(
            (sum_a + sum(t[0] for t in tap), sum_b + sum(t[1] for t in tap), word, count)
            for tap in product(*taps)
            for sum_a, sum_b, word, count in blocks
        ),
        first[1] - first[0] if len(first) > 1 else 0,
        # If the result has no n axis, all its rows are equal, and one long word holds them.
        WORDS_PER_LONG
        * (1 if roles.c[2] is None else kind.result_words(graph.values[node.outputs[0]].dtype)),
        graph.values[node.outputs[0]].dtype is MNDtype.HALF,
        roles.taps,
    )


def _sums_of(
    axes: Sequence[Sequence[tuple[int, int, int, int]]],
) -> list[tuple[int, int, int, int]]:
    """Return the addresses of all combinations of the axes' indices."""
    out = [(0, 0, 0, 0)]
    for axis in axes:
        out = [(a + e, b + f, c + g, d + h) for a, b, c, d in out for e, f, g, h in axis]
    return out


def _sums(
    a: tuple[SubAxis, ...], b: tuple[SubAxis, ...], size: int, kind: Precision, target: Target
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the groups of the contracted axis: addresses in A and B, word, elements that exist."""
    pes = target.counts["pe"]
    packed = kind.packed
    one, other = (axis_addresses(s, packed) for s in (a, b))
    for block, (in_a, in_b) in enumerate(zip(one, other, strict=True)):
        left = min(packed, size - block * packed)
        if left <= 0:
            return  # the last slice may be shorter than the layout
        if kind.words >= WORDS_PER_LONG:
            yield in_a, in_b, 0, left
            continue
        for word in range(WORDS_PER_LONG):
            # Elements run over words first, then over PEs: a group has one element in each PE.
            count = -(-(left - word) // WORDS_PER_LONG)
            if count > 0:
                yield in_a, in_b, word, min(count, pes)


def cost(node: MNNode, graph: MNGraph, target: Target) -> int:
    """Estimate the steps."""
    work, kind = work_of(node, graph, target), precision_of(node, target)
    per_tile = tile_steps(kind, graph.values[node.inputs[1]], work.row, target)
    most, steps = _most_vectors(kind, target), 0
    whole, rest = divmod(len(work.vectors), most)
    for times, count in ((whole, most), (1, rest)):
        if not times or not count:
            continue
        each = _blocks_together(work, kind, count, target, node.order)
        groups, left = divmod(len(work.tiles), each)
        vectors = -(-count // target.cycles)
        own = groups * _block_steps(kind, each, per_tile, vectors, target)
        own += _block_steps(kind, left, per_tile, vectors, target)
        steps += times * len(work.sums) * own
    if work.sums[-1][3] < kind.block and kind.words >= WORDS_PER_LONG:
        vectors = -(-len(work.vectors) // target.cycles)
        more = [tail_steps(kind, graph.values[name].dtype) - 1 for name in node.inputs[:2]]
        last = vectors * more[0] + -(-kind.rows // target.cycles) * more[1]
        steps += len(work.tiles) * roles_of(node, graph).taps * last
    steps *= len(work.batches)
    if not _sums_l1bs(node, graph):
        return steps
    rows = len(work.batches) * len(work.tiles) * len(work.vectors) * work.width // WORDS_PER_LONG
    return steps + sum_steps(rows, target, added=bias_of(node) is not None)


def _block_steps(kind: Precision, tiles: int, per_tile: int, vectors: int, target: Target) -> int:
    """Estimate the steps of one block of the contracted axis for some blocks of rows.

    The ALU converts rows and vectors, the MAU multiplies. Two blocks of rows in two banks share the
    vectors that the registers have room for.
    """
    multiplied = len(kind.suffixes) * tiles * vectors
    kept = min(vectors, len(vector_registers(kind, target)))
    # With an odd number of blocks, one of them shares a pair with the next block of the axis.
    pairs = tiles // 2 if len(target.banks) > 1 else 0
    return max(tiles * per_tile + multiplied - pairs * kept, multiplied)


def _sums_l1bs(node: MNNode, graph: MNGraph) -> bool:
    """Whether L1Bs share the contracted axis."""
    layout = layout_of(graph.values[node.inputs[0]])
    return l1bs_of(layout.axes[roles_of(node, graph).a[2]]) > 1


def _most_vectors(kind: Precision, target: Target) -> int:
    """Return the number of vectors whose sums fit the register file."""
    return target.words("grf0") // kind.result // target.cycles * target.cycles


def emit(node: MNNode, graph: MNGraph, target: Target) -> Iterator[Line]:
    """Yield the code."""
    work, kind = work_of(node, graph, target), precision_of(node, target)
    one, other, out = (graph.values[n] for n in (*node.inputs[:2], node.outputs[0]))
    name = bias_of(node)
    bias = None if name is None else graph.values[name]
    apart = _sums_l1bs(node, graph)
    fused = None if apart else bias
    halves = {value.name for value in (one, other) if value.dtype is MNDtype.HALF}
    tails = Tails(kind, halves, UnitMasks("subpeid", target), target)
    most = _most_vectors(kind, target)
    for batch in work.batches:
        for start in range(0, len(work.vectors), most):
            vectors = work.vectors[start : start + most]
            for tiles in _together(work, kind, len(vectors), target, node.order):
                several = len(tiles) > 1 or len(vectors) > target.cycles
                # Sums of one register must not follow each other at once: it is read later.
                banks = len(target.banks) if several and node.order != ONE_BANK else 1
                values = one, other, out, fused
                yield from _tiles(kind, work, batch, vectors, tiles, values, tails, target, banks)
    if apart:
        rows = {
            at_c + c + tile[1] + part: at_bias + tile[2] + part
            for _, _, at_c, at_bias in work.batches
            for _, c in work.vectors
            for tile in work.tiles
            for part in range(work.width // WORDS_PER_LONG)
        }
        yield from sum_l1bs(out, bias, rows, target)


def orders(node: MNNode, graph: MNGraph, target: Target) -> tuple[str, ...]:
    """Return the other orders of the code."""
    work, kind = work_of(node, graph, target), precision_of(node, target)
    vectors = min(len(work.vectors), _most_vectors(kind, target))
    together = any(len(tiles) > 1 for tiles in _together(work, kind, vectors, target))
    several = together or vectors > target.cycles
    # Lines that overlap fill one bank at a time anyway.
    overlap = may_overlap(-(-vectors // target.cycles), vector_registers(kind, target))
    pairs = several and not overlap and len(work.sums) * len(work.tiles) > 1
    pairs = pairs and len(target.banks) > 1
    return (*((COLUMNS,) if together else ()), *((ONE_BANK,) if pairs else ()))


def _together(
    work: _Work, kind: Precision, vectors: int, target: Target, order: str = ""
) -> Iterator[Sequence[tuple[int, int, int]]]:
    """Yield the blocks of rows that are worked on together."""
    count = _blocks_together(work, kind, vectors, target, order)
    for start in range(0, len(work.tiles), count):
        yield work.tiles[start : start + count]


def _blocks_together(work: _Work, kind: Precision, vectors: int, target: Target, order: str) -> int:
    """Return how many blocks of rows are worked on together.

    If the matrix lies block behind block, as many as there are sums in the register file. Then its
    words are read in the order of their addresses, in which downloads bring them. So those of the
    next matrix may take their places one after the other. Otherwise two, which share their vectors.
    """
    if order == COLUMNS or len(work.tiles) < 2:
        return 1
    groups = -(-vectors // target.cycles)
    room = max(1, _most_vectors(kind, target) // (groups * target.cycles))
    blocks = [tile[0] for tile in work.tiles]
    sums = [one[1] for one in work.sums]
    if len(sums) > 1 and blocks[0] < blocks[1] < blocks[0] + sums[1] - sums[0]:
        return room
    return min(room, 2) if may_overlap(groups, vector_registers(kind, target)) else 1


def _tiles(
    kind: Precision,
    work: _Work,
    batch: tuple[int, int, int, int],
    vectors: Sequence[tuple[int, int]],
    tiles: Sequence[tuple[int, int, int]],
    values: tuple[MNValue, MNValue, MNValue, MNValue | None],
    tails: Tails,
    target: Target,
    together: int,
) -> Iterator[Line]:
    """Yield the code that computes the results of some blocks of rows for all vectors.

    Their sums lie in the register file side by side. ``together`` banks are filled one behind the
    other.
    """
    one, other, out, bias = values
    cycles = target.cycles
    at_a, at_b, at_c, at_bias = batch
    padded = [*vectors, *[vectors[-1]] * (-len(vectors) % cycles)]
    groups = [padded[i : i + cycles] for i in range(0, len(padded), cycles)]
    width = WORDS_PER_LONG * kind.result

    def fill(number: int, place: int, bank: str) -> list[Pair]:
        _, sum_b, word, count = work.sums[number]
        at = at_b + tiles[place][0] + sum_b
        alone = count < kind.block
        return tile_pairs(kind, other, at, work.row, bank, target, word, alone=alone)

    def multiply(number: int, place: int, bank: str, copies: list[Step]) -> Iterator[Pair]:
        tile, (sum_a, _, word, _) = tiles[place], work.sums[number]
        last, first = number == len(work.sums) - 1, number == 0
        for index, group in enumerate(groups, place * len(groups)):
            words = tuple(at_a + a + sum_a for a, _ in group)
            register = PeOperand(
                "grf0",
                tuple((index * cycles + c) * kind.result for c in range(cycles)),
                words=width,
            )
            goal_words = tuple(at_c + c + tile[1] for _, c in group)
            goal: Operand = register
            if last:
                goal = PeOperand(out.location.memory, goal_words, out.name, words=work.width)
                if first and bias is not None:
                    # The bias lies in the memory of the result, and that memory has one port.
                    part = replace(register, words=work.width)
                    copies.append(alu_step("lpassa", (part,), goal))
                    goal = register
            sources: tuple[Operand, ...] = (MatrixOperand(bank), Forward("alu"))
            if not first:
                sources += (register,)
            elif bias is not None:
                words_bias = (at_bias + tile[2],) * cycles
                sources += (PeOperand(bias.location.memory, words_bias, bias.name, words=width),)
            made = product_of(kind, sources, goal, "r" if last and work.rounded else "")
            yield vector_operand(kind, one, words, word), made

    order = [(number, place) for number in range(len(work.sums)) for place in range(len(tiles))]
    banks, registers = cycle(target.banks), vector_registers(kind, target)
    ahead = min(_AHEAD, len(registers) // (2 * len(groups))) if together > 1 else 1
    if len(groups) > tile_steps(kind, other, work.row, target):
        ahead = 1  # the MAU is busier than the ALU, and would wait for the next tiles
    batches: list[list[list[Tile]]] = []
    copies: list[Step] = []

    def written() -> Iterator[Line]:
        yield from tile_lines(batches, kind, registers, target)
        yield from copies
        batches.clear()
        copies.clear()

    turns = list(turns_of(order, work.sums, kind, together))
    before: set[int] = set()
    for several in together_ahead(turns, work.sums, kind, ahead):
        count = work.sums[several[0][0][0]][3]
        if count < kind.block:
            yield from written()
        made = list[list[Tile]]()
        for own in several:
            banked = [(turn, next(banks)) for turn in own]
            made.append(
                [Tile(b, fill(*turn, b), list(multiply(*turn, b, copies))) for turn, b in banked]
            )
        if count < kind.block:
            for turn in made:
                yield from tails.lines(one_behind_the_other(turn), count)
            yield from copies
            copies.clear()
            continue
        numbers = {number for own in several for number, _ in own}
        if batches and len(numbers) == 1 and numbers == before:
            batches[-1] += made  # they meet the same vectors
        else:
            batches.append(made)
        before = numbers
    yield from written()
