"""The programs of examples/, against numpy, on the small and on the full machine."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MACHINES = ["mini", "mncore2"]


@pytest.fixture
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module(request.param)


def chip_of(name: str):
    return importlib.import_module("chip").Chip(name)


@pytest.mark.parametrize("example", ["chip_sum"], indirect=True)
@pytest.mark.parametrize(
    ("machine", "rows"), [("mini", 1), ("mini", 2), ("mini", 7), ("mncore2", 3)]
)
def test_sum(example: ModuleType, machine: str, rows: int) -> None:
    chip = chip_of(machine)
    array = np.random.default_rng(rows).normal(size=example.Layout(chip, rows).words)
    found, _ = example.total(chip, array)
    assert abs(found - math.fsum(array)) <= example.bound(chip, array)
    # Sums of whole numbers are exact, so this shows that every word counts once.
    whole = np.arange(len(array), dtype=np.float64)
    assert example.total(chip, whole)[0] == whole.sum()


@pytest.mark.parametrize("example", ["transpose"], indirect=True)
@pytest.mark.parametrize("machine", MACHINES)
def test_transpose(example: ModuleType, machine: str) -> None:
    chip = chip_of(machine)
    side = example.Shape(chip).side
    matrix = np.arange(side * side, dtype=np.uint64).reshape(side, side)
    found, _ = example.transpose(chip, matrix)
    np.testing.assert_array_equal(found, matrix.T)


@pytest.mark.parametrize("example", ["stencil"], indirect=True)
@pytest.mark.parametrize(("machine", "times"), [("mini", 0), ("mini", 9), ("mncore2", 2)])
def test_stencil(example: ModuleType, machine: str, times: int) -> None:
    chip = chip_of(machine)
    points = np.random.default_rng(times).normal(size=chip.pes * example.D)
    found, _ = example.advance(chip, points, (5.0, -3.0), times)
    exact, bound = example.reference(points, (5.0, -3.0), times)
    assert np.abs(found - exact).max() <= bound


@pytest.mark.parametrize("example", ["stencil"], indirect=True)
def test_the_order_of_points_is_undone(example: ModuleType) -> None:
    chip = chip_of("mncore2")
    points = np.arange(chip.pes * example.D, dtype=np.float64)
    np.testing.assert_array_equal(example.collect(chip, example.deal(chip, points)), points)


@pytest.mark.parametrize("example", ["nbody"], indirect=True)
@pytest.mark.parametrize(
    ("machine", "bodies"),
    # One row and several rows; part of a block, part of a group of four; more than two blocks.
    [("mini", 2), ("mini", 64), ("mini", 130), ("mini", 261), ("mncore2", 70)],
)
def test_nbody(example: ModuleType, machine: str, bodies: int) -> None:
    random = np.random.default_rng(bodies)
    position = random.normal(size=(bodies, 3)) * 10.0 ** random.integers(-3, 4)
    mass = random.uniform(0.5, 2, bodies)
    found, done = example.simulate(chip_of(machine), position, mass, 2.0**-10)
    exact, bound = example.reference(position, mass, 2.0**-10)
    assert (np.abs(found - exact) <= bound).all()
    # The MAU works in every step of the inner loop.
    layout = example.Layout(chip_of(machine), bodies)
    pairs = -(-bodies // example.GROUP) * example.GROUP * layout.rows
    assert done.report.counters["busy_steps"]["mau"] == example.STEPS * pairs


@pytest.mark.parametrize("example", ["nbody"], indirect=True)
def test_nbody_over_the_range_of_distances(example: ModuleType) -> None:
    """Pairs a factor 2^200 apart: the square root's table and its exponents."""
    distances = 2.0 ** np.linspace(-100, 100, 64) * np.linspace(1, 2, 64)
    position = np.zeros((64, 3))
    position[:, 0] = distances
    found, _ = example.simulate(chip_of("mini"), position, np.ones(64), 2.0**-220)
    exact, bound = example.reference(position, np.ones(64), 2.0**-220)
    assert (np.abs(found - exact) <= bound).all()


@pytest.mark.parametrize("name", ["chip_sum", "transpose", "stencil", "nbody"])
def test_it_runs_as_a_program(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--spec", "mini"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "cycles" in done.stdout
    # The printed assembly passes the checks of a user's file.
    text = subprocess.run([*command, "--print"], capture_output=True, text=True, check=True).stdout
    source = tmp_path / "program.vsm"
    source.write_text(text)
    check = [sys.executable, "-m", "emu2.cli", "check", "--strict", "--spec", "mini", str(source)]
    checked = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
