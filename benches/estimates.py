"""Compares estimated cycles of drawn programs with their cycles: ``python benches/estimates.py``.

The programs are of the kinds of the corpus, but none of them is in it: their numbers begin behind
those of the corpus. A line has the cycles and the error; the last one the median of the errors, and
the error that 95 of 100 programs do not exceed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests/pycompiler"))

from compiling import compiled
from corpus.networks import drawn_convolutions, drawn_encoder, drawn_product

KINDS = {"encoder": drawn_encoder, "convolutions": drawn_convolutions, "product": drawn_product}
#: The first number of a program that is not in the corpus.
FIRST = 100


def main() -> None:
    """Print a line for each program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=12, help="programs of each kind")
    parser.add_argument("--machine", default="mncore2")
    given = parser.parse_args()
    errors = []
    for kind, draw in KINDS.items():
        for number in range(FIRST, FIRST + given.count):
            for mode in ("float", "mixed"):
                _, report = compiled(draw(number), given.machine, float_dtype=mode)
                cycles, estimate = report["cycles"], report["estimated_cycles"]
                errors.append(estimate / cycles - 1)
                print(f"{kind} {number} {mode}: {cycles} cycles, {errors[-1]:+.1%}", flush=True)
    sizes = sorted(map(abs, errors))
    most = sizes[min(len(sizes) - 1, round(0.95 * len(sizes)))]
    print(f"median error {statistics.median(sizes):.1%} (target 10 %), 95 of 100 {most:.1%} (25 %)")


if __name__ == "__main__":
    main()
