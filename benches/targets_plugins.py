"""Kernel mode against graph mode, and the time of an allocation: rows for `make bench`.

Alone: ``python benches/targets_plugins.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from targets_layers import Row

from pycompiler.plugins import MixedGraph, Session, open_device
from pycompiler.plugins.conformance import network

MOST_CYCLES = 3.0
MOST_MICROSECONDS = 1.0
_BUFFERS, _ROUNDS, _TRIES = 100, 100, 15
NETWORKS = ((64, (256, 512, 10)), (256, (784, 512, 256, 10)), (7, (30, 50, 10)))


def cycles(batch: int, widths: tuple[int, ...], machine: str) -> tuple[int, int]:
    """Return the cycles of a network in kernel mode and in graph mode."""
    device = f"emu2:{machine}"
    model = network(batch, widths)
    graphs = open_device("emu2-graph", device=device)
    assert graphs.graphs is not None
    whole = graphs.graphs.compile(model, {})
    host = Session(open_device("host"))
    split = MixedGraph(model, Session(open_device("emu2-kernel", device=device)), host)
    assert not split.reasons
    assert not split.moves
    return split.cycles, whole.cycles or 0


def microseconds(used: bool) -> float:
    """Return the time of one allocation of a size that was freed before, without the free.

    ``used`` buffers were written on the stream that allocates again.
    """
    session = Session(open_device("host"))
    pool, stream = session.pool, session.stream
    best = float("inf")
    for _ in range(_TRIES):
        spent = 0.0
        for _ in range(_ROUNDS):
            start = time.perf_counter()
            buffers = [pool.allocate(256, stream) for _ in range(_BUFFERS)]
            spent += time.perf_counter() - start
            for buffer in buffers:
                if used:
                    buffer.writes(stream)
                pool.free(buffer)
        best = min(best, spent / (_BUFFERS * _ROUNDS))
    return best * 1e6


def rows(
    machine: str = "mncore2", networks: Sequence[tuple[int, tuple[int, ...]]] = NETWORKS
) -> Iterator[Row]:
    """Yield the rows of plug-ins."""
    for batch, widths in networks:
        value, bound = cycles(batch, widths, machine)
        yield {
            "name": f"MLP {'-'.join(map(str, widths))}, batch {batch}: kernel mode over graph mode",
            "value": value,
            "unit": "cycles",
            "bound": bound,
            "ratio": value / bound,
            "target": f"at most {MOST_CYCLES}",
            "met": value <= MOST_CYCLES * bound,
        }
    for used in (False, True):
        value = microseconds(used)
        yield {
            "name": f"allocation from a pool in Python, {'written' if used else 'unused'} buffers",
            "value": value,
            "unit": "us",
            "bound": MOST_MICROSECONDS,
            "ratio": value / MOST_MICROSECONDS,
            "target": "at most 1.0",
            "met": value <= MOST_MICROSECONDS,
        }


if __name__ == "__main__":
    for row in rows():
        print(row)
