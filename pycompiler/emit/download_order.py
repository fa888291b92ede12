"""The order of the downloads in front of a node that begins before all its words are there.

Such a node works along an axis on which all its operands lie in order. So its downloads come chunk
by chunk, in the order in which the node reads their words. One download after the other would bring
the first words of the last operand when all others are complete. Chunks of one download keep their
order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from emu2._core import Ready

from ..graph.graph import Location
from ..machine import IntArray, Target
from .addressed_lines import Lines
from .words import Words

_LM = (Location.LM0.memory, Location.LM1.memory)
#: What lines of several downloads may touch: nothing else of them lives from line to line.
_OWN = frozenset({*_LM, "dram", "l2bm", "l1bm"})
_NEVER = np.iinfo(np.int64).max


def downloads_before(node: int, downloads: Sequence[bool], nodes: Sequence[Lines]) -> range:
    """Return the downloads right in front of a node whose chunks may change places.

    The words that they write differ, and at most one of them uses mask registers.
    """
    first, written, masked = node, list[Words](), False
    while first and downloads[first - 1]:
        lines = nodes[first - 1].lines
        masks, own = _masks(lines), _filled(lines)
        if (masks and masked) or any(a.meets(b) for a in own for b in written):
            break
        written += own
        masked |= masks
        first -= 1
    return range(first, node)


def by_first_read(
    chunks: Sequence[Sequence[Sequence[Ready]]], reader: Lines, target: Target
) -> list[tuple[int, int]]:
    """Return download and number of each chunk, in the order in which ``reader`` reads their words.

    ``chunks`` has the lines of each chunk of each download. Chunks that are not read are last.
    """
    reads = _first_reads(reader, target)
    order: list[tuple[int, int, int]] = []
    for download, own in enumerate(chunks):
        latest = -1
        for number, lines in enumerate(own):
            firsts = (reads[one.memory][one.low : one.high].min() for one in _filled(lines))
            latest = max(latest, min(map(int, firsts), default=latest))
            order.append((latest, download, number))
    return [(download, number) for _, download, number in sorted(order)]


def _first_reads(node: Lines, target: Target) -> dict[str, IntArray]:
    """Return the first line of a node that reads each word of LM, by memory."""
    found = {memory: np.full(target.words(memory), _NEVER) for memory in _LM}
    for number in range(len(node.lines) - 1, -1, -1):
        for access in node.lines[number].reads:
            if access.memory in found:
                words = slice(access.low, access.high) if access.anywhere else list(access.cycles)
                found[access.memory][words] = number
    return found


def _filled(lines: Sequence[Ready]) -> list[Words]:
    """Return what lines write to LM, joined to one access of each memory."""
    out = []
    for memory in _LM:
        own = [one for ready in lines for one in ready.writes if one.memory == memory]
        if own:
            low, high = min(one.low for one in own), max(one.high for one in own)
            out.append(Words(memory, low, high))
    return out


def _masks(lines: Sequence[Ready]) -> bool:
    """Whether lines use registers, as those do that make masks."""
    return any(one.memory not in _OWN for each in lines for one in (*each.reads, *each.writes))
