"""torch modules given directly to compile()."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context
from torch import nn

from pycompiler.errors import PycompilerError


class Two(nn.Module):
    def forward(self, x, y=None):  # type: ignore[no-untyped-def]
        return x * 2.0, x + (1.0 if y is None else y)


class OverDict(nn.Module):
    def forward(self, d):  # type: ignore[no-untyped-def]
        return {"double": d["x"] * 2.0}


class OverMapping(nn.Module):
    def forward(self, d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sum": d["a"] + d["b"]}


X = torch.arange(8, dtype=torch.float32).reshape(2, 4)


@pytest.mark.parametrize(
    ("module", "inputs", "wanted"),
    [
        (nn.Linear(4, 3), {"input": X}, {"out"}),
        (nn.Linear(4, 3), {"x": X}, {"out"}),
        (nn.Sequential(nn.Linear(4, 4), nn.ReLU()), {"x": X}, {"out"}),
        (Two(), {"y": X, "x": X + 1}, {"out0", "out1"}),
        (Two(), {"x": X}, {"out0", "out1"}),
        (OverDict(), {"x": X}, {"double"}),
        (OverMapping(), {"a": X, "b": X}, {"sum"}),
    ],
)
def test_modules_are_called_naturally(
    tmp_path: Path, module: nn.Module, inputs: dict[str, torch.Tensor], wanted: set[str]
) -> None:
    compiled = context("emu2:mini").compile(module, inputs, tmp_path / "out")
    found = {name: output.cpu() for name, output in compiled(inputs).items()}
    assert set(found) == wanted
    if isinstance(module, OverDict | OverMapping):
        expected = module(inputs)
    elif isinstance(module, Two):
        results = module(**inputs)
        expected = {f"out{number}": result for number, result in enumerate(results)}
    else:
        expected = {"out": module(X)}
    for name, tensor in expected.items():
        assert torch.allclose(found[name], tensor, atol=1e-5)


@pytest.mark.parametrize(
    ("module", "inputs", "reason"),
    [
        (Two(), {"a": X}, "has no attribute|unsupported operand|got them as a dict"),
        (nn.Bilinear(4, 4, 2), {"x": X, "y": X}, "its forward takes `input1`, `input2`"),
        (nn.Bilinear(4, 4, 2), {"input1": X}, "its forward takes `input1`, `input2`"),
    ],
)
def test_others_are_told_how_to_wrap_them(
    tmp_path: Path, module: nn.Module, inputs: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PycompilerError, match=reason) as caught:
        context("pfvm:cpu").compile(module, inputs, tmp_path / "out")
    assert caught.value.code == "P0114"
    given = ", ".join(f'd["{name}"]' for name in inputs)
    assert f'lambda d: {{"out": module({given})}}' in caught.value.help
