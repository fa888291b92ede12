"""Times calls of a compiled encoder layer: rows for `make bench`.

Compared within one run: the emulated steps a second with those of the N-body example, two threads
each, and the first call of a function with later ones.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from targets_layers import Row

from emu2 import Spec
from emu2.bench import programs
from emu2.bench.kernels import Chip
from emu2.bench.measure import USUAL

#: Steps of the layer over those of N-body, a second; the first call over later ones.
STEPS, FIRST = 0.9, 1.2

# In a process of its own, because the number of threads is set per process.
_LAYER = """
import json, tempfile, time
from pathlib import Path
import torch
import emu2
from targets_layers import CASES, with_biases
from pycompiler.mlsdk import Context, MNDevice
from pycompiler.report.codegen_dir import MODEL_VSM

case = CASES[0]
torch.manual_seed(0)
module = with_biases(case.make())
inputs = {"x": torch.randn(case.shape)}
options = {"float_dtype": "mixed", "scheduler": "spill_opt"}
with tempfile.TemporaryDirectory() as folder:
    out = Path(folder) / "out"
    function = lambda d: {"y": module(d["x"])}
    Context(MNDevice("emu2")).compile(function, inputs, out, options=options)
    compiled = Context(MNDevice("emu2")).load_codegen_dir(out)
    spec = emu2.Spec.load("mncore2")
    program = emu2.assemble((out / MODEL_VSM).read_text(), spec)
steps = program.report()["steps"]
calls, runs = [], []
for _ in range(8):
    begin = time.perf_counter()
    compiled(inputs)["y"].cpu()
    calls.append(time.perf_counter() - begin)
machine = emu2.Machine(spec)
for _ in range(8):
    begin = time.perf_counter()
    machine.run(program)
    runs.append(time.perf_counter() - begin)
print(json.dumps({"steps": steps, "calls": calls, "run": min(runs)}))
"""


def rows(machine: str = "mncore2") -> Iterator[Row]:
    """Yield the two rows."""
    threads = str(programs.N_BODY_THREADS)
    path = os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    environment = {**os.environ, "RAYON_NUM_THREADS": threads, "PYTHONPATH": path}
    code = [sys.executable, "-W", "ignore", "-c", _LAYER]
    said = subprocess.run(code, env=environment, capture_output=True, text=True, check=True)
    layer = json.loads(said.stdout.splitlines()[-1])
    n_body = {row.case: row.value for row in programs.n_body_rows(Chip(Spec.load(machine)), USUAL)}
    yield _row(
        f"emulated steps of an encoder layer, {threads} threads; bound: the N-body example",
        layer["steps"] / layer["run"],
        "steps/s",
        n_body["run alone"] or math.nan,
        STEPS,
    )
    first, *later = layer["calls"]
    yield _row("first call of that layer; bound: later calls", first, "s", min(later), -FIRST)


def _row(name: str, value: float, unit: str, bound: float, target: float) -> Row:
    """Return a row; a negative target is the most that the ratio may be."""
    ratio = value / bound
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "bound": bound,
        "ratio": ratio,
        "target": f"at least {target:g}" if target > 0 else f"at most {-target:g}",
        "met": ratio >= target if target > 0 else ratio <= -target,
    }
