"""Times the debugger on 100,000 steps of N-body on the whole chip: rows for `make bench`.

Compared within one run: the program under the debugger, without breakpoints, and the plain run,
in seconds of processor time, which the load of the host does not change; how long a step back takes
at the end of the run; and the memory of the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPEED, BACK, MEMORY = 0.8, 0.1, 2e9
STEPS = 100_000
ROOT = Path(__file__).parents[1]

# In a process of its own, because its memory is measured.
_RUN = """
import json, resource, subprocess, sys, time
import emu2

spec = emu2.Spec.load("mncore2")
command = [sys.executable, "examples/nbody.py", "--print"]
made = subprocess.run(command, capture_output=True, text=True)
steps = emu2.assemble(made.stdout, spec).report()["steps"]
text = made.stdout * -(-int(sys.argv[1]) // steps)


def seconds(work, clock=time.process_time):
    start = clock()
    work()
    return clock() - start


plain, debugged = [], []
for _ in range(3):
    # A program that ran before runs faster, so both run for the first time.
    program = emu2.assemble(text, spec)
    machine = emu2.Machine(spec)
    plain.append(seconds(lambda: machine.run(program)))
    del machine
    debugger = emu2.Debugger(emu2.assemble(text, spec))
    debugged.append(seconds(debugger.run))
back = [seconds(lambda: debugger.step(back=True), time.perf_counter) for _ in range(20)]
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
found = {"plain": min(plain), "debugged": min(debugged), "back": max(back), "memory": memory}
print(json.dumps(found))
"""


def measured(steps: int = STEPS) -> dict[str, Any]:
    """Return the seconds of both runs and of the slowest step back, and bytes of memory."""
    command = [sys.executable, "-c", _RUN, str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(steps: int = STEPS) -> Iterator[dict[str, Any]]:
    """Yield speed, the slowest step back, and memory."""
    found = measured(steps)
    share = found["plain"] / found["debugged"]
    name = f"debugger, {steps} steps of N-body on the chip"
    yield {
        "name": f"{name}: speed without breakpoints",
        "value": found["debugged"],
        "unit": "s of the processors",
        "bound": found["plain"],
        "ratio": share,
        "target": f"at least {SPEED}",
        "met": share >= SPEED,
    }
    yield {
        "name": f"{name}: slowest of 20 steps back",
        "value": found["back"],
        "unit": "s",
        "bound": BACK,
        "ratio": found["back"] / BACK,
        "target": "at most 1",
        "met": found["back"] <= BACK,
    }
    yield {
        "name": f"{name}: memory of the process",
        "value": found["memory"],
        "unit": "bytes",
        "bound": MEMORY,
        "ratio": found["memory"] / MEMORY,
        "target": "at most 1",
        "met": found["memory"] <= MEMORY,
    }
