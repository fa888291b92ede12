"""The host's sessions: what runs where onnxruntime has no kernel, and what is copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import context
from onnx import numpy_helper
from torch import Tensor, linalg
from torch.nn import functional

from pycompiler.pfvm.session import HostSession

_DOUBLE, _BF16 = torch.float64, torch.bfloat16


def _way_back(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Any]:
    def made(x: Tensor) -> Any:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(function(x).float().cos().sum(), x)[0]

    return made


def _filtered(x: Tensor) -> Tensor:
    return functional.conv2d(x, torch.linspace(-1, 1, 18, dtype=x.dtype).reshape(1, 2, 3, 3))


#: Functions of pictures (1, 2, 5, 6), with an element type that onnxruntime does not compute in.
FUNCTIONS: Mapping[str, tuple[Callable[[Tensor], Any], torch.dtype]] = {
    "cropped before": (lambda x: _filtered(functional.pad(x, (-1, 2, 1, -1))), _DOUBLE),
    "cropped far": (lambda x: functional.pad(_filtered(x), (3, -2, -2, 4), value=0.1), _DOUBLE),
    "beside a call of torch": (lambda x: (_filtered(x), linalg.svdvals(x)), _DOUBLE),
    "behind a call of torch": (lambda x: _filtered(x * linalg.svdvals(x)[..., :1, None]), _DOUBLE),
    "resized": (_way_back(lambda x: functional.interpolate(x, (7, 4), mode="bilinear")), _BF16),
    "mode": (lambda x: torch.mode((x * 2).round(), -1)[0], _BF16),
    "gathered": (lambda x: x.gather(-1, torch.tensor([[[[5, 0]]]])), _BF16),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_types_without_a_kernel(name: str, tmp_path: Path) -> None:
    function, dtype = FUNCTIONS[name]

    def run(d: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found = function(d["x"])
        several = (found,) if isinstance(found, Tensor) else found
        return {f"y{number}": one for number, one in enumerate(several)}

    draw = torch.Generator().manual_seed(8)
    inputs = {"x": torch.randn(1, 2, 5, 6, generator=draw, dtype=_DOUBLE).to(dtype)}
    found = context("pfvm:cpu").compile(run, inputs, tmp_path, quiet=True)(inputs)
    for key, value in run(inputs).items():
        close = {"rtol": 2e-2, "atol": 2e-2} if dtype == _BF16 else {"rtol": 1e-9, "atol": 1e-9}
        torch.testing.assert_close(found[key].cpu(), value, **close)


def test_types_are_inferred_without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """onnx copies a model four times to infer its types."""
    weights = np.ones((300, 300), np.float32)
    text = """<ir_version: 8, opset_import: ["" : 18, "pycompiler.torch" : 1]>
        g (float[1,2,300] x) => (float[1,2,300] y)
        { m = MatMul(x, w) y = MaxPool<kernel_shape=[1]>(m) }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    sizes, infer = [], onnx.shape_inference.infer_shapes

    def watched(given: onnx.ModelProto, *facts: Any, **named: Any) -> onnx.ModelProto:
        sizes.append(given.ByteSize())
        return infer(given, *facts, **named)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", watched)
    x = np.full((1, 2, 300), np.nan, np.float32)
    found = HostSession(model.SerializeToString(), "a model").run({"x": x})["y"]
    assert np.isnan(found).all()
    assert sizes
    assert max(sizes) < weights.nbytes
