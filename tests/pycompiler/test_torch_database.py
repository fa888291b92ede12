"""PyTorch's operator database: no sample is wrong, none ends in a traceback, and
docs/torch_operators.md says what becomes of each. `make test` runs a few operators, `make
test-long` all of them.

After a change that moves tests: ``python tests/pycompiler/torch_suite/run.py``.
"""

from __future__ import annotations

import os
from functools import partial

import pytest
import torch
from suites.command import moved
from suites.outcome import DEVICE, FAULTS, HOST, REFUSED, Outcome
from suites.records import counts, read_record
from suites.workers import run_all
from torch_suite.cases import operator_tests
from torch_suite.judge import judge
from torch_suite.page import PAGE, RECORDS, page

LONG = "EMU2_LONG" in os.environ
SMALL, LARGE = RECORDS
VERSION, RECORDED = read_record(RECORDS[SMALL].read_text())
_, SAMPLE = read_record(RECORDS[LARGE].read_text())
#: The counts may grow; a change that makes them smaller loses something.
LEAST_ON_DEVICE, LEAST_RIGHT = 1170, 1297


def test_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "run tests/pycompiler/torch_suite/run.py"


def test_counts_do_not_shrink() -> None:
    found = counts(RECORDED)
    assert not [one.name for one in (*RECORDED, *SAMPLE) if one.kind in FAULTS]
    assert found[DEVICE] >= LEAST_ON_DEVICE
    assert found[DEVICE] + found[HOST] >= LEAST_RIGHT
    assert len({one.name for one in RECORDED}) == len(RECORDED)
    assert all(one.code for one in RECORDED if one.kind == REFUSED)


def test_outcomes_are_as_recorded() -> None:
    names = sorted({one.operator for one in RECORDED})
    cases = operator_tests(None if LONG else names[7::80])
    check(run_all(cases if LONG else cases[1::20], partial(judge, device=SMALL), 1), RECORDED)


@pytest.mark.skipif(not LONG, reason="runs in `make test-long`")
def test_outcomes_on_the_large_machine() -> None:
    names = {one.name for one in SAMPLE}
    cases = [case for case in operator_tests() if case.name in names]
    check(run_all(cases, partial(judge, device=LARGE), 1), SAMPLE)


def check(found: list[Outcome], recorded: list[Outcome]) -> None:
    assert not [one for one in found if one.kind in FAULTS]
    if f"torch {torch.__version__.partition('+')[0]}" != VERSION:
        pytest.skip(f"the outcomes are recorded with {VERSION}")
    assert not moved(found, recorded)
