"""Takes the times and makes the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import emu2
from emu2 import _core
from emu2.bench.baselines import Memories
from emu2.bench.kernels import GIGA, Chip, Kernel, prepared

TURNS = 3
"""Turns in which program, limit and numpy alternate."""


@dataclass(frozen=True)
class Pace:
    """The duration of the measurements."""

    seconds: float  # for a kernel with its limit; numpy gets half


USUAL = Pace(0.5)
QUICK = Pace(0.03)


@dataclass(frozen=True)
class Row:
    """A measured value with its target, or without one.

    Attributes:
        kernel: name in the table of targets.
        case: distinguishes several cases of one kernel, or empty.
        threads: number of threads of the run.
        value: the measured value, in `unit`.
        limit: the bound of the value, in `unit`, or None.
        ratio: value / limit, or None.
        target: bound of the ratio, or of the value if there is no ratio; None without target.
        at_most: the target is an upper bound instead of a lower one.
        limit_name: name of the limit.
        steps_per_second: steps, MVs included.
        pe_ops_per_second: operations on one PE in one cycle.
        numpy: the value of the same step in numpy, in `unit`.
    """

    kernel: str
    case: str
    threads: int
    value: float | None
    unit: str
    limit: float | None = None
    target: float | None = None
    at_most: bool = False
    limit_name: str | None = None
    steps_per_second: float | None = None
    pe_ops_per_second: float | None = None
    numpy: float | None = None

    @property
    def ratio(self) -> float | None:
        """Return the value over the limit."""
        return self.value / self.limit if self.value is not None and self.limit else None

    @property
    def met(self) -> bool | None:
        """Return whether the target is met; None without one."""
        if self.target is None:
            return None
        measured = self.value if self.ratio is None else self.ratio
        if measured is None:
            return False
        return measured <= self.target if self.at_most else measured >= self.target

    def record(self) -> dict[str, Any]:
        """Return the row for `--json`."""
        names = ("kernel", "case", "threads", "value", "unit", "limit", "ratio", "target", "met")
        more = ("at_most", "limit_name", "steps_per_second", "pe_ops_per_second", "numpy")
        return {name: getattr(self, name) for name in (*names, *more)}


class WrongBitsError(Exception):
    """The emulator and numpy disagree."""


def settle_allocator() -> None:
    """Make the C library keep the memory of freed arrays.

    Before a large array has been freed, it asks the operating system for every temporary of numpy.
    Then numpy would seem several times slower.
    """
    for _ in range(2):
        np.ones(3 << 20)


def best_of(call: Callable[[], object], seconds: float) -> float:
    """Return the time of the fastest call within `seconds`, out of at least two calls."""
    best, runs, start = float("inf"), 0, time.perf_counter()
    while runs < 2 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        call()
        best, runs = min(best, time.perf_counter() - begin), runs + 1
    return best


def program(spec: emu2.Spec, lines: str, rounds: int) -> emu2.Program:
    """Return the program that repeats the lines `rounds` times."""
    return emu2.assemble(f"{lines}\n" * rounds, spec, filename="bench.vsm")


def verified(chip: Chip, kernel: Kernel) -> tuple[emu2.Machine, Callable[[], object]]:
    """Run a round and compare it with numpy; return the machine and the step in numpy."""
    machine = prepared(chip.spec, kernel.data)
    baseline = kernel.baseline(Memories(machine))
    machine.run(program(chip.spec, kernel.lines, 1))
    if not baseline.check(machine):
        raise WrongBitsError(kernel.name)
    return machine, baseline.step


def kernel_rows(chip: Chip, kernel: Kernel, pace: Pace, threads: list[int]) -> Iterator[Row]:
    """Yield a row per target on one thread, and a row per further number of threads."""
    machine, step = verified(chip, kernel)
    run = program(chip.spec, kernel.lines, kernel.rounds)
    words, units = kernel.rows(chip)
    loop = None if kernel.limit == "numpy" else kernel.limit
    elements = kernel.elements(chip) * kernel.scale
    seconds, rate, python = float("inf"), 0.0, float("inf")
    for _ in range(TURNS):
        taken, limit = _core.race(
            machine,
            run,
            threads=1,
            seconds=pace.seconds / TURNS,
            limit=loop,
            words=words,
            units=units,
        )
        seconds, rate = min(seconds, taken), max(rate, limit)
        python = min(python, best_of(step, pace.seconds / TURNS / 2))
    steps = kernel.rounds * kernel.steps

    def row(threads: int, seconds: float, **more: Any) -> Row:
        value = elements * kernel.rounds / seconds
        pace = steps / seconds
        ops = None if kernel.kernel == "mvp" else pace * chip.pe_ops
        return Row(
            kernel.kernel,
            kernel.case,
            threads,
            value,
            kernel.unit,
            steps_per_second=pace,
            pe_ops_per_second=ops,
            numpy=elements / python,
            **more,
        )

    bound: dict[str, Any] = {}
    if kernel.limit == "numpy":
        bound = {"limit": elements / python, "limit_name": "numpy"}
    elif kernel.limit is not None:
        bound = {"limit": rate * kernel.scale, "limit_name": kernel.limit}
    if not kernel.targets:
        yield row(1, seconds, **bound)
    for target in kernel.targets:
        yield row(1, seconds, target=target.least, **(bound if target.of_ratio else {}))
    for count in threads:
        if count != 1:
            taken, _ = _core.race(machine, run, threads=count, seconds=pace.seconds / 2)
            alone = row(1, seconds).value
            yield row(count, taken, limit=alone, limit_name="1 thread")


REGION = 32
"""Steps of the region that two threads share."""
TWO_THREADS = 1.8


def scaling_rows(chip: Chip, kernels: list[Kernel], pace: Pace) -> Iterator[Row]:
    """Yield the speed of two threads relative to one, for regions of `REGION` steps."""
    for kernel in kernels:
        machine = prepared(chip.spec, kernel.data)
        run = program(chip.spec, kernel.lines, REGION // kernel.steps)
        best = {1: float("inf"), 2: float("inf")}
        for _ in range(TURNS):
            for threads, before in best.items():
                taken, _ = _core.race(
                    machine, run, threads=threads, seconds=pace.seconds / 2 / TURNS
                )
                best[threads] = min(before, taken)
        one, two = (REGION / best[threads] for threads in best)
        yield Row(
            "two threads over one",
            f"{kernel.kernel}, {REGION} steps",
            2,
            two,
            "steps/s",
            limit=one,
            limit_name="1 thread",
            target=TWO_THREADS,
            steps_per_second=two,
            pe_ops_per_second=two * chip.pe_ops,
        )


def host_limits(chip: Chip, pace: Pace) -> list[tuple[str, float, str]]:
    """Return the limits of the host: name, value, unit."""
    large = 1 << 22  # long words: 32 MiB, beyond the caches
    seconds = pace.seconds / 5

    def limit(name: str, words: int = 0, units: int = 1) -> float:
        return _core.limit(name, seconds=seconds, words=words, units=units) / GIGA

    row = (chip.row, chip.l1bs)
    return [
        ("plain loop: add, cached rows", limit("add", *row), "G/s"),
        ("plain loop: f64 FMA, cached rows", limit("fma_f64", *row), "G/s"),
        ("f64 FMA peak, in registers", limit("registers_f64"), "G/s"),
        ("f32 FMA peak, in registers", limit("registers_f32"), "G/s"),
        ("16-bit multiply-add peak", limit("multiply_add_16"), "G/s"),
        ("copy, cached rows", 8 * limit("copy", *row), "GB/s"),
        ("copy, memory", 8 * limit("copy", large, 1), "GB/s"),
    ]
