"""`emu2 bench`: its rows, its targets, and its arithmetic in numpy. No test checks a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import emu2
from emu2 import _core
from emu2.bench import arithmetic, programs
from emu2.bench.baselines import Baseline, long_add
from emu2.bench.command import SCALED, sections
from emu2.bench.kernels import Chip, Kernel, chosen, kernels
from emu2.bench.measure import QUICK, Row, WrongBitsError, verified
from emu2.bench.table import clone_lines

MINI = Chip(emu2.Spec.load("mini"))


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "emu2.cli", "bench", "--spec", "mini", "--quick", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_json_is_one_array_with_a_row_per_criterion() -> None:
    done = bench("--json", "--only", "hmfma", "--threads", "1,2")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    named = [(row["kernel"], row["threads"], row["target"]) for row in rows]
    kernel = "hmfma"
    scaled = ("two threads over one", 2, 1.8)
    assert named == [(kernel, 1, 0.15), (kernel, 1, 20), (kernel, 2, None), scaled]
    for row in rows:
        assert row["value"] > 0
        assert row["unit"] in ("GMAC/s", "steps/s")
        limit = row["limit"]
        assert row["ratio"] == (None if limit is None else pytest.approx(row["value"] / limit))
        asked = row["value"] if limit is None else row["ratio"]
        assert row["met"] == (None if row["target"] is None else asked >= row["target"])


def test_the_table_says_what_is_met() -> None:
    done = bench("--only", "ladd*")
    assert done.returncode == 1  # kernels are named as in the table of targets
    done = bench("--only", "long integer*")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.splitlines() if line.startswith("long integer ALU op")]
    assert len(lines) == 2
    assert all(line.endswith("met") for line in lines)
    assert done.stdout.splitlines()[-1].split()[1:5] == ["of", "2", "targets", "met;"]


def test_the_bench_says_which_clone_each_kernel_runs() -> None:
    done = bench("--only", "long integer*")
    lines = [line for line in done.stdout.splitlines() if "alu add 64" in line]
    clones = len(_core.levels()) > 1 and "EMU2_LEVEL" not in os.environ
    levels = {line.split(":")[0].strip() for line in lines}
    assert (len(lines) == 1 and levels <= set(_core.levels())) if clones else lines == []


def test_clones_are_listed_by_level() -> None:
    choices = [("f_fma", "v4"), ("g_mfma", "v4"), ("h_mfma", "v3")]
    assert clone_lines([]) == []
    head, *lines = clone_lines(choices)
    assert head.endswith(":")
    assert lines == ["  v3: h_mfma", "  v4: f_fma, g_mfma"]


def test_products_count_rows_times_columns() -> None:
    products = [kernel for kernel in kernels(MINI) if kernel.kernel.endswith("mfma")]
    counts = {kernel.kernel: kernel.elements(MINI) // MINI.pe_ops for kernel in products}
    assert counts == {"hmfma": 64, "gmfma": 16, "fmfma": 8}


def test_an_unknown_pattern_is_one_diagnostic() -> None:
    done = bench("--only", "nothing")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[0] == "error[R0009]: no kernel matches `nothing`"
    assert done.stderr.count("error[") == 1


@pytest.mark.parametrize("threads", ["0", "x", "1,,2", "2000"])
def test_bad_thread_counts_are_usage(threads: str) -> None:
    done = bench("--threads", threads)
    assert (done.returncode, done.stdout) == (2, "")


# The table of targets, written by hand.
TARGETS = {
    "long integer ALU op": [0.5, 6],
    "fvfma": [0.2],
    "hvfma": [0.2],
    "dvfma": [15],
    "hmfma": [0.15, 20],
    "gmfma": [5],
    "fmfma": [2],
    "l1bmd": [0.5, 0.5],
    "l1bmm": [0.5, 0.5],
    "l2bmd": [0.5, 0.5],
    "mvp": [0.5, 0.5],
    "l1bmrdfadd": [10],
    "l2bmrffadd": [10],
}


def test_every_target_has_its_rows() -> None:
    found: dict[str, list[float]] = {}
    for kernel in kernels(MINI):
        found.setdefault(kernel.kernel, []).extend(target.least for target in kernel.targets)
    assert found == TARGETS
    names = [name for name, _ in sections(MINI)]
    for name in (programs.N_BODY, programs.ASSEMBLER, programs.FIRST_STEP):
        assert name in names
    assert sum(name.startswith("two threads over one") for name in names) == len(SCALED)
    assert (programs.N_BODY_STEPS, programs.N_BODY_THREADS) == (100_000, 2)
    assert (programs.ASSEMBLER_LINES, programs.FIRST_STEP_MS) == (1.0, 2.0)


@pytest.mark.parametrize("kernel", kernels(MINI), ids=lambda kernel: kernel.name)
def test_numpy_has_the_same_bits(kernel: Kernel) -> None:
    verified(MINI, kernel)


def test_other_bits_are_noticed() -> None:
    kernel = next(k for k in kernels(MINI) if k.baseline is long_add)

    def wrong(memories: Any) -> Baseline:
        right = long_add(memories)
        return Baseline(lambda: right.step() ^ np.uint64(1), right.memory)

    with pytest.raises(WrongBitsError):
        verified(MINI, replace(kernel, baseline=wrong))


def test_whole_programs_give_rows() -> None:
    rows = [*programs.n_body_rows(MINI, QUICK), *programs.assembler_rows(MINI, QUICK)]
    rows += programs.first_step_rows(MINI, QUICK)
    assert [row.target for row in rows] == [100_000, None, 1, 2, None]
    assert all(row.value and row.value > 0 for row in rows)


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (Row("k", "", 1, 3.0, "x", limit=6.0, target=0.5), True),
        (Row("k", "", 1, 2.9, "x", limit=6.0, target=0.5), False),
        (Row("k", "", 1, 3.0, "x", target=3.0), True),
        (Row("k", "", 1, 2.9, "x", target=3.0), False),
        (Row("k", "", 1, 2.9, "x", target=3.0, at_most=True), True),
        (Row("k", "", 1, 3.1, "x", target=3.0, at_most=True), False),
        (Row("k", "", 1, None, "x", target=3.0), False),
        (Row("k", "", 1, 3.0, "x", limit=6.0), None),
    ],
)
def test_met(row: Row, met: bool | None) -> None:
    assert row.met is met


def test_patterns_are_parts_or_globs() -> None:
    assert chosen("l1bmd to PEs", "l1bmd")
    assert chosen("l1bmd to PEs", "l1*PEs")
    assert chosen("l1bmd to PEs", None)
    assert not chosen("l1bmd to PEs", "l2*")


@pytest.mark.parametrize(
    ("x", "y", "z", "expected"),
    [
        # The omitted products show after cancellation (manual, approximate multiplier).
        (0x3FF0000000000001, 0x3FF0000000000001, 0xBFF0000000000002, 0x3B50000000000000),
        (0x4014000000000000, 0x4022000000000000, 0x3FF0000000000000, 0x4047000000000000),
        (0x0000000000000001, 0x7FF0000000000000, 0x8000000000000000, 0),
        (0x7FE0000000000000, 0x7FE0000000000000, 0, 0x7FF0000000000000),
        (0x0010000000000000, 0x3FE0000000000000, 0, 0),
    ],
)
def test_double_multiply_add(x: int, y: int, z: int, expected: int) -> None:
    assert arithmetic.fma_double_exactly(x, y, z) == expected
    words = (np.array([v], dtype=np.uint64) for v in (x, y, z))
    assert arithmetic.fma_double(*words).tolist() == [expected]


near = st.builds(
    lambda sign, exponent, fraction: sign << 63 | exponent << 52 | fraction,
    st.integers(0, 1),
    st.one_of(st.integers(1020, 1026), st.integers(900, 1150), st.integers(0, 2047)),
    st.one_of(st.integers(0, (1 << 52) - 1), st.sampled_from([0, 1, (1 << 52) - 1, 1 << 51])),
)


@given(near, near, near)
def test_whole_arrays_are_as_exact_as_integers(x: int, y: int, z: int) -> None:
    words = (np.array([v], dtype=np.uint64) for v in (x, y, z))
    assert arithmetic.fma_double(*words).tolist() == [arithmetic.fma_double_exactly(x, y, z)]


def test_single_multiply_add() -> None:
    x, z = (np.array([v], dtype=np.uint32) for v in (0x3F800001, 0xBF800002))
    assert arithmetic.fma_single(x, x, z).tolist() == [0x2C800000]
