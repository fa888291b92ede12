"""NaNs on the host runtime: functions of torch put them where eager torch does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from compiling import context, in_turns
from dynamo import compiled
from torch.nn import functional

from pycompiler.pfvm.session import HostSession

_X = torch.Tensor
CLASSES = torch.tensor([0, 1, 2, 3, 0])

FUNCTIONS: dict[str, Callable[[_X], Any]] = {
    "amax": lambda x: x.amax(-1),
    "amax of all": lambda x: x.amax(),
    "amin": lambda x: x.amin((0, 2), keepdim=True),
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(-1, keepdim=True),
    "argmax": lambda x: x.argmax(-1),
    "argmax of all": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(1, keepdim=True),
    "aminmax": lambda x: torch.aminmax(x, dim=-1),
    "norm": lambda x: torch.linalg.vector_norm(x, float("inf"), dim=-1),
    "pool1": lambda x: functional.max_pool1d(x, 2, padding=1),
    "pool2": lambda x: functional.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True),
    "pool3": lambda x: functional.max_pool3d(x[None], 2),
    "adaptive": lambda x: functional.adaptive_max_pool2d(x, (3, 4), return_indices=True),
    "adaptive1": lambda x: functional.adaptive_max_pool1d(x, 4, return_indices=True),
    "cummax": lambda x: x.cummax(-1),
    "cummin": lambda x: x.cummin(1),
    "median": lambda x: x.median(-1),
    "median of all": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(-1)[0],
    "kthvalue": lambda x: x.kthvalue(2, -1)[0],
    "sort": lambda x: x.sort(dim=-1, stable=True),
    "descending": lambda x: x.sort(dim=1, descending=True, stable=True),
    "topk": lambda x: x.topk(3, -1)[0],
    "smallest": lambda x: x.topk(2, 1, largest=False)[0],
    "sign": torch.sign,
    "searchsorted": lambda x: torch.searchsorted(torch.arange(-2, 3).to(x.dtype), x),
    "bucketize": lambda x: torch.bucketize(x, torch.arange(-2, 3).to(x.dtype), right=True),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "fmax": lambda x: torch.fmax(x, x.flip(0)),
    "scatter": lambda x: x.scatter_reduce(-1, torch.zeros_like(x).long(), x.flip(0), "amin"),
    "log_softmax": lambda x: x.log_softmax(1),
    "cross entropy": lambda x: functional.cross_entropy(x[0], CLASSES, reduction="none"),
    "mean loss": lambda x: functional.cross_entropy(x[0], CLASSES),
}


def _drawn(seed: int, dtype: torch.dtype) -> _X:
    """Return numbers with NaNs and infinities at random places, and rows of NaNs alone."""
    made = torch.Generator().manual_seed(seed)
    x = torch.randn(3, 5, 6, generator=made)
    ends = torch.rand(x.shape, generator=made)
    x[ends < 0.05], x[ends > 0.95] = -torch.inf, torch.inf
    x[torch.rand(x.shape, generator=made) < 0.1] = torch.nan
    x[1, 2] = x[2, :, 3] = torch.nan
    return x.to(dtype)


def _all(functions: Mapping[str, Callable[[_X], Any]], d: Mapping[str, _X]) -> dict[str, _X]:
    found = {}
    for name, function in functions.items():
        result = function(d["x"])
        several = (result,) if isinstance(result, torch.Tensor) else tuple(result)
        found |= {f"{name} {place}": one for place, one in enumerate(several)}
    return found


DTYPES = [torch.float32, torch.float64, torch.float16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_nans_are_where_torch_puts_them(dtype: torch.dtype, tmp_path: Path) -> None:
    """In `make test` the types take turns; the sorts of onnxruntime differ with the type."""
    functions = in_turns(FUNCTIONS, DTYPES.index(dtype), len(DTYPES), always=["topk"])
    run = partial(_all, functions)
    made = context("pfvm:cpu").compile(run, {"x": _drawn(0, dtype)}, tmp_path, quiet=True)
    for seed in range(20):
        print(f"seed {seed}")
        given = {"x": _drawn(seed, dtype)}
        found = made(given)
        for key, wanted in run(given).items():
            close = {"rtol": 2e-3, "atol": 1e-3} if dtype == torch.float16 else {}
            torch.testing.assert_close(
                found[key].cpu(),
                wanted,
                equal_nan=True,
                msg=lambda text, k=key: f"{k}: {text}",
                **close,
            )


def test_other_models_stay_as_onnxruntime_has_them() -> None:
    """Only models of torch's functions have forms for NaNs."""
    text = """<ir_version: 8, opset_import: ["" : 18%s]>
        g (float[4,7] x) => (float[4,1] y) { y = ReduceMax(x) }"""
    axes = onnx.numpy_helper.from_array(np.array([1]), "axes")
    x = np.where(np.arange(28) % 5 == 2, np.nan, np.arange(28)).astype(np.float32).reshape(4, 7)
    results = []
    for more in ("", ', "pycompiler.torch" : 1'):
        model = onnx.parser.parse_model(text % more)
        model.graph.initializer.append(axes)
        model.graph.node[0].input.append("axes")
        results.append(HostSession(model, "a model").run({"x": x})["y"])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (plain,) = session.run(None, {"x": x})
    assert np.array_equal(results[0], plain, equal_nan=True)
    assert np.isnan(results[1]).all()
    assert not np.isnan(plain).all()


GRADIENTS: dict[str, Callable[[_X], Any]] = {
    "relu": torch.relu,
    "threshold": lambda x: functional.threshold(x, 0.5, 2.0),
    "leaky": lambda x: functional.leaky_relu(x, 0.1),
    "softshrink": lambda x: functional.softshrink(x, 0.3),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "amax": lambda x: x.amax(-1),
    "max": lambda x: x.max(-1)[0],
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "pool": lambda x: functional.max_pool2d(x, 2),
    "rows": lambda x: functional.max_pool1d(x[0], 3, 1),
    "overlapping": lambda x: functional.max_pool2d(x, 3, 1, 1),
    "pool3": lambda x: functional.max_pool3d(x[None], 2),
    "smooth": lambda x: functional.smooth_l1_loss(x, x.flip(0), reduction="none", beta=0.5),
    "sgn": torch.sgn,
}


def _with_nans(dtype: torch.dtype) -> _X:
    x = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(9), dtype=dtype)
    x[:, ::2, ::4], x[1, 3, 3], x[1, 2, 4:7] = torch.nan, torch.inf, torch.nan
    return x


@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_gradients_at_nans_are_torchs(dtype: torch.dtype, tmp_path: Path) -> None:
    """A NaN passes a ReLU, and the last one of a window wins it."""
    functions = in_turns(GRADIENTS, 2 + DTYPES.index(dtype), 4)

    def run(d: Mapping[str, _X]) -> dict[str, _X]:
        x = d["x"].detach().requires_grad_()
        made = {name: function(x) for name, function in functions.items()}
        ones = {n: torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape) for n, y in made.items()}
        return {n: torch.autograd.grad((y * ones[n]).sum(), x)[0] for n, y in made.items()}

    x = _with_nans(dtype)
    found = context("pfvm:cpu").compile(run, {"x": x}, tmp_path, quiet=True)({"x": x})
    for key, wanted in run({"x": x}).items():
        torch.testing.assert_close(found[key].cpu(), wanted, equal_nan=True, msg=key)


def test_gradients_at_nans_through_torch_compile() -> None:
    """AOT autograd keeps no forms for the host, so its graphs ask for NaNs themselves."""
    chosen = in_turns(GRADIENTS, 0, 4)
    functions = list(chosen.values())

    def run(*given: _X) -> list[_X]:
        return [function(x) for function, x in zip(functions, given, strict=True)]

    def gradients(way: Callable[..., list[_X]]) -> tuple[_X, ...]:
        given = [_with_nans(torch.float32).requires_grad_() for _ in functions]
        losses = [(y * torch.arange(y.numel()).reshape(y.shape)).sum() for y in way(*given)]
        return torch.autograd.grad(losses, given)

    pairs = zip(gradients(compiled(run, device="pfvm:cpu")), gradients(run), strict=True)
    for name, (found, wanted) in zip(chosen, pairs, strict=True):
        torch.testing.assert_close(found, wanted, equal_nan=True, msg=name)


def test_nans_beside_operators_without_a_kernel(tmp_path: Path) -> None:
    """onnxruntime convolves no doubles, so onnx's evaluator runs the whole model."""

    def run(d: Mapping[str, _X]) -> dict[str, _X]:
        made = functional.conv1d(d["x"][None], torch.ones(1, 3, 2, dtype=d["x"].dtype))
        return {"made": made, "sign": torch.sign(d["x"]), "top": d["x"].amax(1)}

    inputs = {"x": torch.arange(12, dtype=torch.float64).reshape(3, 4) - 3}
    inputs["x"][1, 2] = torch.nan
    found = context("pfvm:cpu").compile(run, inputs, tmp_path, quiet=True)(inputs)
    for key, wanted in run(inputs).items():
        torch.testing.assert_close(found[key].cpu(), wanted, equal_nan=True, msg=key)
