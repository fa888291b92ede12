"""Matrix products: MatMul, and Gemm with its bias.

A MAB multiplies its matrix register by one vector a cycle; vector and result lie across the PEs.
So the contracted axis ends in the PE digits of both operands, the rows of the register are the
columns of the result, and they come out over words and PEs. Longer contractions add to what is in
the register file. Everything is converted to block float on the way, by the ALU, while the MAU
works on what the ALU converted a step before.

``single`` keeps single precision in blocks of the PEs of a MAB. ``half`` rounds to half words in
blocks of four times as many, and adds up singles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from ..graph.digits import Part, agrees, all_ranges, parts, primes
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode, MNValue
from ..graph.layout import UNIT_LEVELS, Broadcast, Layout, Level, SubAxis
from ..machine import WORDS_PER_LONG, Target
from ..tolerance import SUM
from .base import Frame, Layer, Placement, layout_of
from .fragment import Fragment, Instruction, Line, Operand, PeOperand, Special, Step
from .switch.masks import UnitMasks
from .switch.sums import sum_l1bs

#: The attribute that names the precision products are made in.
PRECISION = "precision"


@dataclass(frozen=True)
class Precision:
    """What the MAU does for one precision.

    ``words`` are the singles of one PE in one vector, ``letter`` the one of the mnemonics,
    ``convert`` makes block float of them, ``result`` are the long words of a PE's result.
    """

    letter: str
    words: int
    convert: str
    result: int

    @property
    def long(self) -> int:
        """Long words that a vector's singles take in one PE; one word of them if it is 0."""
        return self.words // WORDS_PER_LONG

    def rows(self, target: Target) -> int:
        """Rows of the matrix register: the singles of a result over the PEs."""
        return self.result * WORDS_PER_LONG * target.counts["pe"]


PRECISIONS = {
    "single": Precision("f", 1, "fbfn", 1),
    "half": Precision("h", 4, "hbfn/9", 2),
}


@dataclass(frozen=True)
class Roles:
    """Axes of a product ``C[batch, m, n] = sum_k A[batch, m, k] B[batch, k, n]``.

    For each operand the axes of its roles: ``batch`` axes (None where the operand is repeated),
    then its two others. ``shape`` are the sizes of batch, m, n, k.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    a: tuple[tuple[int | None, ...], int | None, int]
    b: tuple[tuple[int | None, ...], int, int | None]
    c: tuple[tuple[int, ...], int | None, int | None]


class Product(Layer):
    """MatMul or Gemm."""

    dtypes = frozenset({MNDtype.FLOAT})
    error = SUM
    anchored = True

    def __init__(self, op: str, attributes: frozenset[str]):
        self.op = op
        self.attributes = attributes | {PRECISION}

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Why the node cannot run on the device."""
        facts = dict(node.attributes)
        for name in ("alpha", "beta"):
            if facts.get(name, 1.0) != 1.0:
                return f"{self.op} with {name} {facts[name]}"
        if self.op == "Gemm" and len(node.inputs) > 2 and node.inputs[2]:
            shape = graph.values[node.inputs[2]].shape
            if prod(shape[:-1]) != 1 or shape[-1] != graph.values[node.outputs[0]].shape[1]:
                return "Gemm with a C that is no row"
        return super().unsupported(node, graph, dtypes)

    def roles(self, node: MNNode, graph: MNGraph) -> Roles:
        """Return which axis is what."""
        one, other, out = (graph.values[n].shape for n in (*node.inputs[:2], node.outputs[0]))
        facts = dict(node.attributes)
        if self.op == "Gemm":
            am, ak = (1, 0) if facts.get("transA", 0) else (0, 1)
            bk, bn = (1, 0) if facts.get("transB", 0) else (0, 1)
            sizes = one[am], other[bn], one[ak]
            return Roles((), *sizes, ((), am, ak), ((), bk, bn), ((), 0, 1))
        m = None if len(one) == 1 else len(one) - 2
        n = None if len(other) == 1 else len(other) - 1
        bk = 0 if len(other) == 1 else len(other) - 2
        batch = out[: len(out) - (m is not None) - (n is not None)]

        def along(shape: tuple[int, ...]) -> tuple[int | None, ...]:
            own = max(0, len(shape) - 2)
            skipped = len(batch) - own
            return tuple(
                None
                if axis < skipped or (shape[axis - skipped] == 1 and size != 1)
                else axis - skipped
                for axis, size in enumerate(batch)
            )

        places = list(range(len(out)))
        cm = len(batch) if m is not None else None
        cn = len(out) - 1 if n is not None else None
        return Roles(
            batch,
            1 if m is None else one[m],
            1 if n is None else other[n],
            one[-1],
            (along(one), m, len(one) - 1),
            (along(other), bk, n),
            (tuple(places[: len(batch)]), cm, cn),
        )

    def precision(self, node: MNNode) -> Precision:
        """Return the precision the dtype planner chose."""
        return PRECISIONS[str(dict(node.attributes).get(PRECISION, "single"))]

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Tie no axes: the operands have layouts of their own."""
        return Frame((), ())

    def layouts(
        self, node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
    ) -> dict[str, Layout]:
        """Spread batch, n and m over the units; what hints have there stays."""
        roles, kind = self.roles(node, graph), self.precision(node)
        shapes = {name: graph.values[name].shape for name in node.inputs if name}
        spread = _spread(roles, kind, target, _kept(roles, node, hints, shapes))
        found = _operand_layouts(self, node, graph, roles, kind, spread, target)
        if _fits(node, found, target):
            return found
        # Shares that are too large: L1Bs take parts of the contracted axis, and add up.
        other = _spread(roles, kind, target, None, contracted=True)
        if other.k:
            contracted = _operand_layouts(self, node, graph, roles, kind, other, target)
            if _fits(node, contracted, target):
                return contracted
        return found

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Vectors in LM0, matrix and bias in LM1, the result in LM1."""
        names = list(dict.fromkeys(name for name in node.inputs if name))
        banks = [Location.LM0 if name == node.inputs[0] else Location.LM1 for name in names]
        return Placement(tuple(banks), (Location.LM1,))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield layouts the matrix register cannot work on."""
        values = [graph.values[name] for name in (*node.inputs, node.outputs[0]) if name]
        if any(value.location not in (Location.LM0, Location.LM1) for value in values):
            yield "an operand that is not in LM"
        roles, kind = self.roles(node, graph), self.precision(node)
        problem = _problem(self, node, graph, roles, kind, target)
        if problem is not None:
            yield problem

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Count about the steps."""
        work = _work(self, node, graph, target)
        per_tile = kind_steps(self.precision(node), target)
        vectors = -(-len(work.vectors) // target.cycles)
        return len(work.batches) * len(work.tiles) * len(work.sums) * (per_tile + vectors)

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return the code."""
        return Fragment(tuple(_emit(self, node, graph, target)))


def kind_steps(kind: Precision, target: Target) -> int:
    """Count the steps that fill the matrix register."""
    return kind.rows(target) // target.cycles


# -- layouts ---------------------------------------------------------------------------------

_UnitDigit = tuple[Level, int, int]  # level, stride, size


@dataclass
class _Spread:
    """Unit digits of batch axes, n and m, minor first."""

    batch: list[list[_UnitDigit]]
    n: list[_UnitDigit]
    m: list[_UnitDigit]
    #: all L1Bs or none
    k: list[_UnitDigit] = field(default_factory=list)


def _fits(node: MNNode, layouts: Mapping[str, Layout], target: Target) -> bool:
    """Whether the vectors fit LM0, and the rest LM1."""
    words = {name: layout.num_lw(target.cycles) for name, layout in layouts.items()}
    others = sum(size for name, size in words.items() if name != node.inputs[0])
    return words[node.inputs[0]] <= target.words("lm0") and others <= target.words("lm1")


def _kept(
    roles: Roles, node: MNNode, hints: Mapping[str, Layout], shapes: Mapping[str, tuple[int, ...]]
) -> _Spread:
    """Return the unit digits that the batch axes and m of the first operand have already."""
    name = node.inputs[0]
    out = _Spread([[] for _ in roles.batch], [], [])
    if name not in hints:
        return out
    found = parts(hints[name], shapes[name])

    def units(axis: int | None) -> list[_UnitDigit]:
        if axis is None:
            return []
        # Only the uppermost digits may be on units: what is below them is one run in Addr.
        kept: list[_UnitDigit] = []
        for part in found[axis]:
            if part.level in (Level.L2B, Level.L1B, Level.MAB):
                kept += [(part.level, part.stride * s, f) for s, f in primes(_even(part))]
        return kept

    out.batch = [units(axis) for axis in roles.a[0]]
    out.m = [digit for digit in units(roles.a[1]) if digit[0] is not Level.MAB]
    return out


def _even(part: Part) -> int:
    """Return the size of a part, made whole if the axis cuts it short."""
    size = 1
    while size < part.size:
        size *= 2
    return size


def _spread(
    roles: Roles,
    kind: Precision,
    target: Target,
    kept: _Spread | None,
    contracted: bool = False,
) -> _Spread:
    """Give the digits of MABs, L1Bs and L2Bs to batch, n and m; ``contracted`` gives L1Bs to k."""
    free: list[_UnitDigit] = [
        (level, stride, size)
        for level in (Level.MAB, Level.L1B, Level.L2B)
        for stride, size in primes(target.level_range[level.value])
    ]
    out = _Spread([[] for _ in roles.batch], [], [])

    def rest(size: int, digits: list[_UnitDigit]) -> int:
        return -(-size // prod(d[2] for d in digits))

    def take(into: list[_UnitDigit], size: int, wanted: Sequence[_UnitDigit], least: int) -> None:
        for digit in wanted:
            if digit in free and rest(size, into) > least:
                into.append(digit)
                free.remove(digit)

    if contracted:
        packed = max(kind.words, WORDS_PER_LONG) * target.counts["pe"]
        own = [digit for digit in free if digit[0] is Level.L1B]
        if roles.k % (packed * prod(digit[2] for digit in own)) == 0:
            out.k = own
            free = [digit for digit in free if digit not in own]
    for axis, size in enumerate(roles.batch if kept is not None else ()):
        assert kept is not None
        take(out.batch[axis], size, kept.batch[axis], 1)
    if kept is not None:
        take(out.m, roles.m, kept.m, target.cycles)
    blocks = -(-roles.n // kind.rows(target))
    take(out.n, blocks, [digit for digit in free if not out.k or digit[0] is Level.MAB], 1)
    # Whole outer levels are left for batch and m: L2Bs first.
    for axis in reversed(range(len(roles.batch))):
        take(out.batch[axis], roles.batch[axis], list(reversed(free)), 1)
    take(out.m, roles.m, list(reversed(free)), target.cycles)
    return out


def _operand_layouts(
    layer: Product,
    node: MNNode,
    graph: MNGraph,
    roles: Roles,
    kind: Precision,
    spread: _Spread,
    target: Target,
) -> dict[str, Layout]:
    pes = target.counts["pe"]
    group = kind.words * pes  # elements of the contracted axis in one vector
    packed = max(kind.words, WORDS_PER_LONG) * pes
    if kind.words >= WORDS_PER_LONG:
        inner = [(WORDS_PER_LONG, Level.W, 1), (kind.long, Level.ADDR, 0), (pes, Level.PE, 1)]
    else:
        inner = [(WORDS_PER_LONG, Level.W, 1), (pes, Level.PE, 1)]
    del group
    over = prod(digit[2] for digit in spread.k)
    k = [*inner, (-(-roles.k // (packed * over)), Level.ADDR, 0)]
    k += [(size, level, stride) for level, stride, size in spread.k]
    rows = kind.rows(target)

    def units(digits: Sequence[_UnitDigit]) -> list[tuple[int, Level, int]]:
        return [(size, level, stride) for level, stride, size in digits]

    def outer(size: int, digits: Sequence[_UnitDigit], step: int) -> list[tuple[int, Level, int]]:
        spread_over = prod(d[2] for d in digits)
        return [(-(-size // (step * spread_over)), Level.ADDR, 0), *units(digits)]

    result_n = [(WORDS_PER_LONG, Level.W, 1), (kind.result, Level.ADDR, 0), (pes, Level.PE, 1)]
    n_c = [*result_n, *outer(roles.n, spread.n, rows)]
    n_b = [(rows, Level.ADDR, 0), *outer(roles.n, spread.n, rows)]
    m = outer(roles.m, spread.m, 1)
    batch = [outer(size, spread.batch[i], 1) for i, size in enumerate(roles.batch)]

    def made(name: str, subs: dict[int, list[tuple[int, Level, int]]], order: list[int]) -> Layout:
        shape = graph.values[name].shape
        return _layout(len(shape), subs, order, target)

    a, b, c = roles.a, roles.b, roles.c
    subs_a = {axis: batch[i] for i, axis in enumerate(a[0]) if axis is not None} | {a[2]: k}
    subs_b = {axis: batch[i] for i, axis in enumerate(b[0]) if axis is not None} | {b[1]: k}
    subs_c = {axis: batch[i] for i, axis in enumerate(c[0])}
    if a[1] is not None:
        subs_a[a[1]] = m
    if b[2] is not None:
        subs_b[b[2]] = n_b
    if c[1] is not None:
        subs_c[c[1]] = m
    if c[2] is not None:
        subs_c[c[2]] = n_c
    one, other, out = node.inputs[0], node.inputs[1], node.outputs[0]
    found = {
        one: made(one, subs_a, [a[2], *subs_a]),
        out: made(out, subs_c, [*([c[2]] if c[2] is not None else []), *subs_c]),
    }
    if other != one:
        found[other] = made(other, subs_b, [b[1], *subs_b])
    if len(node.inputs) > 2 and node.inputs[2]:
        bias = node.inputs[2]
        axis = len(graph.values[bias].shape) - 1
        found[bias] = made(bias, {axis: n_c}, [axis])
    return found


def _layout(
    rank: int, subs: dict[int, list[tuple[int, Level, int]]], order: list[int], target: Target
) -> Layout:
    """Lay out axes given minor first; Addr strides follow ``order``; the rest is copied."""
    axes: list[tuple[SubAxis, ...]] = [() for _ in range(rank)]
    stride, done = 1, set()
    used: dict[Level, list[tuple[int, int]]] = {}
    for axis in order:
        if axis in done:
            continue
        done.add(axis)
        out: list[SubAxis] = []
        for size, level, step in subs[axis]:
            if size <= 1:
                continue
            if level is Level.ADDR:
                step, stride = stride, stride * size
            else:
                used.setdefault(level, []).extend((step * s, f) for s, f in primes(size))
            last = out[-1] if out else None
            if last and last.level is level and last.stride * last.size == step:
                out[-1] = SubAxis(last.size * size, level, last.stride)
            else:
                out.append(SubAxis(size, level, step))
        axes[axis] = tuple(reversed(out))
    copies: list[Broadcast] = []
    ranges = all_ranges(target.level_range, MNDtype.FLOAT)
    for level in (Level.W, *reversed(UNIT_LEVELS)):
        digits = primes(ranges[level])
        free = [d for d in digits if d not in used.get(level, [])]
        if len(free) == len(digits):
            copies.append(Broadcast(level))
        else:
            copies += [Broadcast(level, size, step) for step, size in free]
    return Layout(tuple(axes), tuple(copies))


# -- code ------------------------------------------------------------------------------------


def _places(
    layout: Layout, axis: int | None, count: int, levels: tuple[Level, ...]
) -> list[dict[Level, int]]:
    """Return the coordinates that indices below ``count`` have on some levels."""
    if axis is None:
        return [{level: 0 for level in levels}]
    index = np.arange(count, dtype=np.int64)
    found = Layout((layout.axes[axis],)).coordinates(index)
    zero = np.zeros_like(index)
    return [{level: int(found.get(level, zero)[i]) for level in levels} for i in range(count)]


def _problem(
    layer: Product, node: MNNode, graph: MNGraph, roles: Roles, kind: Precision, target: Target
) -> str | None:
    """Say which operand has a layout that is not one :meth:`Product.layouts` could give."""
    wanted = _wanted(layer, node, graph, roles, kind, target)
    if wanted is None:
        return "the contracted axis on some L1Bs"
    for name, layout in wanted.items():
        value = graph.values[name]
        own = layout_of(value)
        if not agrees(own, layout, value.shape, value.dtype, target):
            return f"`{name}` in layout {own}, only in {layout}"
    return None


def _wanted(
    layer: Product, node: MNNode, graph: MNGraph, roles: Roles, kind: Precision, target: Target
) -> dict[str, Layout] | None:
    """Return the layouts of all operands that go with the result's; None if there are none.

    The operands' own may differ in digits that no index meets.
    """
    names = [name for name in (*node.inputs, node.outputs[0]) if name]
    given = {name: layout_of(graph.values[name]) for name in names}
    spread = _Spread([[] for _ in roles.batch], [], [])

    def units(name: str, axis: int | None) -> list[_UnitDigit]:
        if axis is None:
            return []
        subs = reversed(given[name].axes[axis])
        return [
            (s.level, s.stride * stride, size)
            for s in subs
            if s.level in (Level.MAB, Level.L1B, Level.L2B)
            for stride, size in primes(s.size)
        ]

    out = node.outputs[0]
    spread.batch = [units(out, axis) for axis in roles.c[0]]
    spread.m, spread.n = units(out, roles.c[1]), units(out, roles.c[2])
    spread.k = units(node.inputs[0], roles.a[2])
    if spread.k and len(spread.k) != len(primes(target.level_range["L1B"])):
        return None
    return _operand_layouts(layer, node, graph, roles, kind, spread, target)


@dataclass(frozen=True)
class _Work:
    """What a PE does: addresses in long words.

    ``batches`` pairs the addresses of a batch index in A, B, C. ``vectors``: of each m in A and C.
    ``tiles``: of each block of rows in B, C and the bias. ``sums``: of each group of the
    contracted axis in A and B, which word, and how many PEs hold elements of it. ``row`` is the
    distance of rows in B, ``width`` how many words a result takes.
    """

    batches: tuple[tuple[int, int, int], ...]
    vectors: tuple[tuple[int, int], ...]
    tiles: tuple[tuple[int, int, int], ...]
    sums: tuple[tuple[int, int, int, int], ...]
    row: int
    width: int


@lru_cache(maxsize=256)
def _axis_addresses(subs: tuple[SubAxis, ...], skip: int) -> tuple[int, ...]:
    """Return the addresses of the Addr digits of an axis from weight ``skip`` on, minor first."""
    out, weight = [0], 1
    for sub in reversed(subs):
        below = max(1, min(sub.size, skip // weight))
        if sub.level is Level.ADDR:
            digits = range(0, sub.size, below)
            out = [at + digit * sub.stride for digit in digits for at in out]
        weight *= sub.size
    return tuple(out)


def _work(layer: Product, node: MNNode, graph: MNGraph, target: Target) -> _Work:
    roles, kind = layer.roles(node, graph), layer.precision(node)
    layouts = _wanted(layer, node, graph, roles, kind, target)
    assert layouts is not None
    a, b, c = (layouts[name] for name in (*node.inputs[:2], node.outputs[0]))
    rows = kind.rows(target)
    over = _l1bs(a.axes[roles.a[2]])

    def along(layout: Layout, axis: int | None, skip: int = 1) -> tuple[int, ...]:
        return (0,) if axis is None else _axis_addresses(layout.axes[axis], skip)

    batch: list[list[tuple[int, int, int]]] = []
    # Where the matrix is the same for all of a batch axis, that axis is more vectors.
    more: list[list[tuple[int, int, int]]] = []
    for index, axis in enumerate(roles.c[0]):
        own = along(c, axis)
        one, other = (
            along(x, side[index]) if side[index] is not None else (0,) * len(own)
            for x, side in ((a, roles.a[0]), (b, roles.b[0]))
        )
        shared = roles.b[0][index] is None
        (more if shared else batch).append(list(zip(one, other, own, strict=True)))
    m_a, m_c = along(a, roles.a[1]), along(c, roles.c[1])
    more.append([(one, 0, own) for one, own in zip(m_a, m_c, strict=True)])
    batches = _sums_of(batch)
    n_b, n_c = along(b, roles.b[2], rows), along(c, roles.c[2], rows)
    bias = (0,) * len(n_c)
    if len(node.inputs) > 2 and node.inputs[2]:
        found = layouts[node.inputs[2]]
        bias = _axis_addresses(found.axes[-1], rows)
    first = _axis_addresses(b.axes[roles.b[2]], 1) if roles.b[2] is not None else (0, 0)
    return _Work(
        tuple(batches),
        tuple((one, own) for one, _, own in _sums_of(more)),
        tuple(zip(n_b, n_c, bias, strict=True)),
        tuple(_sums(a.axes[roles.a[2]], b.axes[roles.b[1]], roles.k // over, kind, target)),
        first[1] - first[0] if len(first) > 1 else 0,
        # Without an axis for the rows all of them are equal, and one long word holds them.
        WORDS_PER_LONG * (1 if roles.c[2] is None else kind.result),
    )


def _l1bs(axis: Sequence[SubAxis]) -> int:
    """Return over how many L1Bs an axis lies."""
    return prod(sub.size for sub in axis if sub.level is Level.L1B)


def _sums_of(axes: Sequence[Sequence[tuple[int, int, int]]]) -> list[tuple[int, int, int]]:
    """Return the addresses of all combinations of indices."""
    return [
        (sum(c[0] for c in chosen), sum(c[1] for c in chosen), sum(c[2] for c in chosen))
        for chosen in product(*axes)
    ]


def _sums(
    a: tuple[SubAxis, ...], b: tuple[SubAxis, ...], size: int, kind: Precision, target: Target
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the groups of the contracted axis: addresses, word, PEs with elements."""
    pes = target.counts["pe"]
    packed = max(kind.words, WORDS_PER_LONG) * pes
    one, other = (_axis_addresses(s, packed) for s in (a, b))
    for block, (in_a, in_b) in enumerate(zip(one, other, strict=True)):
        left = min(packed, size - block * packed)
        if kind.words >= WORDS_PER_LONG:
            yield in_a, in_b, 0, left
            continue
        for word in range(WORDS_PER_LONG):
            # Elements run over words first, then over PEs.
            count = -(-(left - word) // WORDS_PER_LONG)
            if count > 0:
                yield in_a, in_b, word, min(count, pes)


def _emit(layer: Product, node: MNNode, graph: MNGraph, target: Target) -> Iterator[Line]:
    work, kind = _work(layer, node, graph, target), layer.precision(node)
    one, other, out = (graph.values[n] for n in (*node.inputs[:2], node.outputs[0]))
    bias = graph.values[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else None
    apart = _l1bs(layout_of(one).axes[layer.roles(node, graph).a[2]]) > 1
    fused = None if apart else bias
    masks = UnitMasks("subpeid", target)
    most = target.words("grf0") // kind.result // target.cycles * target.cycles
    for batch in work.batches:
        for start in range(0, len(work.vectors), most):
            vectors = work.vectors[start : start + most]
            for tile in work.tiles:
                yield from _tile(
                    kind, work, batch, vectors, tile, (one, other, out, fused), masks, target
                )
    if apart:
        rows = {
            at_c + c + tile[1] + part: tile[2] + part
            for _, _, at_c in work.batches
            for _, c in work.vectors
            for tile in work.tiles
            for part in range(kind.result)
        }
        yield from sum_l1bs(out, bias, rows, target)


def _tile(
    kind: Precision,
    work: _Work,
    batch: tuple[int, int, int],
    vectors: Sequence[tuple[int, int]],
    tile: tuple[int, int, int],
    values: tuple[MNValue, MNValue, MNValue, MNValue | None],
    masks: UnitMasks,
    target: Target,
) -> Iterator[Line]:
    """Make the results of one block of rows for all vectors."""
    one, other, out, bias = values
    cycles = target.cycles
    at_a, at_b, at_c = batch
    padded = [*vectors, *[vectors[-1]] * (-len(vectors) % cycles)]
    groups = [padded[i : i + cycles] for i in range(0, len(padded), cycles)]
    width = WORDS_PER_LONG * kind.result
    for number, (sum_a, sum_b, word, count) in enumerate(work.sums):
        bank = "xy"[number % 2]
        last, first = number == len(work.sums) - 1, number == 0
        lines: list[tuple[tuple[Operand, ...], Instruction]] = []
        words_bias: Operand | None = None
        if bias is not None and first:
            at = (tile[2],) * cycles
            words_bias = PeOperand(bias.location.memory, at, bias.name, words=width)
            if last and bias.location is out.location:  # a bank has one port
                room = kind.long * cycles  # behind the words that _half_tail uses
                for part in range(kind.result):
                    at = (tile[2] + part,) * cycles
                    source = PeOperand(bias.location.memory, at, bias.name)
                    copy = PeOperand("grf1", (room + part,) * cycles)
                    yield Step((Instruction("alu", "lpassa", (source,), (copy,)),))
                words_bias = PeOperand("grf1", (room,) * cycles, words=width)
        for turn in range(kind_steps(kind, target)):
            rows = range(turn * cycles, (turn + 1) * cycles)
            words = tuple(at_b + tile[0] + sum_b + row * work.row for row in rows)
            place = Special(f"l{bank}{turn * cycles}")
            write = Instruction("mwrite", f"{kind.letter}mwrite", (Special("aluf"),), (place,))
            lines.append(((_operand(kind, other, words, word),), write))
        for index, group in enumerate(groups):
            words = tuple(at_a + a + sum_a for a, _ in group)
            register = PeOperand(
                "grf0",
                tuple((index * cycles + c) * kind.result for c in range(cycles)),
                words=width,
            )
            goal_words = tuple(at_c + c + tile[1] for _, c in group)
            result: Operand = register
            if last:
                result = PeOperand(out.location.memory, goal_words, out.name, words=work.width)
            sources: tuple[Operand, ...] = (Special(f"l{bank}"), Special("aluf"))
            if not first:
                sources += (register,)
            elif words_bias is not None:
                sources += (words_bias,)
            name = f"{kind.letter}mfma" if len(sources) > 2 else f"{kind.letter}mmul"
            lines.append(
                ((_operand(kind, one, words, word),), Instruction("mau", name, sources, (result,)))
            )
        yield from _pipelined(lines, kind, count, masks, target)


def _operand(kind: Precision, value: MNValue, words: tuple[int, ...], word: int) -> PeOperand:
    memory = value.location.memory
    if kind.words >= WORDS_PER_LONG:
        return PeOperand(memory, words, value.name, words=kind.words, reduce=True)
    return PeOperand(memory, words, value.name, word=word)


def _pipelined(
    lines: Sequence[tuple[tuple[Operand, ...], Instruction]],
    kind: Precision,
    count: int,
    masks: UnitMasks,
    target: Target,
) -> Iterator[Line]:
    """Convert what the next instruction needs while this one runs."""
    pes = target.counts["pe"]
    full = count == (kind.words * pes if kind.words >= WORDS_PER_LONG else pes)
    nowhere = (Special("nowrite"),)
    if full:
        before: Instruction | None = None
        for source, instruction in lines:
            convert = Instruction("alu", kind.convert, source, nowhere)
            yield Step((convert,) if before is None else (before, convert))
            before = instruction
        if before is not None:
            yield Step((before,))
        return
    # Some elements are padding: what stands there must not reach a block.
    steps: list[Step] = []
    if kind.words >= WORDS_PER_LONG:
        yield from _half_tail(lines, kind, count, masks, target)
        return
    mask = masks.use((1 << count) - 1, steps)
    yield from steps
    for source, instruction in lines:
        yield Step((Instruction("alu", f"ipassa/{mask}", source, nowhere),))
        yield Step((Instruction("alu", kind.convert, (Special("aluf"),), nowhere),))
        yield Step((instruction,))


def _half_tail(
    lines: Sequence[tuple[tuple[Operand, ...], Instruction]],
    kind: Precision,
    count: int,
    masks: UnitMasks,
    target: Target,
) -> Iterator[Line]:
    """Clear the singles behind element ``count``: whole PEs, then words of the one it ends in."""
    nowhere = (Special("nowrite"),)
    whole, within = divmod(count, kind.words)
    for (source,), instruction in ((s, i) for s, i in lines):
        assert isinstance(source, PeOperand)
        total = PeOperand("grf1", tuple(range(0, kind.long * target.cycles, kind.long)), words=4)
        yield Step((Instruction("alu", "zero", (), (total,)),))
        for word in range(kind.words):
            units = whole + (word < within)
            if units == 0:
                continue
            steps: list[Step] = []
            mask = masks.use((1 << units) - 1, steps)
            yield from steps
            here = PeOperand(
                source.memory,
                tuple(at + word // WORDS_PER_LONG for at in source.offsets),
                source.value,
                word=word % WORDS_PER_LONG,
            )
            there = PeOperand(
                "grf1",
                tuple(at + word // WORDS_PER_LONG for at in total.offsets),
                word=word % WORDS_PER_LONG,
                mask=mask,
            )
            yield Step((Instruction("alu", "ipassa", (here,), (there,)),))
        cleared = PeOperand("grf1", total.offsets, words=4, reduce=True)
        yield Step((Instruction("alu", kind.convert, (cleared,), nowhere),))
        yield Step((instruction,))


LAYERS: tuple[Layer, ...] = (
    Product("MatMul", frozenset()),
    Product("Gemm", frozenset({"alpha", "beta", "transA", "transB"})),
)

PRODUCTS = frozenset(layer.op for layer in LAYERS)
