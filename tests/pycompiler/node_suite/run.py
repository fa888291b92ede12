"""Runs ONNX's node tests and writes docs/onnx.md with the files that it is made from.

``python tests/pycompiler/node_suite/run.py [PATTERN ...]``: with patterns, only tests with one of
them in their name run, each is printed, and nothing is written. ``--device`` names one machine;
without it, tests run on both, and those with a pattern on the first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[3])]

import onnx

from node_suite.cases import node_tests
from node_suite.judge import FAULTS, Outcome
from node_suite.page import PAGE, RECORDS, STEPS, counts, page, record
from node_suite.workers import run_all


def main() -> int:
    """Run the command; 1 if a test has an outcome that must not happen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--device", choices=RECORDS)
    chosen = parser.parse_args()
    cases = [
        case
        for case in node_tests()
        if not chosen.patterns or any(part in case.name for part in chosen.patterns)
    ]
    devices = [chosen.device] if chosen.device else list(RECORDS)
    if chosen.patterns:
        devices = devices[:1]
    faults = 0
    for device in devices:
        step = 1 if chosen.patterns else STEPS[device]
        outcomes = _run(cases[::step], device, chosen.jobs, bool(chosen.patterns))
        faults += sum(outcome.kind in FAULTS for outcome in outcomes)
        if not chosen.patterns:
            RECORDS[device].write_text(record(outcomes, onnx.__version__))
    if not chosen.patterns:
        PAGE.write_text(page())
    return int(faults > 0)


def _run(cases: Sequence[Any], device: str, jobs: int, all_shown: bool) -> list[Outcome]:
    number = 0

    def finished(outcome: Outcome) -> None:
        nonlocal number
        number += 1
        if all_shown or outcome.kind in FAULTS:
            print(outcome, flush=True)
        elif number % 200 == 0:
            print(f"{number} of {len(cases)}", flush=True)

    outcomes = run_all(cases, device, jobs, finished)
    print(device, dict(counts(outcomes)))
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
