"""Layouts of a product's operands: unit digits for batch, rows and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from ...graph.digits import PrimeDigit, agrees, all_ranges, machine_digits, merged, primes
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode, MNValue
from ...graph.layout import UNIT_LEVELS, Broadcast, Layout, Layouts, Level, SubAxis
from ...machine import Target
from ...pfvm.windows import GROUPED
from ..base import layout_of
from .roles import Precision, Roles, Window, bias_of, precision_of, roles_of, whole_units
from .spreads import Spread, is_of_groups, placed


def fits(node: MNNode, layouts: Layouts, target: Target) -> bool:
    """Whether the vectors fit LM0 and the other operands fit LM1."""
    words = {name: layout.num_lw(target.cycles) for name, layout in layouts.items()}
    others = sum(size for name, size in words.items() if name != node.inputs[0])
    return words[node.inputs[0]] <= target.words("lm0") and others <= target.words("lm1")


def inner_digits(kind: Precision, dtype: MNDtype, target: Target) -> list[SubAxis]:
    """Return the digits of the contracted axis that lie across the words and PEs of a vector."""
    packed = SubAxis(dtype.words_per_long, Level.W)
    across = SubAxis(target.counts["pe"], Level.PE)
    long = kind.vector_words(dtype)
    return [packed, SubAxis(long, Level.ADDR, 0), across] if long > 1 else [packed, across]


def result_digits(kind: Precision, dtype: MNDtype, target: Target) -> list[SubAxis]:
    """Return the digits of the columns that lie across the words and PEs of a result."""
    packed, across = SubAxis(dtype.words_per_long, Level.W), SubAxis(target.counts["pe"], Level.PE)
    long = kind.result_words(dtype)
    return [packed, SubAxis(long, Level.ADDR, 0), across]


def operand_layouts(
    node: MNNode, graph: MNGraph, spread: Spread, target: Target, roles: Roles | None = None
) -> Layouts:
    """Return the layouts of the operands for a spread.

    ``roles`` may have larger sizes than the operands, as they are in a longer slice.
    """
    one, other, out, bias = node.inputs[0], node.inputs[1], node.outputs[0], bias_of(node)
    names = [one, out, *([other] if other != one else []), *([bias] if bias is not None else [])]
    kinds = tuple((len(graph.values[name].shape), graph.values[name].dtype) for name in names)
    facts = precision_of(node, target), node.op == GROUPED, other == one
    found = _layouts_of(roles or roles_of(node, graph), kinds, *facts, spread, target)
    return dict(zip(names, found, strict=True))


@lru_cache(maxsize=1 << 14)  # many hints of a product lead to the same spreads
def _layouts_of(
    roles: Roles,
    kinds: tuple[tuple[int, MNDtype], ...],
    kind: Precision,
    grouped: bool,
    square: bool,
    spread: Spread,
    target: Target,
) -> tuple[Layout, ...]:
    """Return the layouts of vectors, result, matrix and bias, whose ranks and dtypes are ``kinds``.

    There is no matrix of its own if the product is ``square``, of a value with itself.
    """
    over = prod(digit.size for digit in spread.k)

    def contracted(dtype: MNDtype) -> list[SubAxis]:
        blocks = -(-roles.k // (kind.packed * over))
        return [*inner_digits(kind, dtype, target), SubAxis(blocks, Level.ADDR, 0), *spread.k]

    # Pixels stay beside their neighbours.
    n = _with_addr(roles.n, spread.n, kind.rows, not roles.windows)

    def columns(dtype: MNDtype) -> list[SubAxis]:
        return [*result_digits(kind, dtype, target), *n]

    # Rows that no column has take no room. Two rows of halves are read at once.
    some = min(kind.rows, -(-roles.n // 2) * 2)
    m = _with_addr(roles.m, spread.m, 1, not roles.windows)
    sizes = zip(roles.batch, spread.batch, strict=True)
    batch = [_with_addr(size, digits, 1, not roles.windows) for size, digits in sizes]
    read = [_read(roles.windows.get(i), own) for i, own in enumerate(batch)]
    a, b, c = roles.a, roles.b, roles.c
    (_, dtype), (_, dtype_out), *rest = kinds
    subs_a = {axis: read[i] for i, axis in enumerate(a[0]) if axis is not None}
    subs_a[a[2]] = contracted(dtype)
    subs_c = dict(zip(c[0], batch, strict=True))
    if a[1] is not None:
        subs_a[a[1]] = m
    if c[1] is not None:
        subs_c[c[1]] = m
    if c[2] is not None:
        subs_c[c[2]] = columns(dtype_out)
    # Later axes have smaller strides, as in the regions around a product.
    made = [
        (subs_a, [a[2], *reversed(subs_a)]),
        (subs_c, [*([c[2]] if c[2] is not None else []), *reversed(subs_c)]),
    ]
    if not square:
        (_, dtype_b), *rest = rest
        subs_b = {axis: batch[i] for i, axis in enumerate(b[0]) if axis is not None}
        subs_b[b[1]] = contracted(dtype_b)
        for window in roles.windows.values():
            subs_b[window.axis] = [SubAxis(window.taps, Level.ADDR, 0)]
        if b[2] is not None:
            subs_b[b[2]] = [SubAxis(some, Level.ADDR, 0), *n]
        # Rows of halves lie side by side: the register takes two of them at once.
        first = b[1] if b[2] is None or dtype_b is not MNDtype.HALF else b[2]
        made.append((subs_b, [first, *subs_b]))
    for rank, dtype in rest:
        subs = {rank - 1: columns(dtype)}
        if grouped:
            subs[0] = batch[-1]
        made.append((subs, list(subs)))
    return tuple(
        lay_out(rank, subs, order, dtype, target)
        for (rank, dtype), (subs, order) in zip(kinds, made, strict=True)
    )


def _read(window: Window | None, own: list[SubAxis]) -> list[SubAxis]:
    """Return the digits of an axis of the first operand: a window lies in Addr."""
    if window is None or window.trivial:
        return own
    return [SubAxis(window.reach, Level.ADDR, 0)]


def _with_addr(
    size: int, digits: Sequence[SubAxis], step: int, may_be_above: bool
) -> list[SubAxis]:
    """Return the digits of an axis with those of Addr, of which ``step`` elements lie below.

    Powers of two below the units can be cut anywhere. Another number would not let the units of two
    operators agree, so it lies above them if it may.
    """
    left = SubAxis(-(-size // (step * prod(digit.size for digit in digits))), Level.ADDR, 0)
    between = any(digit.level is Level.ADDR for digit in digits)
    odd = left.size & (left.size - 1) and may_be_above
    return [*digits, left] if between or odd else [left, *digits]


def lay_out(
    rank: int,
    subs: Mapping[int, Sequence[SubAxis]],
    order: Sequence[int],
    dtype: MNDtype,
    target: Target,
) -> Layout:
    """Return the layout of axes whose digits are given minor first; free digits hold copies.

    Addr digits of stride 0 receive their strides here, axis by axis in ``order``, each digit
    outside the digits before it.
    """
    axes: list[tuple[SubAxis, ...]] = [() for _ in range(rank)]
    stride = 1
    used: dict[Level, list[PrimeDigit]] = {}
    for axis in dict.fromkeys(order):
        out: list[SubAxis] = []
        for sub in subs[axis]:
            if sub.size <= 1:
                continue
            if sub.level is not Level.ADDR:
                own = (PrimeDigit(sub.stride * d.stride, d.size) for d in primes(sub.size))
                used.setdefault(sub.level, []).extend(own)
            elif not sub.stride:
                sub, stride = sub._replace(stride=stride), stride * sub.size
            out.append(sub)
        axes[axis] = tuple(reversed(merged(out)))
    copies: list[Broadcast] = []
    counts = all_ranges(target.level_range, dtype)
    for level in (Level.W, *reversed(UNIT_LEVELS)):
        digits = primes(counts[level])
        free = [d for d in digits if d not in used.get(level, [])]
        if len(free) == len(digits):
            copies.append(Broadcast(level))
        else:
            copies += [Broadcast(level, d.size, d.stride) for d in free]
    return Layout(tuple(axes), tuple(copies))


def wanted_layouts(node: MNNode, graph: MNGraph, target: Target) -> Layouts | None:
    """Return the layouts of all operands that match the result's layout; None if there are none.

    The actual layouts of the operands may differ in digits that no index reaches. A last slice that
    is shorter than the others has their layouts: then the layouts are those of its padded sizes.
    """
    roles = roles_of(node, graph)

    def units(name: str, axis: int | None) -> tuple[SubAxis, ...]:
        return tuple(unit_digits(layout_of(graph.values[name]), axis))

    def rows(axis: int | None) -> tuple[SubAxis, ...]:
        digits = unit_digits(layout_of(graph.values[out]), axis, Level.ADDR)
        return units(out, axis) if roles.windows else tuple(placed(digits))

    def columns(axis: int | None) -> tuple[SubAxis, ...]:
        # Below are those that lie across the words and PEs of a result.
        digits = unit_digits(layout_of(graph.values[out]), axis, Level.ADDR)
        first = next((at for at, one in enumerate(digits) if one.level is not Level.ADDR), 0)
        return tuple(placed(digits[first:]))

    out = node.outputs[0]
    batch, terms = tuple(rows(axis) for axis in roles.c[0]), units(node.inputs[0], roles.a[2])
    spread = Spread(batch, columns(roles.c[2]), rows(roles.c[1]), terms)
    if spread.k:
        # All units share the terms, and each has whole blocks: nothing clears a block of padding.
        unit = terms_unit(spread, precision_of(node, target))
        if not _are_shared(spread.k, target) or not whole_units(node, roles.k, unit):
            return None
    found = operand_layouts(node, graph, spread, target)
    if roles.windows or all(_is_laid_out(graph.values[n], one, target) for n, one in found.items()):
        return found
    longer = _longer(roles, node, graph)
    # Units share whole blocks only.
    return found if spread.k else operand_layouts(node, graph, spread, target, longer)


def _are_shared(digits: Sequence[SubAxis], target: Target) -> bool:
    """Whether digits of terms are those of all L1Bs, of all groups, or of both."""
    every = [one for one in machine_digits(target, 1) if one.level is Level.L1B]
    groups = [one for one in machine_digits(target, 1) if is_of_groups(one, target)]
    return list(digits) in (every, groups, every + groups)


def terms_unit(spread: Spread, kind: Precision) -> int:
    """Return the number of terms that fill a block on each unit that shares them."""
    return kind.packed * prod(digit.size for digit in spread.k)


def _is_laid_out(value: MNValue, layout: Layout, target: Target) -> bool:
    return agrees(layout_of(value), layout, value.shape, value.dtype, target)


def _longer(roles: Roles, node: MNNode, graph: MNGraph) -> Roles:
    """Return the roles with the sizes that the layouts of the operands have room for."""
    one, out = (layout_of(graph.values[n]).padded_shape for n in (node.inputs[0], node.outputs[0]))
    _, m, n = roles.c
    return replace(
        roles,
        batch=tuple(out[axis] for axis in roles.c[0]),
        m=roles.m if m is None else out[m],
        n=roles.n if n is None else out[n],
        k=one[roles.a[2]],
    )


def l1bs_of(digits: Sequence[SubAxis]) -> int:
    """Return the number of L1Bs that digits are spread over."""
    return prod(digit.size for digit in digits if digit.level is Level.L1B)


def l2bs_of(digits: Sequence[SubAxis]) -> int:
    """Return the number of L2Bs that digits are spread over."""
    return prod(digit.size for digit in digits if digit.level is Level.L2B)


def unit_digits(layout: Layout, axis: int | None, *others: Level) -> list[SubAxis]:
    """Return the digits that an axis has on MABs, L1Bs and L2Bs, minor first.

    Digits on the levels ``others`` come too, without their strides.
    """
    if axis is None:
        return []
    units = (Level.MAB, Level.L1B, Level.L2B)
    return [
        SubAxis(digit.size, sub.level, sub.stride * digit.stride if sub.level in units else 0)
        for sub in reversed(layout.axes[axis])
        if sub.level in (*units, *others)
        for digit in primes(sub.size)
    ]
