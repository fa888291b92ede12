"""Times the address search: ``python benches/address_search.py [FOLDER]``.

Each CSV file of FOLDER has the columns ``id``, ``lower``, ``upper`` (half open) and ``size``, in
any order. Without FOLDER, instances are generated that fill the memory at all times.
Exit code 1 if an instance is not solved at its capacity in time.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pycompiler.scheduler.address_search import (
    Buffer,
    OutOfTimeError,
    best_fit,
    place,
)

sys.path.append(str(Path(__file__).parents[1] / "tests/pycompiler"))
from packed_buffers import packed
from placements import overlaps


def read(path: Path) -> list[Buffer]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [Buffer(r["id"], int(r["lower"]), int(r["upper"]), int(r["size"])) for r in rows]


def instances(folder: Path | None) -> Iterator[tuple[str, list[Buffer], int]]:
    """Yield names, buffers and capacities."""
    if folder is not None:
        for path in sorted(folder.glob("*.csv")):
            yield path.name, read(path), 1 << 20
        return
    for seed, count in enumerate((16, 20, 24, 28)):
        yield f"{count} of seed {seed}", packed(seed, count), 1 << 20


def solve(buffers: list[Buffer], capacity: int, seconds: float) -> tuple[str, float]:
    """Return the outcome of an instance, and the seconds that it took."""
    start = time.monotonic()
    try:
        offsets = place(buffers, capacity, seconds)
        said = "impossible" if offsets is None else "solved"
    except OutOfTimeError:
        offsets, said = None, "out of time"
    taken = time.monotonic() - start
    if offsets is not None:
        assert not list(overlaps(buffers, offsets))
        assert all(offsets[b.name] + b.size <= capacity for b in buffers)
    return said, taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    unsolved = 0
    for name, buffers, capacity in instances(given.folder):
        said, seconds = solve(buffers, capacity, given.seconds)
        unsolved += said != "solved"
        greedy = best_fit(buffers)[1] / capacity
        row = f"{name:16} {len(buffers):5} buffers  {said:12} {seconds:7.2f} s"
        print(f"{row}  best fit alone {100 * greedy:.1f} % of the capacity", flush=True)
    return 1 if unsolved else 0


if __name__ == "__main__":
    sys.exit(main())
