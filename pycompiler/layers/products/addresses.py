"""The addresses that a PE works on in a resident product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode
from ...graph.layout import Layout, Level, SubAxis
from ...machine import WORDS_PER_LONG, Target
from .layouts import l1bs_of, l2bs_of, wanted_layouts
from .roles import Precision, Roles, bias_of, precision_of, roles_of

#: Addresses of a batch index in A, B, C and the bias.
Batch = tuple[int, int, int, int]


@dataclass(frozen=True)
class Work:
    """The addresses that a PE works on, in long words.

    ``batches`` has the addresses of each batch index in A, B, C and the bias; ``vectors`` those of
    each m in A and C; ``tiles`` those of each block of rows in B, C and the bias. ``sums`` has for
    each group of the contracted axis, for each tap, its addresses in A and B, its word, and the
    number of its elements that exist. ``row`` is the distance of rows in B. ``width`` is the number
    of words of a result, which is rounded to halves if ``rounded``. ``taps`` counts taps.
    """

    batches: tuple[Batch, ...]
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


def work_of(node: MNNode, graph: MNGraph, target: Target) -> Work:
    """Return the addresses that a PE works on."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    layouts = wanted_layouts(node, graph, target)
    assert layouts is not None
    a, b, c = (layouts[name] for name in (*node.inputs[:2], node.outputs[0]))
    rows = kind.rows
    terms = a.axes[roles.a[2]]
    over = l1bs_of(terms) * l2bs_of(terms)

    added = bias_of(node)
    bias_layout = layouts[added] if added is not None else None
    batch, more, taps = _batch_addresses(roles, a, b, c, bias_layout)
    m_a, m_c = _along(a, roles.a[1]), _along(c, roles.c[1])
    more.append([(one, 0, own, 0) for one, own in zip(m_a, m_c, strict=True)])
    n_b, n_c = _along(b, roles.b[2], rows), _along(c, roles.c[2], rows)
    bias = axis_addresses(bias_layout.axes[-1], rows) if bias_layout else (0,) * len(n_c)
    blocks = list(_sums(a.axes[roles.a[2]], b.axes[roles.b[1]], roles.k // over, kind, target))
    first = axis_addresses(b.axes[roles.b[2]], 1) if roles.b[2] is not None else (0, 0)
    return Work(
        tuple(_sums_of(batch)),
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


def _along(layout: Layout, axis: int | None, skip: int = 1) -> tuple[int, ...]:
    return (0,) if axis is None else axis_addresses(layout.axes[axis], skip)


def _batch_addresses(
    roles: Roles, a: Layout, b: Layout, c: Layout, bias: Layout | None
) -> tuple[list[list[Batch]], list[list[Batch]], list[list[tuple[int, int]]]]:
    """Return the addresses along the batch axes; those of the taps in A and B come last.

    If the matrix is the same along a batch axis, that axis only adds vectors: these come second.
    """
    batch, more, taps = list[list[Batch]](), list[list[Batch]](), list[list[tuple[int, int]]]()
    for index, axis in enumerate(roles.c[0]):
        own = _along(c, axis)
        one, other = (
            _along(x, side[index]) if side[index] is not None else (0,) * len(own)
            for x, side in ((a, roles.a[0]), (b, roles.b[0]))
        )
        window = roles.windows.get(index)
        if window is not None and not window.trivial:
            one = tuple(one[place * window.stride] for place in range(len(own)))
            along_a, along_b = _along(a, roles.a[0][index]), _along(b, window.axis)
            taps.append([(along_a[t * window.dilation], along_b[t]) for t in range(window.taps)])
        shared = roles.b[0][index] is None
        row = _along(bias, 0) if bias is not None and not shared else (0,) * len(own)
        (more if shared else batch).append(list(zip(one, other, own, row, strict=True)))
    return batch, more, taps


def _sums_of(
    axes: Sequence[Sequence[Batch]],
) -> list[Batch]:
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
