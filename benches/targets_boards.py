"""Batches over Dask workers, against one worker: rows for `make bench`.

Alone: ``python benches/targets_boards.py [WORKERS]``. The first row needs a computer that does
nothing else. The second one counts the CPU time of all processes, so other work changes it little:
if a batch costs what it costs alone, and batches share nothing, their number grows with the cores.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from math import inf
from typing import Any

import numpy as np

import pycompiler
from pycompiler.boards import AppTask, map_batches
from pycompiler.plugins.conformance import network

Row = dict[str, Any]

BATCH, WIDTHS = 64, (784, 512, 256, 10)
EACH, TRIES = 10, 3  # batches of a worker in a try
LINEAR = 0.9


@dataclass(frozen=True)
class Speed:
    """Batches per second, and CPU seconds of a batch in all processes together."""

    batches: float
    seconds: float


def speeds(counts: tuple[int, ...], device: str = "emu2") -> tuple[float, list[Speed]]:
    """Return the CPU seconds of a batch here, and the speeds of clusters with so many workers.

    The clusters are measured in turn.
    """
    from distributed import Client

    os.environ["RAYON_NUM_THREADS"] = "1"  # else one worker takes all cores
    task = AppTask(pycompiler.partition(network(BATCH, WIDTHS), device, threshold=inf).app())
    draw = np.random.default_rng(0)
    x = {"x": draw.standard_normal((BATCH, WIDTHS[0])).astype(np.float32)}
    clients = [
        Client(n_workers=count, threads_per_worker=1, dashboard_address=None, silence_logs=50)
        for count in counts
    ]
    task(x)
    begin = time.process_time()
    for _ in range(EACH):
        task(x)
    alone = (time.process_time() - begin) / EACH

    def spent(client: Any) -> float:
        return time.process_time() + sum(client.run(time.process_time).values())

    found: list[list[Speed]] = [[] for _ in counts]
    try:
        for client, count in zip(clients, counts, strict=True):
            map_batches(client, task, [x] * (4 * count))  # workers load the app
        for _ in range(TRIES):
            for place, (client, count) in enumerate(zip(clients, counts, strict=True)):
                number = EACH * count
                before, begin = spent(client), time.perf_counter()
                map_batches(client, task, [x] * number)
                passed = time.perf_counter() - begin
                found[place].append(Speed(number / passed, (spent(client) - before) / number))
    finally:
        for client in clients:
            client.close()
    return alone, [
        Speed(*(statistics.median(values) for values in zip(*map(astuple, tries), strict=True)))
        for tries in found
    ]


def rows(workers: int | None = None) -> Iterator[Row]:
    """Yield the row of as many workers as there are cores; none without Dask or with one core."""
    count = workers or len(os.sched_getaffinity(0))
    try:
        import distributed  # noqa: F401
    except ImportError:
        return
    if count < 2:
        return
    alone, (one, many) = speeds((1, count))
    yield {
        "name": f"batches over {count} Dask workers; bound: {count} times those of one worker",
        "value": many.batches,
        "unit": "batches/s",
        "bound": count * one.batches,
        "ratio": many.batches / (count * one.batches),
        "target": f"at least {LINEAR}",
        "met": many.batches >= LINEAR * count * one.batches,
    }
    yield {
        "name": f"CPU time of a batch over {count} Dask workers; bound: without Dask",
        "value": many.seconds,
        "unit": "s",
        "bound": alone,
        "ratio": many.seconds / alone,
        "target": f"at most {1 / LINEAR:.2f}",
        "met": LINEAR * many.seconds <= alone,
    }


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else None):
        print(row)
