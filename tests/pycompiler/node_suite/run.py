"""Runs ONNX's node tests and writes docs/onnx.md with the file that it is made from.

``python tests/pycompiler/node_suite/run.py [PATTERN ...]``: with patterns, only tests with one of
them in their name run, each is printed, and nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]

import onnx

from node_suite.cases import node_tests
from node_suite.judge import FAULTS, Outcome
from node_suite.page import PAGE, RECORD, counts, page, record
from node_suite.workers import run_all


def main() -> int:
    """Run the command; 1 if a test has an outcome that must not happen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--device", default="emu2:mini")
    chosen = parser.parse_args()
    cases = [
        case
        for case in node_tests()
        if not chosen.patterns or any(part in case.name for part in chosen.patterns)
    ]
    number = 0

    def finished(outcome: Outcome) -> None:
        nonlocal number
        number += 1
        if chosen.patterns or outcome.kind in FAULTS:
            print(outcome, flush=True)
        elif number % 200 == 0:
            print(f"{number} of {len(cases)}", flush=True)

    outcomes = run_all(cases, chosen.device, chosen.jobs, finished)
    print(dict(counts(outcomes)))
    if not chosen.patterns and chosen.device == "emu2:mini":
        text = record(outcomes, onnx.__version__)
        RECORD.write_text(text)
        PAGE.write_text(page(text))
    return int(any(outcome.kind in FAULTS for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
