"""Compares the compiler with its targets: ``python benches/targets.py [--instances FOLDER]``.

A row has name, value, unit, bound, ratio (of value and bound), target and met. Products and streams
have modules of their own in this folder. FOLDER holds instances for the address search (see
``address_search.py``); without it, instances are generated. Cycles are those of the cycle model;
nothing runs on the emulator. The exit code is 0 even if a target is not met.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import targets_boards
import targets_calls
import targets_convolutions
import targets_debugger
import targets_gemm
import targets_layers
import targets_memory
import targets_merge
import targets_nbody
import targets_networks
import targets_plugins
import targets_simulation
import targets_streaming
import targets_training
import torch
from address_search import instances, solve
from rich.console import Console
from rich.table import Table
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.machine import load_target
from pycompiler.mlsdk import Context, MNDevice
from pycompiler.options import parse_options
from pycompiler.pfvm.optimise import optimise
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request

Row = dict[str, Any]
Tensors = dict[str, torch.Tensor]
Function = Callable[[Tensors], Tensors]

COMPILE_SECONDS = 20.0
SEARCH_SECONDS = 60.0
SPILLED = 0.25
PARTS = (
    targets_gemm,
    targets_nbody,
    targets_convolutions,
    targets_layers,
    targets_networks,
    targets_calls,
    targets_streaming,
    targets_training,
    targets_memory,
    targets_merge,
    targets_plugins,
    targets_boards,
    targets_simulation,
    targets_debugger,
)
#: What trains for many minutes.
LONG = (targets_training.gpt_rows, targets_training.resnet_rows)


def perceptron(layers: int, batch: int, width: int) -> tuple[Function, Tensors]:
    """Return an MLP and an input."""
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*parts).eval()
    return lambda d: {"y": model(d["x"])}, {"x": torch.randn(batch, width)}


def report_of(function: Function, inputs: Tensors, machine: str, **options: Any) -> dict[str, Any]:
    """Return the report of a compilation; nothing is written to disk."""
    report = Report(machine, options)
    model = optimise(export(function, inputs))
    compile_onnx(
        Request(model, load_target(machine), parse_options({"strict": True, **options}), report)
    )
    return report.data


def spilled(
    layers: int = 8, batch: int = 256, width: int = 1024, machine: str = "mncore2"
) -> Iterator[Row]:
    """Compare the DRAM words, without parameters, of the best scheduler and the simplest one."""
    function, inputs = perceptron(layers, batch, width)
    moved = {}
    for scheduler in ("always_from_dram", "spill_opt"):
        words = report_of(function, inputs, machine, scheduler=scheduler)["schedule"]["dram_words"]
        moved[scheduler] = words["read"] + words["written"]
    value, bound = moved["spill_opt"], moved["always_from_dram"]
    yield {
        "name": f"DRAM words of spill_opt, {layers} layers, batch {batch}, width {width}",
        "value": value,
        "unit": "long words",
        "bound": bound,
        "ratio": value / bound,
        "target": f"at most {SPILLED}",
        "met": value <= SPILLED * bound,
    }


def compile_time(
    layers: int = 8, batch: int = 256, width: int = 1024, machine: str = "mncore2"
) -> Iterator[Row]:
    """Measure the seconds from a torch function to its folder, with the exporter."""
    function, inputs = perceptron(layers, batch, width)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        Context(MNDevice(f"emu2:{machine}")).compile(function, inputs, Path(folder) / "out")
        seconds = time.perf_counter() - start
    yield {
        "name": f"compile time, {layers} layers, batch {batch}, width {width}",
        "value": seconds,
        "unit": f"s on {os.cpu_count()} cores",
        "bound": COMPILE_SECONDS,
        "ratio": seconds / COMPILE_SECONDS,
        "target": "at most 1",
        "met": seconds <= COMPILE_SECONDS,
    }


def packed(folder: Path | None = None) -> Iterator[Row]:
    """Measure the slowest instance of the address search."""
    times, unsolved = [0.0], []
    for name, buffers, capacity in instances(folder):
        said, seconds = solve(buffers, capacity, SEARCH_SECONDS)
        times.append(seconds)
        if said != "solved":
            unsolved.append(name)
    count = len(times) - 1
    kind = "made" if folder is None else "public"
    yield {
        "name": f"address search, {count - len(unsolved)} of {count} {kind} instances solved",
        "value": max(times),
        "unit": "s for the slowest",
        "bound": SEARCH_SECONDS,
        "ratio": max(times) / SEARCH_SECONDS,
        "target": "all, at most 1",
        "met": count > 0 and not unsolved and max(times) <= SEARCH_SECONDS,
    }


def all_rows(folder: Path | None) -> Iterator[Row]:
    """Yield all rows; a part that fails with a diagnostic gives a row that is not met."""
    own = (spilled, compile_time, lambda: packed(folder), *LONG)
    for part in (*(module.rows for module in PARTS), *own):
        try:
            yield from part()
        except PycompilerError as problem:
            yield {"name": f"{problem}".splitlines()[0], "value": None, "target": "", "met": False}


def table(rows: Sequence[Row]) -> Table:
    """Return the rows as a readable table."""
    out = Table(title="Targets of the compiler")
    for column in ("what", "value", "unit", "bound", "ratio", "target", "met"):
        out.add_column(column, justify="right" if column in ("value", "bound", "ratio") else "left")
    for row in rows:
        numbers = [
            _number(row.get("value")),
            str(row.get("unit", "")),
            _number(row.get("bound")),
            _number(row.get("ratio")),
        ]
        met = "met" if row["met"] else "not met"
        out.add_row(str(row["name"]), *numbers, str(row["target"]), met)
    return out


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=Path, help="folder of instances for the address search")
    given = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)
    Console(width=160).print(table(list(all_rows(given.instances))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
