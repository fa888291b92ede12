"""The schedule for vectors that come through L1BM.

Every MAB keeps its columns of the matrix in LM1, for the whole contracted axis. The vectors lie in
LM0, each in one MAB only: the units of a share have different rows. L1BM collects the vectors
(:mod:`.route`) and brings them to all MABs while the MAU works. So one line holds the `l1bmm` of
one vector, the block float conversion of the vector before it, and the product of the vector before
that. A tile of the matrix is multiplied by as many rows as the register files can sum. Then the
next tile is written to the other bank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

from ...graph.digits import machine_digits
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode, MNValue
from ...graph.layout import Layouts, Level, SubAxis
from ...graph.plan import Laid, Streamed
from ...machine import REGISTER_FILES, WORDS_PER_LONG, Target
from ...pfvm.windows import DEPTHWISE
from ..dram_transfer_plan import RING_SHARE
from .layouts import inner_digits, l1bs_of, lay_out, result_digits
from .roles import PRECISION, Precision, bias_of, precision_of, roles_of, whole_units
from .route import Route, route, shares


@dataclass(frozen=True)
class Shape:
    """Counts of a streamed product in one share, and distances of its operands in LM.

    ``own``: units that send; ``each``: rows of the spread axis in one unit; ``rows``: all rows in
    one unit; ``tiles`` and ``sums``: blocks of columns and of the contracted axis in one MAB;
    ``limit``: rows of the spread axis that exist in a share. ``vector`` and ``row``: long words of
    a vector in A and of a row of a tile in B.
    """

    own: int
    each: int
    rows: int
    tiles: int
    sums: int
    limit: int
    vector: int
    row: int


def suits(node: MNNode, graph: MNGraph, target: Target) -> bool:
    """Whether the schedule can compute this product at all."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    whole = None not in (roles.a[1], roles.b[2], roles.c[1], roles.c[2])
    return (
        whole
        and not roles.windows
        and kind.words > WORDS_PER_LONG
        and graph.values[node.outputs[0]].dtype is not MNDtype.HALF
        and node.inputs[0] != node.inputs[1]
        and all(axis is None for axis in roles.b[0])
        and all(axis is not None for axis in roles.a[0])
        and whole_units(node, roles.k, kind.block)
    )


def plan_of(node: MNNode) -> Streamed:
    """Return the plan of a node that has this schedule."""
    assert isinstance(node.plan, Streamed)
    return node.plan


def ways(node: MNNode, graph: MNGraph, target: Target) -> Iterator[Laid]:
    """Yield layouts for all spreads of rows and columns: the matrix in LM1, the rest in LM0."""
    if not suits(node, graph, target):
        return
    for plan in _plans(node, graph, target):
        if possible(node, plan, target):
            found = layouts(node, graph, plan, target)
            words = {name: one.num_lw(target.cycles) for name, one in found.items()}
            matrix = words.pop(node.inputs[1])
            if matrix <= target.words("lm1") and sum(words.values()) <= target.words("lm0"):
                yield Laid(found, {node.name: plan})


def wanted(node: MNNode, graph: MNGraph, target: Target) -> Layouts | str:
    """Return the layouts of the node's plan, or why it cannot have it."""
    if not suits(node, graph, target):
        # The last slice of a contracted axis may be too short for the others' layouts.
        return "terms that do not fill the blocks of a streamed product"
    if not possible(node, plan_of(node), target):
        return "vectors of a streamed product that have no room in L1BM or L2BM"
    return layouts(node, graph, plan_of(node), target)


def _plans(node: MNNode, graph: MNGraph, target: Target) -> Iterator[Streamed]:
    """Yield ways to spread rows and columns: the columns take MABs first, then L1Bs, then L2Bs.

    The columns take L2Bs from the innermost on; those of the only product also from the outermost
    on. Then rows are on the L2Bs of a group and columns on groups, so that MVs across the groups
    bring the vectors and no operand lies in DRAM twice. Between two products such columns would
    cross groups in switches, which nothing hides, to save transfers that other nodes hide.
    """
    roles = roles_of(node, graph)
    sizes: dict[int | None, int] = {None: roles.m, **dict(enumerate(roles.batch))}
    along = max(sizes, key=lambda axis: sizes[axis])
    mabs, l1bs, l2bs = (
        [one for one in machine_digits(target, 1) if one.level is level]
        for level in (Level.MAB, Level.L1B, Level.L2B)
    )
    products = (n for n in graph.nodes if PRECISION in dict(n.attributes) and n.op != DEPTHWISE)
    only = len(list(islice(products, 2))) == 1
    for share in shares(target):
        low = [digit for digit in l1bs if digit.stride < share]
        high = [digit for digit in l1bs if digit.stride >= share]
        cuts = [(l2bs[:count], l2bs[count:]) for count in range(len(l2bs) + 1)]
        if only:
            cuts += [(outer, inner) for inner, outer in cuts[1:-1]]
        for columns, rows in cuts:
            yield Streamed(along, (*mabs, *low, *columns), (*high, *rows))


def _row_axes(node: MNNode, graph: MNGraph) -> list[tuple[int | None, int, int]]:
    """Return each row axis as its batch axis (None for m), its axis of A and its axis of C."""
    roles = roles_of(node, graph)
    if roles.a[1] is None or roles.c[1] is None:
        return []
    pairs = zip(roles.a[0], roles.c[0], strict=True)
    batch = [(i, a, c) for i, (a, c) in enumerate(pairs) if a is not None]
    return [*batch, (None, roles.a[1], roles.c[1])]


def shape_of(node: MNNode, graph: MNGraph, plan: Streamed, target: Target) -> Shape:
    """Return the counts of a product with this plan."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    own = target.counts["mab"] * l1bs_of(plan.columns)
    size = roles.m if plan.along is None else roles.batch[plan.along]
    each = -(-size // (own * prod(digit.size for digit in plan.rows)))
    others = [roles.batch[i] for i in range(len(roles.batch)) if i != plan.along]
    if plan.along is not None:
        others.append(roles.m)
    columns = kind.rows * prod(digit.size for digit in plan.columns)
    one, other = (graph.values[name].dtype.words_per_long for name in node.inputs[:2])
    return Shape(
        own,
        each,
        each * prod(others),
        -(-roles.n // columns),
        roles.k // kind.block,
        min(own * each, size),
        kind.words // one,
        kind.words // other,
    )


def layouts(node: MNNode, graph: MNGraph, plan: Streamed, target: Target) -> Layouts:
    """Return the layouts of the operands of a product with this plan."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    shape = shape_of(node, graph, plan, target)
    values = [graph.values[name] for name in (*node.inputs[:2], node.outputs[0])]
    one, other = values[:2]
    tile = kind.rows * shape.row

    def contracted(value: MNValue, stride: int) -> list[SubAxis]:
        return [*inner_digits(kind, value.dtype, target), SubAxis(shape.sums, Level.ADDR, stride)]

    def columns(first: Sequence[SubAxis], stride: int) -> list[SubAxis]:
        low = [digit for digit in plan.columns if digit.level is not Level.L2B]
        high = [digit for digit in plan.columns if digit.level is Level.L2B]
        blocks = SubAxis(shape.tiles, Level.ADDR, stride)
        return [*first, *low, blocks, *high]

    # Addresses, minor first. A: vector, rows, contracted axis. C: result, rows, column blocks.
    a: dict[int, list[SubAxis]] = {roles.a[2]: contracted(one, shape.vector * shape.rows)}
    result = result_digits(kind, values[2].dtype, target)
    rows = shape.own * shape.rows
    assert roles.b[2] is not None
    assert roles.c[2] is not None
    c: dict[int, list[SubAxis]] = {roles.c[2]: columns(result, kind.result * rows)}
    own = [digit for digit in plan.columns if digit.level is not Level.L2B]
    beyond = shape.each
    for axis, in_a, in_c in _row_axes(node, graph):
        if axis == plan.along:
            a[in_a] = [*own, SubAxis(shape.each, Level.ADDR, shape.vector)]
            c[in_c] = [SubAxis(shape.own * shape.each, Level.ADDR, kind.result)]
            for subs in (a[in_a], c[in_c]):
                subs += plan.rows
            continue
        size = roles.m if axis is None else roles.batch[axis]
        a[in_a] = [SubAxis(size, Level.ADDR, shape.vector * beyond)]
        c[in_c] = [SubAxis(size, Level.ADDR, kind.result * shape.own * beyond)]
        beyond *= size
    b = {
        roles.b[1]: contracted(other, tile),
        roles.b[2]: columns([SubAxis(kind.rows, Level.ADDR, shape.row)], tile * shape.sums),
    }
    for axis, size in enumerate(other.shape):
        if size == 1:
            b.setdefault(axis, [])
    found = {
        value.name: lay_out(len(value.shape), subs, list(subs), value.dtype, target)
        for value, subs in zip(values, (a, b, c), strict=True)
    }
    bias = bias_of(node)
    if bias is not None:
        added = graph.values[bias]
        last = len(added.shape) - 1
        row = {last: columns(result, kind.result)}
        found[bias] = lay_out(len(added.shape), row, [last], added.dtype, target)
    return found


def rows_at_once(found: Route, kind: Precision, target: Target) -> int:
    """Return how many rows of each unit the register files can sum at once; or 0.

    The vectors that the units of a share send in one cycle are a row.
    """
    steps = len(found.steps_of_vectors(target.cycles))
    size = kind.result * target.cycles
    sums = sum(target.words(file) // size for file in REGISTER_FILES)
    return sums * target.cycles // steps if steps else 0


def possible(node: MNNode, plan: Streamed, target: Target) -> bool:
    """Whether register files, L1BM and L2BM have room for a product, and steps fit its vectors."""
    found = route(l1bs_of(plan.columns), target)
    collections, _ = landings(found, target)
    # The next vectors land while the MAU works on those that have landed.
    room = collections > 1 and 2 * burst(found, target) * found.above <= target.words("l2bm")
    return room and rows_at_once(found, precision_of(node, target), target) > 0


def landings(found: Route, target: Target) -> tuple[int, int]:
    """Return how many collections fit L1BM beside those on their way, and where they start.

    Downloads that come beside the product have the end of L1BM.
    """
    words, size = target.words("l1bm"), burst(found, target)
    words -= words // RING_SHARE
    if not found.above:
        return words // (found.sent * size), 0
    first = -(-2 * found.sent * size // found.down[2]) * found.down[2]
    return max(0, words - first) // (found.landed * size), first


def burst(found: Route, target: Target) -> int:
    """Return how many sending steps are collected together: at most a quarter of L1BM."""
    return max(1, min(target.cycles, target.words("l1bm") // (4 * found.landed)))
