"""Whole programs: the N-body example, assembling, and the time from text to the first step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import emu2
from emu2.bench.kernels import Chip
from emu2.bench.measure import Pace, Row, best_of

N_BODY = "N-body example"
N_BODY_STEPS = 100_000
N_BODY_THREADS = 2
ASSEMBLER = "assembler"
ASSEMBLER_LINES = 1.0
FIRST_STEP = "text to first step"
FIRST_STEP_MS = 2.0

_PLAIN = "fvfma $lm0v $ln0v $lr0v $ls0v\n"
_LINES = 20_000
_TEN = "linc $lr0v $ls0v\n" * 10
_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# Runs in a process of its own, because the number of threads is set per process.
_N_BODY = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import emu2, nbody
from chip import Chip, run

chip, turns = Chip(sys.argv[2]), int(sys.argv[3])
random = np.random.default_rng(1)
bodies = 256 if chip.pes >= 256 else 64
layout = nbody.Layout(chip, bodies)
words = np.zeros((4, layout.padded))
words[:3, :bodies], words[3, :bodies] = random.normal(size=(3, bodies)), 1.0
words, size = words.view(np.uint64).reshape(-1), 3 * layout.padded
text = nbody.build(chip, bodies, 2.0**-10)
whole, alone = [], []
for _ in range(turns):
    begin = time.perf_counter()
    steps = run(chip, text, {0: words}, layout.pdm(4), size).report.steps
    whole.append(time.perf_counter() - begin)
    program, machine = emu2.assemble(text, chip.spec), emu2.Machine(chip.spec)
    machine.write("pdm", words, addr=0, group=0)
    begin = time.perf_counter()
    machine.run(program)
    alone.append(time.perf_counter() - begin)
print(json.dumps({"steps": steps, "whole": min(whole), "alone": min(alone)}))
"""

_COLD = """
import time
begin = time.perf_counter()
import emu2
spec = emu2.Spec.load({spec!r})
emu2.Machine(spec).run(emu2.assemble({text!r}, spec))
print(time.perf_counter() - begin)
"""


def _python(code: str, *arguments: str, **environment: str) -> str:
    """Run `code` in a process of its own and return its output."""
    command = [sys.executable, "-c", code, *arguments]
    path = os.pathsep.join([str(_EXAMPLES.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    where = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run(command, env=where, check=True, capture_output=True, text=True).stdout


def n_body_rows(chip: Chip, pace: Pace) -> Iterator[Row]:
    """Yield the N-body example on two threads: from text to accelerations, and the run alone.

    The example is part of the source tree only. Without it, the rows have no value.
    """
    cases = ("text to result", "run alone")
    targets = (float(N_BODY_STEPS), None)
    rates: tuple[float | None, ...] = (None, None)
    if (_EXAMPLES / "nbody.py").exists():
        turns = "8" if pace.seconds > 0.1 else "1"
        threads = {"RAYON_NUM_THREADS": str(N_BODY_THREADS)}
        found = json.loads(_python(_N_BODY, str(_EXAMPLES), chip.spec.name, turns, **threads))
        rates = tuple(found["steps"] / found[name] for name in ("whole", "alone"))
    for case, rate, target in zip(cases, rates, targets, strict=True):
        ops = None if rate is None else rate * chip.pe_ops
        yield Row(
            N_BODY,
            case,
            N_BODY_THREADS,
            rate,
            "steps/s",
            target=target,
            steps_per_second=rate,
            pe_ops_per_second=ops,
        )


def assembler_rows(chip: Chip, pace: Pace) -> Iterator[Row]:
    """Yield how many plain lines the assembler reads per second."""
    text = _PLAIN * _LINES
    seconds = best_of(lambda: emu2.assemble(text, chip.spec), pace.seconds)
    rate = _LINES / seconds / 1e6
    yield Row(ASSEMBLER, "plain lines", 1, rate, "M lines/s", target=ASSEMBLER_LINES)


def first_step_rows(chip: Chip, pace: Pace) -> Iterator[Row]:
    """Yield the time from text to the end of ten lines: with an existing machine, and cold."""
    machine = emu2.Machine(chip.spec)
    warm = best_of(lambda: machine.run(emu2.assemble(_TEN, chip.spec)), pace.seconds)
    case = "ten lines, machine exists"
    yield Row(FIRST_STEP, case, 1, 1e3 * warm, "ms", target=FIRST_STEP_MS, at_most=True)
    code = _COLD.format(spec=chip.spec.name, text=_TEN)
    turns = 3 if pace.seconds > 0.1 else 1
    cold = min(float(_python(code)) for _ in range(turns))
    yield Row(FIRST_STEP, "cold: import, spec, machine", 1, 1e3 * cold, "ms")
