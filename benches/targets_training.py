"""Trains a classifier of digits for one epoch: rows for `make bench`.

The script is the one of the tests, with all its pictures, on two threads.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from targets_layers import Row
from torch import nn

from pycompiler.mlsdk import Context, MNCoreSGD, MNDevice

SCRIPTS = Path(__file__).parents[1] / "examples/mlsdk"
SCRIPT = SCRIPTS / "mnist.py"
THREADS = "2"
#: Seconds of a step and of an epoch; the accuracy after one.
STEP, EPOCH, ACCURACY = 0.12, 150.0, 0.94

#: How far the loss of the GPT may lie from torch's after its steps, relative to it.
GPT_STEPS, GPT_ERROR = 200, {"float": 0.02, "mixed": 0.05}

#: Cycles of a training step of ResNet-20 over its bound.
RESNET = 8.0

_LOSS = re.compile(r"loss ([\d.]+)")
_EPOCH = re.compile(r"epoch 1: (\d+) steps, mean loss [\d.]+, ([\d.]+) s")
_ACCURACY = re.compile(r"accuracy ([\d.]+)")


def rows(pictures: int = 60000, test_pictures: int = 10000) -> Iterator[Row]:
    """Yield cycles over the bound of a step, and times and accuracy of an epoch."""
    environment = {**os.environ, "RAYON_NUM_THREADS": THREADS}
    counts = ["--pictures", str(pictures), "--test-pictures", str(test_pictures)]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pycompiler.mlsdk", str(SCRIPT), "--outdir", folder]
        said = subprocess.run(
            [*command, *counts], env=environment, capture_output=True, text=True, check=True
        )
        report = json.loads((Path(folder) / "train" / "report.json").read_text())
    found, accuracy = _EPOCH.search(said.stdout), _ACCURACY.search(said.stdout)
    assert found is not None, said.stdout
    assert accuracy is not None, said.stdout
    steps, seconds, right = int(found[1]), float(found[2]), float(accuracy[1])
    cycles, bound = report["cycles"], report["bound"]["cycles"]
    yield _row("training step of 1024-256-10, batch 64", cycles, "cycles", bound, None)
    yield _row(f"such a step, {THREADS} threads", seconds / steps, "s", STEP, 1.0)
    yield _row(f"an epoch of {steps} steps", seconds, "s", EPOCH, 1.0)
    row = _row("accuracy after it", right, "of 1", ACCURACY, None)
    yield {**row, "target": "at least 1", "met": right >= ACCURACY}
    yield from convolution_rows()


def convolution_rows() -> Iterator[Row]:
    """Yield cycles over the bound of a training step of one convolution with its norm and ReLU."""
    torch.manual_seed(0)
    convolution = nn.Conv2d(16, 16, 3, padding=1, bias=False)
    model = nn.Sequential(convolution, nn.BatchNorm2d(16), nn.ReLU()).train()
    optimizer = MNCoreSGD(model.parameters(), 0.05, 0.9, 1e-4)

    def train(batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        optimizer.zero_grad()
        loss = (model(batch["x"]).mean((2, 3)) * batch["w"]).sum()
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    context = Context(MNDevice("emu2"))
    context.registry.register("model0", model)
    context.registry.register("optimizer0", optimizer)
    sample = {"x": torch.randn(32, 16, 32, 32), "w": torch.randn(32, 16)}
    with tempfile.TemporaryDirectory() as folder:
        context.compile(train, sample, folder, options={"float_dtype": "mixed"})
        report = json.loads((Path(folder) / "report.json").read_text())
    name = "training step of Conv, BatchNorm, ReLU: 16 channels of 32x32, batch 32, `mixed`"
    yield _row(name, report["cycles"], "cycles", report["bound"]["cycles"], None)


def gpt_rows(steps: int = GPT_STEPS, *more: str) -> Iterator[Row]:
    """Yield the difference of the last losses of a GPT from torch's, for each float dtype.

    ``more`` are arguments of the script, such as sizes.
    """
    given = ("--steps", str(steps), *more)
    wanted = _last_loss(*given, "--plain")
    for kind, most in GPT_ERROR.items():
        name = f"loss of a GPT after {steps} steps, `{kind}`, difference from torch"
        with tempfile.TemporaryDirectory() as folder:
            found = _last_loss(*given, "--float_dtype", kind, "--outdir", folder)
        if found is None or wanted is None:
            yield _failed(name)
        else:
            yield _row(name, abs(found - wanted) / wanted, "of torch's", most, 1.0)


def _last_loss(*arguments: str) -> float | None:
    command = [sys.executable, "-m", "pycompiler.mlsdk", str(SCRIPTS / "gpt.py"), *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    losses = _LOSS.findall(said.stdout)
    return float(losses[-1]) if said.returncode == 0 and losses else None


def resnet_rows(blocks: int = 3, batch: int = 32) -> Iterator[Row]:
    """Yield cycles over the bound of a training step of ResNet-20, in `mixed`."""
    name = f"training step of ResNet-{2 + 6 * blocks}, batch {batch}, `mixed`"
    sizes = ["--blocks", str(blocks), "--batch", str(batch), "--steps", "0"]
    script = [str(SCRIPTS / "resnet20.py"), *sizes, "--float_dtype", "mixed"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pycompiler.mlsdk", *script, "--outdir", folder]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        if said.returncode:
            yield _failed(name)
            return
        report = json.loads((Path(folder) / "report.json").read_text())
    yield _row(name, report["cycles"], "cycles", report["bound"]["cycles"], RESNET)


def _failed(name: str) -> Row:
    return {"name": f"{name}: it failed", "value": None, "target": "", "met": False}


def _row(name: str, value: float, unit: str, bound: float, most: float | None) -> Row:
    ratio = value / bound
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "bound": bound,
        "ratio": ratio,
        "target": "" if most is None else f"at most {most:g}",
        "met": most is None or ratio <= most,
    }
