"""The host's sessions: what runs where onnxruntime has no kernel, and what is copied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import context, sampled
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


def _sampled(x: Tensor) -> Tensor:
    grid = torch.linspace(-1, 1, 12, dtype=x.dtype).reshape(1, 2, 3, 2)
    return functional.grid_sample(x, grid, align_corners=False)


#: Functions of pictures (1, 2, 5, 6), with an element type that onnxruntime does not compute in.
FUNCTIONS: Mapping[str, tuple[Callable[[Tensor], Any], torch.dtype]] = {
    "cropped before": (lambda x: _filtered(functional.pad(x, (-1, 2, 1, -1))), _DOUBLE),
    "cropped far": (lambda x: functional.pad(_filtered(x), (3, -2, -2, 4), value=0.1), _DOUBLE),
    "beside a call of torch": (lambda x: (_filtered(x), linalg.svdvals(x)), _DOUBLE),
    "beside other operators": (lambda x: (_filtered(x), _sampled(x)), _DOUBLE),
    "beside other types": (lambda x: (_sampled(x), _sampled(x.bfloat16()) * 0), _DOUBLE),
    "behind a call of torch": (lambda x: _filtered(x * linalg.svdvals(x)[..., :1, None]), _DOUBLE),
    "resized": (_way_back(lambda x: functional.interpolate(x, (7, 4), mode="bilinear")), _BF16),
    "mode": (lambda x: torch.mode((x * 2).round(), -1)[0], _BF16),
    "gathered": (lambda x: x.gather(-1, torch.tensor([[[[5, 0]]]])), _BF16),
}


@pytest.mark.parametrize("name", sampled([*FUNCTIONS]))
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


#: Operators on a matrix of integers with axes 1, and numpy's function of the same.
WHOLE: Mapping[str, Callable[[Any], Any]] = {
    "ReduceSum<keepdims=0>(x, a)": lambda x: x.sum(1, dtype=x.dtype),
    "ReduceSum(x)": lambda x: x.sum(dtype=x.dtype).reshape(1, 1),
    "ReduceProd<keepdims=0>(x, a)": lambda x: x.prod(1, dtype=x.dtype),
    "ReduceSumSquare(x, a)": lambda x: (x * x).sum(1, keepdims=True, dtype=x.dtype),
    "ReduceL1<keepdims=0>(x, a)": lambda x: abs(x).sum(1, dtype=x.dtype),
    'Einsum<equation="ij->j">(x)': lambda x: x.sum(0, dtype=x.dtype),
    "Gemm<transB=1, alpha=3.0, beta=2.0>(x, x, s)": lambda x: 3 * (x @ x.T) + 2 * x[:, :1],
}


@pytest.mark.parametrize("kind", ["int64", "int32"])
@pytest.mark.parametrize("call", WHOLE)
def test_sums_of_integers_are_exact(call: str, kind: str) -> None:
    """onnxruntime sums them as reals, and keeps what exceeds the type at its end."""
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g ({kind}[2,4] x, {kind}[2,1] s) =>
        ({kind}[{"n," * (WHOLE[call](np.ones((2, 4), kind)).ndim - 1)}m] y) <int64[1] a = {{1}}>
        {{ y = {call} }}"""
    info = np.iinfo(kind)
    x = np.array([[info.max, 7, -(2**31) + 1, info.max - 9], [3, 5, info.min, 1]], kind)
    model = onnx.parser.parse_model(text)
    found = HostSession(model, "model").run({"x": x, "s": x[:, :1]})["y"]
    wanted = WHOLE[call](x)
    assert (found.dtype, found.tolist()) == (x.dtype, wanted.tolist())


def test_only_what_onnxruntime_mistakes_runs_in_the_evaluator() -> None:
    """A power of integers is exact, and other nodes before, beside and behind it run as before."""
    text = """<ir_version: 8, opset_import: ["" : 18]> g (int64[2] x, float[2] y, bool up) =>
        (int64[2] z, float[2] s, int64[2] w) {
        one = Constant<value_int=1>() more = Add(x, one) power = Pow(more, x) z = Sub(power, one)
        s = Softmax(y)
        w = If(up) <then_branch = a () => (int64[2] u) { u = Pow(x, one) },
                    else_branch = b () => (int64[2] v) { v = Neg(x) }> }"""
    session = HostSession(onnx.parser.parse_model(text), "model")
    assert session.runtime == "onnx.reference and onnxruntime"
    x, y = np.array([14, 15]), np.array([0.5, 1.5], np.float32)
    found = session.run({"x": x, "y": y, "up": np.array(False)})
    assert found["z"].tolist() == [15**14 - 1, 16**15 - 1]
    assert found["w"].tolist() == [-14, -15]
    assert np.allclose(found["s"], np.exp(y) / np.exp(y).sum())
    alone = onnx.parser.parse_model(text)
    del alone.graph.node[:4], alone.graph.node[1:], alone.graph.output[0], alone.graph.output[1]
    assert HostSession(alone, "model").runtime == "onnxruntime"


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
    found = HostSession(model, "a model").run({"x": x})["y"]
    assert np.isnan(found).all()
    assert sizes
    assert max(sizes) < weights.nbytes
