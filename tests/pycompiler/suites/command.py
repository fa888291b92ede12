"""The command that runs a suite, and writes its page with the files that it is made from.

With patterns, only tests run whose names match one of these regular expressions, and each is
printed. Nothing is written then, unless ``--write`` puts their outcomes in place of those recorded.
``--device`` names one machine; without it, tests run on all, and those with a pattern on the first.
``--part 2/64`` runs the third test of each 64, in the way of tests with a pattern.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from .outcome import FAULTS, Outcome
from .records import counts, read_record, record
from .workers import Case, run_all


@dataclass(frozen=True)
class Suite:
    """A public suite: its tests, how one is judged on a device, and what is written.

    ``records`` are the files of outcomes by device.
    """

    version: str
    cases: Callable[[Sequence[str]], Sequence[Case]]
    judge: Callable[[Any, str], Outcome]
    records: Mapping[str, Path]
    page_file: Path
    page: Callable[[], str]


def main(suite: Suite) -> int:
    """Run the command; 1 if a test has an outcome that must not happen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--device", choices=suite.records)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--part", type=_part, default=slice(None), metavar="FIRST/STEP")
    chosen = parser.parse_args()
    known = suite.cases(chosen.patterns)
    cases = known[chosen.part]
    some = len(cases) < len(known) or bool(chosen.patterns)
    devices = [chosen.device] if chosen.device else list(suite.records)
    if some:
        devices = devices[:1]
    faults = 0
    for device in devices:
        judge = partial(suite.judge, device=device)
        outcomes = _run(cases, judge, chosen.jobs, some)
        print(device, dict(counts(outcomes)))
        faults += sum(outcome.kind in FAULTS for outcome in outcomes)
        if some and chosen.write:
            outcomes = _merged(outcomes, suite.records[device], known)
        if chosen.write or not some:
            suite.records[device].write_text(record(outcomes, suite.version))
    if chosen.write or not some:
        suite.page_file.write_text(suite.page())
    return int(faults > 0)


def _part(text: str) -> slice:
    """Return which tests run: ``FIRST/STEP``."""
    first, step = map(int, text.split("/"))
    return slice(first, None, step)


def _merged(outcomes: Sequence[Outcome], path: Path, known: Sequence[Case]) -> list[Outcome]:
    """Return the outcomes that a file records, with those of ``outcomes`` in their places.

    If all tests are known, they come in their order.
    """
    new = {one.name: one for one in outcomes}
    old = read_record(path.read_text())[1] if path.exists() else []
    kept = [new.pop(one.name, one) for one in old]
    order = {case.name: number for number, case in enumerate(known)}
    found = kept + list(new.values())
    if all(one.name in order for one in found):
        found.sort(key=lambda one: order[one.name])
    return found


def _run(
    cases: Sequence[Case], judge: Callable[[Any], Outcome], jobs: int, all_shown: bool
) -> list[Outcome]:
    number = 0

    def finished(outcome: Outcome) -> None:
        nonlocal number
        number += 1
        if all_shown or outcome.kind in FAULTS:
            print(outcome, flush=True)
        elif number % 200 == 0:
            print(f"{number} of {len(cases)}", flush=True)

    return run_all(cases, judge, jobs, finished)


def moved(found: Sequence[Outcome], recorded: Sequence[Outcome]) -> list[tuple[Any, ...]]:
    """Return the tests whose outcomes are not those recorded."""
    known = {one.name: (one.kind, one.code) for one in recorded}
    return [
        (one.name, known.get(one.name), one.kind, one.code, one.reason)
        for one in found
        if known.get(one.name) != (one.kind, one.code)
    ]
