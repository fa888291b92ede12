"""A classifier of handwritten digits: trained by torch in seconds, compiled, emulated, compared.

The data are scikit-learn's: 1797 pictures of 8 by 8 pixels, which come with the package.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import nn

from ..errors import error
from ..mlsdk import Context, MNDevice
from ..report.codegen_dir import REPORT, read_file
from ..report.summary import summary_table, totals
from ..runtime.executable import DeviceFunction

_TESTED = 360  # pictures that training does not see
_STEPS = 150
_BRIGHTEST = 16.0

#: By how much a probability may differ from torch's, by ``float_dtype``.
BOUNDS = {"float": 1e-4, "mixed": 5e-2}


@dataclass(frozen=True)
class Digits:
    """A trained classifier with its data: rows of 64 pixels from 0 to 1, and the digits shown."""

    model: nn.Module
    train: torch.Tensor
    test: torch.Tensor
    shown: torch.Tensor

    def accuracy(self, probabilities: torch.Tensor) -> float:
        """Return the share of test pictures whose likeliest digit is the one shown."""
        return float((probabilities.argmax(-1) == self.shown).float().mean())


def train() -> Digits:
    """Train an MLP 64-128-64-10, the same one every time. P0008 without scikit-learn."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as problem:
        raise error("P0008", package="scikit-learn", extra="demo") from problem
    pixels, classes = load_digits(return_X_y=True)
    x = torch.from_numpy(pixels).float() / _BRIGHTEST
    y = torch.from_numpy(classes).long()
    torch.manual_seed(0)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more are slower on layers this small, by far on a busy machine
    try:
        _fit(model, x[:-_TESTED], y[:-_TESTED])
    finally:
        torch.set_num_threads(threads)
    return Digits(model.eval(), x[:-_TESTED], x[-_TESTED:], y[-_TESTED:])


def _fit(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def run_digits(digits: Digits, float_dtype: str, out: Path, device: str, console: Console) -> bool:
    """Compile and emulate the classifier and print what came of it; whether it agrees with torch.

    It is compiled for pictures of the training set and called with those of the test set.
    """
    context = Context(MNDevice(device))

    def classify(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"probabilities": torch.softmax(digits.model(inputs["pixels"]), -1)}

    compiled = context.compile(
        classify,
        {"pixels": digits.train[:_TESTED]},
        out,
        options={"float_dtype": float_dtype, "strict": True},
        quiet=True,
    )
    given = {"pixels": digits.test}
    found = compiled(given)["probabilities"].cpu()
    with torch.no_grad():
        wanted = classify(given)["probabilities"]
    difference = float((found - wanted).abs().max())
    facts = json.loads(read_file(out, REPORT))
    title = f"digits, MLP 64-128-64-10 with softmax, {_TESTED} pictures, {float_dtype}"
    console.print(summary_table(facts, title))
    console.print(totals(facts), soft_wrap=True)
    if isinstance(compiled.function, DeviceFunction):
        console.print(f"emulated in {compiled.function.emulation_seconds:.3f} s")
    console.print(
        f"accuracy: {100 * digits.accuracy(found):.2f} % on {device}, "
        f"{100 * digits.accuracy(wanted):.2f} % on torch; "
        f"largest difference of a probability: {difference:.2g}\n",
        soft_wrap=True,
    )
    return difference < BOUNDS[float_dtype]
