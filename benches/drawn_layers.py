"""Compiles and runs encoder layers of drawn sizes: ``python benches/drawn_layers.py``.

Widths are multiples of the heads from 64 to 1,024, lengths go from 7 to 512. Each layer is compiled
with ``scheduler: spill_opt``, runs on the emulator and is compared with torch. A line tells the
error, the cycles and the factor over the bound, or why there are none. The last line is the share
of layers that compile and match.

Each layer has a process of its own. If a compile or a run takes more CPU seconds than ``--limit``,
the layer counts as one that does not match, and its line says so; the draw stays the same.
``--from 20 --count 10`` takes ten layers of the draw, ``--part 0/2`` every second one.
``--record FILE`` adds a line of JSON for each layer, and does not measure again what the file has.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from targets_layers import with_biases
from torch import nn

from pycompiler.build import build
from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.machine import Target
from pycompiler.mlsdk.function import CompiledFunction
from pycompiler.models.measure import largest_difference
from pycompiler.report.codegen_dir import REPORT, read_file
from pycompiler.runtime.device import Board, find_device
from pycompiler.tolerance import NETWORKS

HEADS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
WIDTHS, LENGTHS, BATCHES = (64, 1024), (7, 512), (1, 2, 3, 4, 5, 7, 8, 12, 16)
#: One layer differs from torch by about a thousandth of its largest value. The bound of deep
#: networks in `mixed` would let the sum over a wrong slice pass.
CLOSE = 5e-3
#: Layers of the draw, and CPU seconds that a compile, or a run, may take.
DRAWN, LIMIT = 60, 600
#: Most values of an input, so that a layer runs in about a minute.
MOST_VALUES = 1 << 19


@dataclass(frozen=True)
class Sizes:
    """The sizes of a layer: width, heads, batch and length."""

    width: int
    heads: int
    batch: int
    length: int

    def __str__(self) -> str:
        return f"{self.width}/{self.heads}, {self.batch}x{self.length}"


def drawn(count: int, seed: int) -> Iterator[Sizes]:
    """Yield this many sizes; the same ones for the same seed."""
    dice = random.Random(seed)
    while count:
        heads = dice.choice(HEADS)
        width = heads * dice.randint(-(-WIDTHS[0] // heads), WIDTHS[1] // heads)
        sizes = Sizes(width, heads, dice.choice(BATCHES), dice.randint(*LENGTHS))
        if sizes.batch * sizes.length * sizes.width <= MOST_VALUES:
            count -= 1
            yield sizes


def seconds() -> float:
    """Return the CPU seconds of this process, with all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def allow(limit: float) -> None:
    """Let the host end this process (SIGXCPU) after so many more CPU seconds."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds() + limit) + 1, hard))


def tell(**found: Any) -> None:
    """Print what is known about the layer so far, for the process that waits for it."""
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "mib": round(memory)}), flush=True)


def measure(sizes: Sizes, mode: str, device: str, limit: float) -> None:
    """Compile, run and compare a layer, and tell what is found."""
    torch.manual_seed(0)
    layer: nn.Module = nn.TransformerEncoderLayer(
        sizes.width, sizes.heads, 4 * sizes.width, batch_first=True, norm_first=True
    )
    layer = with_biases(layer)
    x = torch.randn(sizes.batch, sizes.length, sizes.width)
    with torch.no_grad():
        wanted = {"y": layer(x)}
    model = export(lambda given: {"y": layer(given["x"])}, {"x": torch.randn(x.shape)})
    target: Target = find_device(device).target
    board, began = Board(target), seconds()
    options = {"float_dtype": mode, "scheduler": "spill_opt", "strict": True}
    tell(phase="compile")
    allow(limit)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            function = build(lambda: model, device, board, options, folder)
            report = json.loads(read_file(folder, REPORT))
            facts = {"cycles": report["cycles"], "factor": report["bound"]["factor"]}
            facts["compile"] = round(seconds() - began, 1)
            tell(phase="run", **facts)
            allow(limit)
            outputs = CompiledFunction(function, folder)({"x": x})
            found = {key: proxy.cpu() for key, proxy in outputs.items()}
    except PycompilerError as problem:
        tell(problem=str(problem).splitlines()[0], compile=round(seconds() - began, 1))
        return
    finally:
        board.close()
    error = largest_difference(found, wanted)
    tell(error=error, matches=bool(error <= min(NETWORKS[mode], CLOSE)), **facts)


def measured(number: int, given: argparse.Namespace) -> dict[str, Any]:
    """Measure a layer of the draw in a process of its own; a record of what came of it."""
    code = [sys.executable, __file__, "--one", str(number)]
    for option in ("seed", "mode", "device", "limit"):
        code += [f"--{option}", str(getattr(given, option))]
    said = subprocess.run(code, stdout=subprocess.PIPE, text=True, check=False)
    lines = said.stdout.splitlines()
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    phase = found.pop("phase", None)
    if said.returncode == -signal.SIGXCPU:
        found["problem"] = f"the {phase} takes more than {given.limit:g} s of CPU time"
    elif said.returncode:
        found["problem"] = f"the process ended with {said.returncode} (phase: {phase})"
    return found


def line(found: dict[str, Any]) -> str:
    """Return a record as words."""
    words = []
    if "problem" in found:
        words.append(found["problem"])
    if "error" in found:
        words.append(f"error {found['error']:.1e}")
    if "cycles" in found:
        words.append(f"{found['cycles']} cycles, {found['factor']} bounds")
    if "compile" in found:
        words.append(f"compiled in {found['compile']:.0f} s of CPU time")
    return ("" if found.get("matches") else "NO MATCH, ") + ", ".join(words)


def recorded(path: Path | None) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the records of a file by seed, mode, device and number; a line cut short is none."""
    known = {}
    for text in path.read_text().splitlines() if path is not None and path.exists() else []:
        try:
            entry = json.loads(text)
        except ValueError:
            continue
        known[entry["seed"], entry["mode"], entry["device"], entry["number"]] = entry
    return known


def main() -> int:
    """Measure the drawn layers; the exit code is 1 if one of them does not match."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="first", type=int, default=0, help="first layer, from 0 on")
    parser.add_argument("--count", type=int, default=DRAWN)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=sorted(NETWORKS), default="mixed")
    parser.add_argument("--part", default="0/1", metavar="PART/PARTS")
    parser.add_argument("--device", default="emu2")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS")
    parser.add_argument("--record", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="print the sizes only")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        *_, sizes = drawn(given.one + 1, given.seed)
        measure(sizes, given.mode, given.device, given.limit)
        return 0
    part, parts = map(int, given.part.split("/"))
    layers = list(enumerate(drawn(max(DRAWN, given.first + given.count), given.seed)))
    layers = layers[given.first : given.first + given.count][part::parts]
    print(f"seed {given.seed}, {given.mode}", flush=True)
    if given.list:
        print("\n".join(f"{number}: {sizes}" for number, sizes in layers))
        return 0
    known, good = recorded(given.record), 0
    for number, sizes in layers:
        found = known.get((given.seed, given.mode, given.device, number))
        again = " (from the record)" if found is not None else ""
        if found is None:
            found = measured(number, given)
            entry = {"seed": given.seed, "mode": given.mode, "device": given.device}
            entry |= {"number": number, "layer": str(sizes), **found}
            if given.record is not None:
                with given.record.open("a") as record:
                    record.write(json.dumps(entry) + "\n")
        good += bool(found.get("matches"))
        print(f"{number}: {sizes}: {line(found)}{again}", flush=True)
    print(f"{good} of {len(layers)} layers compile and match")
    return good != len(layers)


if __name__ == "__main__":
    raise SystemExit(main())
