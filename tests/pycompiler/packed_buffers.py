"""Instances of the address problem that fill a memory completely."""

from __future__ import annotations

import random

from pycompiler.scheduler.address_search import Buffer


def packed(seed: int, count: int, capacity: int = 1 << 20, length: int = 1 << 20) -> list[Buffer]:
    """Return ``count`` shuffled buffers that fill ``capacity`` at all times from 0 to ``length``.

    They are the pieces of a rectangle. It is cut in two again and again, larger pieces first.
    """
    print(f"seed {seed}")
    rng = random.Random(seed)
    pieces = [(0, length, 0, capacity)]
    while len(pieces) < count:
        pieces.sort(key=lambda p: (p[1] - p[0]) * (p[3] - p[2]) * rng.uniform(0.2, 1))
        start, end, low, high = pieces.pop()
        if rng.random() < 0.5 and end - start > 1:
            cut = rng.randint(start + 1, end - 1)
            pieces += [(start, cut, low, high), (cut, end, low, high)]
        elif high - low > 1:
            cut = rng.randint(low + 1, high - 1)
            pieces += [(start, end, low, cut), (start, end, cut, high)]
        else:
            pieces.append((start, end, low, high))
    rng.shuffle(pieces)
    return [Buffer(f"b{n}", p[0], p[1], p[3] - p[2]) for n, p in enumerate(pieces)]
