"""Compares presets on the models of docs/models.md: ``python benches/compare_presets.py [MODEL]``.

Each model is compiled with both presets, whether they may merge, schedule or search as they like;
only cycles of the cycle model count, and nothing runs on the emulator. All models take hours:
without names, they are all of the catalogue. ``--record FILE`` adds a line of JSON for each model,
and does not compile again what the file has. ``--machine mini`` is for a quick look.

The target: fewer cycles on 80 % of the models, more on none. The exit code is 1 if any model takes
more.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from pycompiler.errors import PycompilerError
from pycompiler.executors import Workers
from pycompiler.frontend.export import export
from pycompiler.halves_or_singles import compile_cheapest
from pycompiler.layout_passes import LayoutPlans
from pycompiler.machine import load_target
from pycompiler.models.catalogue import CATALOGUE
from pycompiler.models.libraries import build_model
from pycompiler.models.names import find
from pycompiler.options import parse_options
from pycompiler.pfvm.optimise import optimise
from pycompiler.report.report import Report
from pycompiler.request import Request

Row = dict[str, Any]
FEWER = 0.8


def measure(name: str, mode: str, machine: str, presets: Sequence[str]) -> Row:
    """Compile one model with each preset; a row has the cycles, or why there are none."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    row: Row = {"name": name, "mode": mode, "cycles": {}, "seconds": {}, "problem": ""}
    try:
        made = build_model(find(name), 1)
        model = optimise(export(made.function, dict(made.inputs)))
        plans = LayoutPlans()  # presets do not change layouts
        for preset in presets:
            options = {"option_json": preset, "float_dtype": mode, "tune": "off"}
            report, began = Report(machine, options), time.monotonic()
            target, checked = load_target(machine), parse_options(options)
            compile_cheapest(Request(model, target, checked, report, plans=plans))
            row["cycles"][preset] = report.data["cycles"]
            row["seconds"][preset] = round(time.monotonic() - began, 1)
    except PycompilerError as problem:
        row["problem"] = f"{problem.code}: {problem.message}"
    except Exception as problem:  # the code of a library failed
        row["problem"] = f"{type(problem).__name__}: {problem}"
    return row


Task = tuple[str, str, str, tuple[str, ...]]


def rows(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Row]]:
    """Yield the rows as they are ready."""
    from compare_presets import measure as work  # a worker does not know the main script

    with Workers(count=jobs) as workers:
        for number, found in workers.run(work, tasks):
            empty = {"name": tasks[number][0], "mode": tasks[number][1], "cycles": {}}
            failed = {**empty, "problem": str(found)}
            yield tasks[number], found if isinstance(found, dict) else failed


def recorded(path: Path | None) -> dict[Task, Row]:
    """Return the rows of a file; a line that was cut short is none."""
    known: dict[Task, Row] = {}
    for text in path.read_text().splitlines() if path is not None and path.exists() else []:
        try:
            name, mode, machine, presets, row = json.loads(text)
        except ValueError:
            continue
        known[name, mode, machine, tuple(presets)] = row
    return known


def summary(found: Sequence[Row], presets: Sequence[str]) -> tuple[str, bool]:
    """Return what came of all models as text, and whether none takes more cycles."""
    before, after = presets
    whole = [row["cycles"] for row in found if len(row["cycles"]) == len(presets)]
    fewer = sum(one[after] < one[before] for one in whole)
    more = [row["name"] for row in found if _ratio(row, presets) > 1]
    met = bool(whole) and fewer >= FEWER * len(whole) and not more
    text = (
        f"{after} takes fewer cycles than {before} on {fewer} of {len(whole)} models "
        f"(target: {FEWER:.0%}), more on {len(more)} (target: 0): {'met' if met else 'not met'}"
    )
    return text + "".join(f"\n  more: {name}" for name in more), not more


def _ratio(row: Row, presets: Sequence[str]) -> float:
    before, after = (row["cycles"].get(preset) for preset in presets)
    return 0.0 if before is None or after is None else after / max(before, 1)


def table(found: Sequence[Row], presets: Sequence[str]) -> Table:
    """Return the rows as a readable table."""
    out = Table("model", "mode", *(f"cycles {p}" for p in presets), "ratio", "problem")
    for row in found:
        cycles = [str(row["cycles"].get(preset, "-")) for preset in presets]
        ratio = _ratio(row, presets)
        shown = f"{ratio:.3f}" if ratio else "-"
        out.add_row(row["name"], row["mode"], *cycles, shown, row["problem"])
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names, such as own:mlp or torchvision:resnet18")
    parser.add_argument("--mode", choices=("float", "mixed", "both"), default="mixed")
    parser.add_argument("--machine", default="mncore2")
    parser.add_argument("--presets", nargs=2, default=("O1", "O3"), metavar=("BEFORE", "AFTER"))
    parser.add_argument("--jobs", type=int, default=1, help="models at a time")
    parser.add_argument("--record", type=Path, metavar="FILE")
    given = parser.parse_args()
    names = given.models or list(CATALOGUE)
    modes = ("float", "mixed") if given.mode == "both" else (given.mode,)
    presets = tuple(given.presets)
    tasks = [(name, mode, given.machine, presets) for name in names for mode in modes]
    known = recorded(given.record)
    for task, row in rows([task for task in tasks if task not in known], given.jobs):
        known[task] = row
        print(row["name"], row["mode"], row["cycles"], row["problem"], file=sys.stderr, flush=True)
        if given.record is not None:
            with given.record.open("a") as record:
                record.write(json.dumps([*task, row]) + "\n")
    found = [known[task] for task in tasks]
    Console(width=160).print(table(found, given.presets))
    text, good = summary(found, given.presets)
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
