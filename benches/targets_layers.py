"""Compares layers of transformers with their bound: rows for `make bench`.

Values are cycles of the cycle model, with `scheduler: spill_opt`; nothing runs on the emulator. The
bound and the shares of the cycles are those of ``report.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pfvm.optimise import optimise
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request
from pycompiler.summary.table import percent

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A module, the shape of its input, and the most bounds that its cycles may be in `mixed`."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    most: float


def encoder(width: int, heads: int, batch: int, tokens: int, most: float) -> Case:
    """Return an encoder layer whose inner width is four times the width."""

    def make() -> nn.Module:
        return nn.TransformerEncoderLayer(
            width, heads, 4 * width, batch_first=True, norm_first=True
        )

    name = f"encoder layer {width}/{heads}/{4 * width}, {batch}x{tokens} tokens"
    return Case(name, make, (batch, tokens, width), most)


def perceptron() -> nn.Module:
    """Return an MLP 256-512-256 with a norm."""
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256), nn.LayerNorm(256))


def with_biases(module: nn.Module) -> nn.Module:
    """Return the module for inference, with biases that are not zero.

    Libraries begin with biases of zero, which would make another program.
    """
    module.eval()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
    return module


CASES = (
    encoder(256, 4, 16, 64, 8.0),
    encoder(768, 12, 4, 256, 6.0),
    encoder(768, 12, 2, 197, 12.0),
    encoder(512, 8, 4, 128, 8.0),
    encoder(384, 6, 8, 49, 15.0),
    encoder(192, 3, 2, 65, 25.0),
    Case("MLP 256-512-256 with LayerNorm, 64 rows", perceptron, (64, 256), 5.0),
)


def rows(machine: str = "mncore2") -> Iterator[Row]:
    """Yield a row for every case and mode; only those in `mixed` have a target."""
    for case in CASES:
        for mode in ("mixed", "float"):
            yield measured(case, mode, machine)


def measured(case: Case, mode: str, machine: str) -> Row:
    """Compile a case; a diagnostic makes a row without a value."""
    torch.manual_seed(0)
    module, inputs = with_biases(case.make()), {"x": torch.randn(case.shape)}
    most = case.most if mode == "mixed" else None
    return compiled_row(f"{case.name}, {mode}", module, inputs, mode, most, machine)


def report_of(
    module: nn.Module, inputs: dict[str, torch.Tensor], mode: str, machine: str
) -> dict[str, Any] | str:
    """Compile a module, or say why that is not possible. Its inputs have the names of parameters.

    A module with one input takes ``x``. Of several results the first counts.
    """

    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        found = module(given["x"]) if "x" in given else module(**given)
        return {"y": found if isinstance(found, torch.Tensor) else found[0]}

    options = {"float_dtype": mode, "strict": True, "scheduler": "spill_opt"}
    report = Report(machine, options)
    model = optimise(export(function, inputs))
    try:
        compile_onnx(Request(model, load_target(machine), parse_options(options), report))
    except PycompilerError as problem:
        return str(problem).splitlines()[0]
    return report.data


def compiled_row(
    name: str,
    module: nn.Module,
    inputs: dict[str, torch.Tensor],
    mode: str,
    most: float | None,
    machine: str,
) -> Row:
    """Return the row of a module: its cycles over its bound, at most ``most`` of them."""
    data = report_of(module, inputs, mode, machine)
    if isinstance(data, str):
        return {"name": f"{name}: {data}", "value": None, "target": "", "met": False}
    bound = data["bound"]["cycles"]
    ratio = data["cycles"] / bound
    shares = ", ".join(f"{kind} {percent(own)}" for kind, own in data["cycle_shares"].items())
    return {
        "name": name,
        "value": data["cycles"],
        "unit": f"cycles ({shares})",
        "bound": bound,
        "ratio": ratio,
        "target": "" if most is None else f"at most {most:g}",
        "met": most is None or ratio <= most,
    }


if __name__ == "__main__":
    for row in rows():
        found = (
            ""
            if row["value"] is None
            else f"{row['value']} {row['unit']}, {row['ratio']:.1f} bounds"
        )
        print(f"{row['name']}: {found} {row['target']}", flush=True)
