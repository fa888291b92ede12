"""Compares programs on grids with their bound: rows for `make bench`.

Each program is written anew from its formula. Values are cycles of the cycle model, in `float`,
with `scheduler: spill_opt`; nothing runs on the emulator. With ``--plain`` this file shows the
cycles without tiles too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad

from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pfvm.optimise import optimise
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request

Row = dict[str, Any]
Tensors = dict[str, torch.Tensor]


def jacobi(given: Tensors, sweeps: int) -> torch.Tensor:
    """Return a grid whose border is zero after sweeps of the five-point mean."""
    u = given["u"]
    for _ in range(sweeps):
        u = pad(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]), (1, 1, 1, 1))
    return u


def heat(given: Tensors, sweeps: int) -> torch.Tensor:
    """Return the temperatures of a block, whose surface is kept at zero."""
    u, k = given["u"], 0.1
    for _ in range(sweeps):
        inner = u[1:-1, 1:-1, 1:-1]
        around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1]
        around = around + u[1:-1, 2:, 1:-1] + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
        u = pad(inner + k * (around - 6 * inner), (1,) * 6)
    return u


def wave(given: Tensors, sweeps: int) -> torch.Tensor:
    """Return a membrane with a fixed edge: two grids, of which one is a step behind."""
    u, before, c = given["u"], given["before"], 0.2
    for _ in range(sweeps):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        after = 2 * inner - before[1:-1, 1:-1] + c * (around - 4 * inner)
        u, before = pad(after, (1, 1, 1, 1)), u
    return u


def advection(given: Tensors, sweeps: int) -> torch.Tensor:
    """Return a field that a wind of two components carries, upwind, with an inflow of zero."""
    q, u, v = given["q"], given["u"], given["v"]
    for _ in range(sweeps):
        west, south = q[1:, 1:] - q[1:, :-1], q[1:, 1:] - q[:-1, 1:]
        q = pad(q[1:, 1:] - u[1:, 1:] * west - v[1:, 1:] * south, (1, 0, 1, 0))
    return q


def diffusion(given: Tensors, sweeps: int) -> torch.Tensor:
    """Return a field on a torus, with decay."""
    u = given["u"]
    for _ in range(sweeps):
        around = torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1)
        u = 0.9 * u + 0.025 * (around + torch.roll(u, -1, 1))
    return u


def overrelaxed(given: Tensors, sweeps: int) -> torch.Tensor:
    """Return a grid with a fixed border, which is updated in place."""
    u = given["u"].clone()
    for _ in range(sweeps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = -0.2 * u[1:-1, 1:-1] + 0.3 * around
    return u


def sobel(given: Tensors, sweeps: int) -> torch.Tensor:
    """Return the squared gradients of pictures."""
    x = pad(given["x"], (1, 1, 1, 1))
    right, left = x[:, :, 2:], x[:, :, :-2]
    gx = right[:, :-2] + 2 * right[:, 1:-1] + right[:, 2:] - left[:, :-2] - 2 * left[:, 1:-1]
    gx = gx - left[:, 2:]
    below, above = x[:, 2:], x[:, :-2]
    gy = below[:, :, :-2] + 2 * below[:, :, 1:-1] + below[:, :, 2:] - above[:, :, :-2]
    gy = gy - 2 * above[:, :, 1:-1] - above[:, :, 2:]
    return gx * gx + gy * gy


@dataclass(frozen=True)
class Case:
    """A program, the shapes of its inputs, and the most bounds that its cycles may be."""

    name: str
    program: Callable[[Tensors, int], torch.Tensor]
    shapes: dict[str, tuple[int, ...]]
    sweeps: int
    most: float
    dtype: torch.dtype = torch.float32


GRID = (258, 258)
CASES = (
    Case("Jacobi, five points, four sweeps", jacobi, {"u": GRID}, 4, 14),
    Case("the same in doubles", jacobi, {"u": GRID}, 4, 10, torch.float64),
    Case("heat in three dimensions, two sweeps", heat, {"u": (34, 34, 66)}, 2, 25),
    Case("wave on a membrane, four sweeps", wave, {"u": GRID, "before": GRID}, 4, 14),
    Case("upwind advection, four sweeps", advection, dict.fromkeys("quv", (200, 300)), 4, 10),
    Case("diffusion on a torus, four sweeps", diffusion, {"u": (256, 256)}, 4, 14),
    Case("updates in place, four sweeps", overrelaxed, {"u": GRID}, 4, 20),
    Case("Sobel of two pictures", sobel, {"x": (2, 120, 160)}, 1, 8),
)


def cycles_of(case: Case, machine: str, **options: Any) -> dict[str, Any] | str:
    """Compile a program and return its report, or why it does not compile."""
    torch.manual_seed(0)
    inputs = {n: torch.randn(shape, dtype=case.dtype) for n, shape in case.shapes.items()}
    report = Report(machine, options)
    model = optimise(export(lambda d: {"y": case.program(d, case.sweeps)}, inputs))
    given = parse_options({"strict": True, "scheduler": "spill_opt", **options})
    try:
        compile_onnx(Request(model, load_target(machine), given, report))
    except PycompilerError as problem:
        return str(problem).splitlines()[0]
    return report.data


def rows(machine: str = "mncore2") -> Iterator[Row]:
    """Yield a row for every program."""
    for case in CASES:
        data = cycles_of(case, machine)
        if isinstance(data, str):
            yield {"name": f"{case.name}: {data}", "value": None, "target": "", "met": False}
            continue
        bound = data["bound"]["cycles"]
        ratio = data["cycles"] / bound
        yield {
            "name": case.name,
            "value": data["cycles"],
            "unit": "cycles",
            "bound": bound,
            "ratio": ratio,
            "target": f"at most {case.most:g}",
            "met": ratio <= case.most,
        }


def main() -> None:
    """Print the rows, with CPU seconds of the compile; `--plain`: beside those without tiles."""
    for case in CASES:
        start = time.process_time()
        data = cycles_of(case, "mncore2")
        seconds = time.process_time() - start
        if isinstance(data, str):
            print(f"{case.name}: {data}")
            continue
        text = f"{case.name}: {data['cycles']:,} cycles, {data['bound']['factor']:.1f} bounds, "
        text += f"{seconds:.1f} s"
        if "--plain" in sys.argv:
            plain = cycles_of(case, "mncore2", skip_rewrites="tile_stencils")
            text += f"; without tiles {plain if isinstance(plain, str) else plain['cycles']:,}"
        print(text, flush=True)


if __name__ == "__main__":
    main()
