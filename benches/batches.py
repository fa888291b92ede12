"""Counts the cycles of published models by batch: twice a batch should cost at most 2.05 times.

Each model is compiled for batches 1, 2, 4, ..., each in a process of its own, in ``mixed``. The
programs are not run. The last column marks batches that cost more than 2.05 times half of them.

    python benches/batches.py
    python benches/batches.py resnet50 bert_base --most 64
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from compile_time import Inputs, bert_base, cpu_seconds, gpt2_small, of_pictures
from torch import nn

#: What twice a batch may cost.
MOST = 2.05
_Make = Callable[[int], tuple[nn.Module, Inputs]]


def _texts(make: Callable[[], tuple[nn.Module, Inputs]]) -> _Make:
    def batch(count: int) -> tuple[nn.Module, Inputs]:
        module, inputs = make()
        return module, {name: value.repeat(count, 1) for name, value in inputs.items()}

    return batch


def _pictures(name: str) -> _Make:
    return lambda count: of_pictures(name, count)()


#: The models by name.
MODELS: dict[str, _Make] = {
    "resnet50": _pictures("resnet50"),
    "efficientnet_b0": _pictures("efficientnet_b0"),
    "vit_b_16": _pictures("vit_b_16"),
    "bert_base": _texts(bert_base),
    "gpt2_small": _texts(gpt2_small),
}


def compile_here(name: str, batch: int) -> dict[str, float]:
    """Compile a model in this process; return its cycles, its parts and the CPU seconds."""
    from pycompiler.mlsdk import Context, MNDevice

    module, inputs = MODELS[name](batch)
    module.eval()

    def call(given: Inputs) -> Inputs:
        found = module(*given.values()) if "x" in given else module(**given)
        return {"y": found if isinstance(found, torch.Tensor) else found[0]}

    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        began = cpu_seconds()
        options = {"float_dtype": "mixed"}
        Context(MNDevice("emu2")).compile(call, inputs, Path(folder) / "out", options=options)
        seconds = cpu_seconds() - began
        report = json.loads((Path(folder) / "out/report.json").read_text())
    parts = next(row["batch_parts"] for row in report["passes"] if "batch_parts" in row)
    return {"cycles": report["cycles"], "parts": parts, "seconds": seconds}


def main() -> None:
    """Print a row for each batch of each model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--most", type=int, default=128, help="the largest batch")
    parser.add_argument("--here", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.models or list(MODELS)
    if unknown := [name for name in names if name not in MODELS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if given.here:
        print(json.dumps(compile_here(names[0], given.here)))
        return
    for name in names:
        batch, before = 1, None
        while batch <= given.most:
            command = [sys.executable, __file__, name, "--here", str(batch)]
            found = subprocess.run(command, capture_output=True, text=True)
            if found.returncode:
                last = (found.stderr.strip().splitlines() or ["no message"])[-1]
                print(f"{name:16} {batch:4}: {last}", flush=True)
                break
            row = json.loads(found.stdout.splitlines()[-1])
            ratio = row["cycles"] / before if before else None
            text = "" if ratio is None else f"{ratio:5.2f} times half of it"
            text += " TOO DEAR" if ratio is not None and ratio > MOST else ""
            parts = f"{row['parts']} part{'s' * (row['parts'] > 1)}"
            print(
                f"{name:16} {batch:4}: {row['cycles']:12,} cycles, {parts:8} "
                f"{row['seconds']:6.1f} CPU s {text}",
                flush=True,
            )
            batch, before = 2 * batch, row["cycles"]


if __name__ == "__main__":
    main()
