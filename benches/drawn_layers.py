"""Compiles and runs encoder layers of drawn sizes: ``python benches/drawn_layers.py``.

Widths are multiples of the heads from 64 to 1,024, lengths go from 7 to 512. Each layer is compiled
with ``scheduler: spill_opt``, runs on the emulator and is compared with torch. A line tells the
error, the cycles and the factor over the bound, or why there are none. The last line is the share
of layers that compile and match. ``--part 0/2`` takes every second layer, so that two processes can
divide the work.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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


def measured(sizes: Sizes, mode: str, device: str) -> tuple[bool, str]:
    """Compile, run and compare a layer; return whether it matches, and a line."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        sizes.width, sizes.heads, 4 * sizes.width, batch_first=True, norm_first=True
    )
    layer = with_biases(layer)
    x = torch.randn(sizes.batch, sizes.length, sizes.width)
    with torch.no_grad():
        wanted = {"y": layer(x)}
    model = export(lambda given: {"y": layer(given["x"])}, {"x": torch.randn(x.shape)})
    target: Target = find_device(device).target
    board, began = Board(target), time.perf_counter()
    options = {"float_dtype": mode, "scheduler": "spill_opt", "strict": True}
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            function = build(lambda: model, device, board, options, folder)
            seconds = time.perf_counter() - began
            report = json.loads(read_file(folder, REPORT))
            outputs = CompiledFunction(function, folder)({"x": x})
            found = {key: proxy.cpu() for key, proxy in outputs.items()}
    except PycompilerError as problem:
        seconds = time.perf_counter() - began
        return False, f"{str(problem).splitlines()[0]}, after {seconds:.0f} s"
    finally:
        board.close()
    error = largest_difference(found, wanted)
    factor = report["bound"]["factor"]
    cycles = f"{report['cycles']} cycles, {factor} bounds"
    line = f"error {error:.1e}, {cycles}, compiled in {seconds:.0f} s"
    return error <= NETWORKS[mode], line


def main() -> int:
    """Measure the drawn layers; the exit code is 1 if one of them does not match."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=sorted(NETWORKS), default="mixed")
    parser.add_argument("--part", default="0/1", metavar="PART/PARTS")
    parser.add_argument("--device", default="emu2")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    print(f"seed {given.seed}, {given.mode}", flush=True)
    good = tried = 0
    for sizes in list(drawn(given.count, given.seed))[part::parts]:
        matched, line = measured(sizes, given.mode, given.device)
        good, tried = good + matched, tried + 1
        print(f"{sizes}: {'' if matched else 'NO MATCH, '}{line}", flush=True)
    print(f"{good} of {tried} layers compile and match")
    return good != tried


if __name__ == "__main__":
    raise SystemExit(main())
