"""Times the address search on a folder of instances: ``python benches/address_search.py FOLDER``.

Each CSV file has the columns ``id``, ``lower``, ``upper`` (half open) and ``size``, in any order.
Exit code 1 if an instance is not solved at its capacity in time.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

from pycompiler.scheduler.address_search import (
    Buffer,
    OutOfTimeError,
    Place,
    best_fit,
    overlaps,
    place_in_one,
)


def read(path: Path) -> list[Buffer]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [Buffer(r["id"], int(r["lower"]), int(r["upper"]), int(r["size"])) for r in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--capacity", type=int, default=1 << 20)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    unsolved = 0
    for path in sorted(given.folder.glob("*.csv")):
        buffers = read(path)
        start = time.monotonic()
        try:
            offsets = place_in_one(buffers, given.capacity, given.seconds)
            said = "impossible" if offsets is None else "solved"
        except OutOfTimeError:
            offsets, said = None, "out of time"
        seconds = time.monotonic() - start
        if offsets is None:
            unsolved += 1
        else:
            places = {name: Place(0, at) for name, at in offsets.items()}
            assert not list(overlaps(buffers, places))
            assert all(places[b.name].offset + b.size <= given.capacity for b in buffers)
        greedy = best_fit(buffers)[1] / given.capacity
        row = f"{path.name:10} {len(buffers):5} buffers  {said:12} {seconds:7.2f} s"
        print(f"{row}  best fit alone {100 * greedy:.1f} % of the capacity", flush=True)
    return 1 if unsolved else 0


if __name__ == "__main__":
    sys.exit(main())
