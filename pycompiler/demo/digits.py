"""Classifiers of handwritten digits: trained by torch in seconds, compiled, emulated, compared.

The data are scikit-learn's: 1797 pictures of 8 by 8 pixels, which come with the package.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import nn

from ..errors import error
from ..mlsdk import Context, MNDevice
from ..report.codegen_dir import REPORT, read_file
from ..runtime.executable import DeviceFunction
from ..summary.table import cost_lines, summary_table, totals

_TESTED = 360  # pictures that training does not see
_BRIGHTEST = 16.0

#: By how much a probability may differ from torch's, by ``float_dtype``.
BOUNDS = {"float": 1e-4, "mixed": 5e-2}


@dataclass(frozen=True)
class _Network:
    """A network and how it is trained.

    ``shape`` is that of a picture, ``pictures`` the number in one call, ``steps`` the number of
    training steps.
    """

    name: str
    title: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    pictures: int
    steps: int


def _mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def _cnn() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 10)),
    )


_NETWORKS = (
    _Network("mlp", "MLP 64-128-64-10", _mlp, (64,), _TESTED, 150),
    _Network("cnn", "CNN of two convolutions", _cnn, (1, 8, 8), 60, 60),
)


@dataclass(frozen=True)
class Digits:
    """A trained classifier with its data: pictures with pixels from 0 to 1, and the digits shown.

    ``pictures`` is the number of pictures in one call.
    """

    name: str
    title: str
    model: nn.Module
    train: torch.Tensor
    test: torch.Tensor
    shown: torch.Tensor
    pictures: int

    def accuracy(self, probabilities: torch.Tensor) -> float:
        """Return the share of test pictures whose likeliest digit is the one shown."""
        return float((probabilities.argmax(-1) == self.shown).float().mean())


def trained() -> Iterator[Digits]:
    """Train an MLP and a CNN, the same ones every time. P0008 without scikit-learn."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as problem:
        raise error("P0008", package="scikit-learn", extra="demo") from problem
    pixels, classes = load_digits(return_X_y=True)
    x = torch.from_numpy(pixels).float() / _BRIGHTEST
    y = torch.from_numpy(classes).long()
    for network in _NETWORKS:
        torch.manual_seed(0)
        order = torch.randperm(len(x))
        pictures, shown = x[order].reshape(len(x), *network.shape), y[order]
        model = network.make()
        seen, test = pictures[:-_TESTED], pictures[-_TESTED:]
        _fit(model, seen, shown[:-_TESTED], network.steps)
        yield Digits(
            network.name,
            network.title,
            model.eval(),
            seen,
            test,
            shown[-_TESTED:],
            network.pictures,
        )


def _fit(model: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more are slower on layers this small, by far on a busy machine
    try:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    finally:
        torch.set_num_threads(threads)


def run_digits(digits: Digits, float_dtype: str, out: Path, device: str, console: Console) -> bool:
    """Compile and emulate a classifier and print the result; whether it agrees with torch.

    It is compiled for pictures of the training set and called with those of the test set.
    """
    context = Context(MNDevice(device))

    def classify(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"probabilities": torch.softmax(digits.model(inputs["pixels"]), -1)}

    compiled = context.compile(
        classify,
        {"pixels": digits.train[: digits.pictures]},
        out,
        options={"float_dtype": float_dtype, "strict": True},
        quiet=True,
    )
    parts, seconds = [], 0.0
    for pixels in torch.split(digits.test, digits.pictures):
        parts.append(compiled({"pixels": pixels})["probabilities"].cpu())
        if isinstance(compiled.function, DeviceFunction):
            seconds += compiled.function.emulation_seconds
    found = torch.cat(parts)
    with torch.no_grad():
        wanted = classify({"pixels": digits.test})["probabilities"]
    difference = float((found - wanted).abs().max())
    facts = json.loads(read_file(out, REPORT))
    title = f"digits, {digits.title} with softmax, {digits.pictures} pictures, {float_dtype}"
    console.print(summary_table(facts, title))
    console.print("\n".join([totals(facts), *cost_lines(facts)]), soft_wrap=True)
    if isinstance(compiled.function, DeviceFunction):
        console.print(f"emulated {len(found)} pictures in {seconds:.3f} s")
    console.print(
        f"accuracy: {100 * digits.accuracy(found):.2f} % on {device}, "
        f"{100 * digits.accuracy(wanted):.2f} % on torch; "
        f"largest difference of a probability: {difference:.2g}\n",
        soft_wrap=True,
    )
    return difference < BOUNDS[float_dtype]
