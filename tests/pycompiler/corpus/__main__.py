"""Compiles the corpus and prints what differs from its records: ``make corpus``.

``python -m corpus drawn/ mixed`` in ``tests/pycompiler`` takes the programs whose names contain one
of the words. ``--record`` keeps what it finds. The exit code is 1 if something differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor

from .changes import table
from .programs import PROGRAMS
from .record import Record, read_records, record, write_records


def _quiet(name: str) -> Record:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return record(name)


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="corpus", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of the names of programs")
    parser.add_argument("--record", action="store_true", help="keep what is found")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    names = [n for n in PROGRAMS if not given.words or any(word in n for word in given.words)]
    if not names:
        parser.error("no program has such a name")
    found: dict[str, Record] = {}
    with ProcessPoolExecutor(given.jobs) as pool:
        for name, one in zip(names, pool.map(_quiet, names), strict=True):
            found[name] = one
            if sys.stderr.isatty():
                print(f"\r{len(found)} of {len(names)}", end="\r", file=sys.stderr)
    known = read_records()
    print("\n".join(table(known, found)))
    differ = any(known.get(name) != one for name, one in found.items())
    if given.record:
        kept = {} if not given.words else known
        write_records({**kept, **found})
    return int(differ and not given.record)


if __name__ == "__main__":
    raise SystemExit(main())
