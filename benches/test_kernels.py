"""One round of every kernel class through the Python API, and the same step in numpy.

`emu2 bench` shows the targets. These benchmarks show distributions, one kernel after the other.
"""

from __future__ import annotations

from typing import Any

import pytest

import emu2
from emu2.bench.kernels import Chip, Kernel, kernels
from emu2.bench.measure import program, settle_allocator, verified

CHIP = Chip(emu2.Spec.load("mncore2"))
KERNELS = kernels(CHIP)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_emulated(benchmark: Any, kernel: Kernel) -> None:
    machine, _ = verified(CHIP, kernel)
    run = program(CHIP.spec, kernel.lines, kernel.rounds)
    benchmark.extra_info["steps"] = kernel.rounds * kernel.steps
    benchmark(machine.run, run)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_numpy(benchmark: Any, kernel: Kernel) -> None:
    _, step = verified(CHIP, kernel)
    settle_allocator()
    benchmark(step)
