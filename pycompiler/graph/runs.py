"""Runs of elements that a recut moves from its inputs to its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

#: The attribute of a recut: four numbers for each run of elements, which are the number of the
#: input, the first element of it, the first element of the result, and the number of elements.
#: Elements are counted through all rows.
RUNS = "runs"
#: The most runs of one recut.
MOST_RUNS = 1 << 13
Run = tuple[int, int, int, int]


def followed(runs: Iterable[Run]) -> Iterator[Run]:
    """Yield runs in the order of the result; neighbours that follow each other become one."""
    last: Run | None = None
    for run in runs:
        if last is not None and last[0] == run[0] and last[1] + last[3] == run[1]:
            last = (*last[:3], last[3] + run[3])
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last
