"""Counts the cycles of drawn products, convolutions and attention that do not fit local memory.

Each row is one operator of drawn sizes, in ``mixed``, alone in its program: its cycles, their
factor over the bound, and the CPU seconds of the compile. The programs are not run.

    python benches/large_products.py
    python benches/large_products.py --seed 3 --count 10
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from compile_time import cpu_seconds
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from pycompiler.mlsdk import Context, MNDevice

_Call = Callable[..., torch.Tensor]


def drawn(rng: random.Random) -> tuple[str, _Call, list[torch.Tensor]]:
    """Return a name, a function, and its inputs."""

    def size(most: int) -> int:
        # Sizes are even in their logarithm, so that long and short axes meet.
        return round(most ** rng.uniform(0.45, 1))

    kind = rng.choice(["product", "batch of products", "linear", "convolution", "attention"])
    if kind in ("product", "linear"):
        rows, inner, columns = size(8000), size(8000), size(8000)
        shapes = [(rows, inner), (inner, columns)]
        if kind == "linear":
            layer = nn.Linear(inner, columns)
            return f"{kind} {rows} x {inner} -> {columns}", layer, [torch.randn(shapes[0])]
        return f"{kind} {shapes}", torch.matmul, [torch.randn(shape) for shape in shapes]
    if kind == "batch of products":
        count, rows, inner, columns = rng.randint(2, 48), size(1500), size(1500), size(1500)
        shapes = [(count, rows, inner), (count, inner, columns)]
        return f"{kind} {shapes}", torch.matmul, [torch.randn(shape) for shape in shapes]
    if kind == "convolution":
        count, channels, results = rng.randint(1, 32), size(400), size(400)
        pixels, kernel = rng.randint(30, 200), rng.choice([1, 3, 3, 5])
        convolution = nn.Conv2d(channels, results, kernel, padding=kernel // 2)
        shape = count, channels, pixels, pixels
        return f"{kind} {shape} -> {results}, {kernel}", convolution, [torch.randn(shape)]
    shape = rng.randint(1, 8), rng.randint(1, 16), rng.randint(300, 1800), rng.choice([32, 64, 80])
    return f"{kind} {shape}", scaled_dot_product_attention, [torch.randn(shape) for _ in range(3)]


def main() -> None:
    """Print a row for each drawn operator, and the median."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    given = parser.parse_args()
    rng, factors = random.Random(given.seed), []
    print(f"seed {given.seed}\n{'cycles':>12} {'factor':>7} {'CPU s':>6}")
    for _ in range(given.count):
        name, call, inputs = drawn(rng)
        keys = [f"x{number}" for number in range(len(inputs))]

        def step(
            values: dict[str, torch.Tensor], call: _Call = call, keys: list[str] = keys
        ) -> dict[str, torch.Tensor]:
            return {"y": call(*(values[key] for key in keys))}

        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            began, out = cpu_seconds(), Path(folder) / "out"
            options = {"float_dtype": "mixed"}
            named = dict(zip(keys, inputs, strict=True))
            Context(MNDevice("emu2")).compile(step, named, out, options=options)
            seconds = cpu_seconds() - began
            report = json.loads((out / "report.json").read_text())
        factor = report["bound"]["factor"]
        factors.append(factor or float("inf"))
        print(f"{report['cycles']:>12,} {factor or 'host':>7} {seconds:>6.1f}  {name}", flush=True)
    print(f"median {statistics.median(factors):.2f}, worst {max(factors):.2f} times the bound")


if __name__ == "__main__":
    main()
