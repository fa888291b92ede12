"""ONNX's node tests: none is wrong, none ends in a traceback, and docs/onnx.md says what becomes of
each. `make test` runs one of every 192, `make test-long` all of them, on both machines.

After a change that moves tests: ``python tests/pycompiler/node_suite/run.py``.
"""

from __future__ import annotations

import os
from functools import partial

import onnx
import pytest
from node_suite.cases import node_tests
from node_suite.judge import DIFFERENT, ONNXRUNTIME, judge
from node_suite.page import PAGE, RECORDS, page
from suites.command import moved
from suites.outcome import DEVICE, FAULTS, HOST, REFUSED, Outcome
from suites.records import counts, read_record
from suites.workers import run_all

LONG = "EMU2_LONG" in os.environ
STEP = 1 if LONG else 192
SMALL, LARGE = RECORDS
VERSION, RECORDED = read_record(RECORDS[SMALL].read_text())
_, SAMPLE = read_record(RECORDS[LARGE].read_text())
#: The counts may grow; a change that makes them smaller loses something.
LEAST_ON_DEVICE, LEAST_RIGHT = 1455, 1636


def test_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "run tests/pycompiler/node_suite/run.py"


def test_counts_do_not_shrink() -> None:
    found = counts(RECORDED)
    assert not [one.name for one in (*RECORDED, *SAMPLE) if one.kind in FAULTS]
    assert {one.name for one in RECORDED if one.kind == ONNXRUNTIME} == DIFFERENT
    assert min(found[DEVICE], counts(SAMPLE)[DEVICE]) >= LEAST_ON_DEVICE
    assert found[DEVICE] + found[HOST] >= LEAST_RIGHT
    assert len({one.name for one in RECORDED}) == len(RECORDED) == sum(found.values())


def test_refusals_have_codes() -> None:
    assert {one.code for one in RECORDED if one.kind == REFUSED} <= {
        *("P0103", "P0108", "P0131", "P0132", "P0133", "P0135", "P0136")
    }


def test_outcomes_are_as_recorded() -> None:
    cases = node_tests() if LONG else node_tests()[5::STEP]
    check(run_all(cases, partial(judge, device=SMALL), 1), RECORDED)


@pytest.mark.skipif(not LONG, reason="runs in `make test-long`")
def test_outcomes_on_the_large_machine() -> None:
    check(run_all(node_tests(), partial(judge, device=LARGE), 1), SAMPLE)


def check(found: list[Outcome], recorded: list[Outcome]) -> None:
    assert not [one for one in found if one.kind in FAULTS]
    if f"onnx {onnx.__version__}" != VERSION:
        pytest.skip(f"the outcomes are recorded with {VERSION}")
    assert not moved(found, recorded)
