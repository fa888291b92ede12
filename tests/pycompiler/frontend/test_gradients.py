"""Gradients of torch's operators in traced functions, on drawn shapes, against torch's own.

All cases run on the host runtime, which has every operator that the tracer writes. Those that are
not in ON_HOST also run on the emulator, without an operator on the host. In `make test` some of
either run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import LONG, context, report_of, sampled, tried
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from pycompiler.tolerance import NETWORKS

Shapes = Sequence[tuple[int, ...]]
#: An operator on tensors, and what it is called with for sizes a, b, c: shapes of floats.
Case = tuple[Callable[..., torch.Tensor], Callable[[int, int, int], Shapes]]


def _one(a: int, b: int, c: int) -> Shapes:
    return [(a, b)]


def _two(a: int, b: int, c: int) -> Shapes:
    return [(a, b), (a, b)]


def _row(a: int, b: int, c: int) -> Shapes:
    return [(a, b), (b,), (b,)]


def _pictures(a: int, b: int, c: int) -> Shapes:
    return [(2, a, b + 3, c + 3)]


def _channels(a: int, b: int, c: int) -> Shapes:
    return [(3, a, b, c), (a,), (a,)]


def _heads(a: int, b: int, c: int) -> Shapes:
    return [(2, a, b, c), (2, a, b, c), (2, a, b, c)]


def _classes(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(x.shape[0]) * 3 % x.shape[1]


def _places(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([0, x.shape[0] - 1, 0])


def _gathered(x: torch.Tensor) -> torch.Tensor:
    index = torch.arange(x.shape[0] * 2).reshape(-1, 2) * 5 % x.shape[1]
    return x.gather(1, index)


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


LSTM, GRU = nn.LSTM(4, 3, batch_first=True), nn.GRU(4, 3, bidirectional=True)


def _lstm(x: torch.Tensor) -> torch.Tensor:
    out: torch.Tensor = LSTM(x)[0]
    return out


def _gru(x: torch.Tensor) -> torch.Tensor:
    outs, last = GRU(x)
    return torch.cat([outs, last.repeat(1, 1, 2)])


CASES: Mapping[str, Case] = {
    "abs": (torch.abs, _one),
    "add": (lambda x, w, b: x + w - b, _row),
    "amax": (lambda x: x.amax(1), _one),
    "atan2": (torch.atan2, _two),
    "attention": (_attention, _heads),
    "average pool": (lambda x: functional.avg_pool2d(x, 3, 2, 1), _pictures),
    "batch norm": (lambda x, w, b: functional.batch_norm(x, None, None, w, b, True), _channels),
    "bce": (lambda x: functional.binary_cross_entropy_with_logits(x, x.sigmoid().round()), _one),
    "bilinear": (lambda x: functional.interpolate(x, (5, 11), mode="bilinear"), _pictures),
    "bmm": (lambda x, y: torch.bmm(x, y.mT), lambda a, b, c: [(a, b, c), (a, b + 1, c)]),
    "cat": (lambda x, y: torch.cat([x, y[:1]]), _two),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), _one),
    "convolution": (
        lambda x, w, b: functional.conv2d(x, w, b, stride=2, padding=(1, 0)),
        lambda a, b, c: [(2, a, b + 3, c + 3), (3, a, 3, 2), (3,)],
    ),
    "convolution of many places": (
        lambda x, w: functional.conv2d(x, w, padding=1),
        lambda a, b, c: [(3, a, b + 4, c + 2), (b, a, 3, 3)],
    ),
    "convolution of groups": (
        lambda x, w: functional.conv2d(x, w, groups=2, dilation=(1, 2), padding=2),
        lambda a, b, c: [(2, 2 * a, b + 3, c + 3), (4, a, 2, 3)],
    ),
    "convolution of rows": (
        lambda x, w: functional.conv1d(x, w, stride=3),
        lambda a, b, c: [(2, a, c + 6), (b, a, 4)],
    ),
    "convolution transposed": (
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
        lambda a, b, c: [(2, a, b + 1, c + 1), (a, 2, 3, 3)],
    ),
    "cosine": (lambda x, y: functional.cosine_similarity(x, y), _two),
    "cross entropy": (lambda x: functional.cross_entropy(x, _classes(x)), _one),
    "cross entropy of chances": (
        lambda x, y: functional.cross_entropy(x, y.softmax(1), label_smoothing=0.1),
        _two,
    ),
    "cross entropy with weights": (
        lambda x: functional.cross_entropy(
            x,
            _classes(x),
            weight=torch.arange(1.0, x.shape[1] + 1),
            ignore_index=3,
            reduction="sum",
            label_smoothing=0.2,
        ),
        _one,
    ),
    "cumsum": (lambda x: x.cumsum(1), _one),
    "div": (lambda x, y: x / (y.abs() + 1), _two),
    "einsum": (lambda x, y: torch.einsum("ij,kj->ik", x, y), _two),
    "elu": (functional.elu, _one),
    "embedding": (lambda w: functional.embedding(_places(w), w), _one),
    "erf": (torch.erf, _one),
    "exp": (torch.exp, _one),
    "flip": (lambda x: x.flip(0) * 2, _one),
    "gather": (_gathered, _one),
    "gelu": (functional.gelu, _one),
    "gelu by tanh": (lambda x: functional.gelu(x, approximate="tanh"), _one),
    "glu": (lambda x: functional.glu(torch.cat([x, x * 2], 1)), _one),
    "group norm": (lambda x, w, b: functional.group_norm(x, 1, w, b), _channels),
    "gru": (_gru, lambda a, b, c: [(2, a, 4)]),
    "hardswish": (functional.hardswish, _one),
    "huber": (lambda x, y: functional.huber_loss(x, y), _two),
    "index": (lambda x: x[_places(x)], _one),
    "index of columns": (lambda x: x[:, torch.tensor([0, -1, 0])], _one),
    "instance norm": (lambda x: functional.instance_norm(x), _pictures),
    "kl": (lambda x, y: functional.kl_div(x.log_softmax(1), y.softmax(1)), _two),
    "l1": (lambda x, y: functional.l1_loss(x, y), _two),
    "layer norm": (lambda x, w, b: functional.layer_norm(x, w.shape, w, b), _row),
    "leaky relu": (functional.leaky_relu, _one),
    "log": (lambda x: (x.abs() + 0.1).log(), _one),
    "log softmax": (lambda x: x.log_softmax(0), _one),
    "logsumexp": (lambda x: x.logsumexp(1), _one),
    "lstm": (_lstm, lambda a, b, c: [(a, 3, 4)]),
    "matmul": (lambda x, y: x @ y.t(), _two),
    "max": (lambda x: x.max(1)[0], _one),
    "max pool": (lambda x: functional.max_pool2d(x, 3, 2, 1), _pictures),
    "max pool of rows": (lambda x: functional.max_pool1d(x, 2), lambda a, b, c: [(2, a, c + 3)]),
    "mean": (lambda x: x.mean(1), _one),
    "mish": (functional.mish, _one),
    "mse": (lambda x, y: functional.mse_loss(x, y), _two),
    "nearest": (lambda x: functional.interpolate(x, scale_factor=2), _pictures),
    "norm": (lambda x: x.norm(), _one),
    "pad": (lambda x: functional.pad(x, (1, 2, 0, 1)), _one),
    "pool to one": (lambda x: functional.adaptive_avg_pool2d(x, 1), _pictures),
    "pool to three": (lambda x: functional.adaptive_avg_pool2d(x, 3), _pictures),
    "pow": (lambda x: x.abs() ** 1.5, _one),
    "prelu": (lambda x, w, b: functional.prelu(x, w), _row),
    "relu": (torch.relu, _one),
    "rms norm": (lambda x, w, b: functional.rms_norm(x, w.shape, w), _row),
    "scatter add": (lambda x, y: x.scatter_add(1, torch.zeros(x.shape).long(), y), _two),
    "select": (lambda x: x[-1] * x[0], _one),
    "sigmoid": (torch.sigmoid, _one),
    "silu": (functional.silu, _one),
    "slice": (lambda x: x[1:, ::2], lambda a, b, c: [(a + 1, b)]),
    "smooth l1": (lambda x, y: functional.smooth_l1_loss(x, y), _two),
    "softmax": (lambda x: x.softmax(-1), _one),
    "softplus": (functional.softplus, _one),
    "sort": (lambda x: x.sort(1)[0], _one),
    "sqrt": (lambda x: (x.abs() + 0.1).sqrt(), _one),
    "sub": (torch.sub, _two),
    "sum": (lambda x: x.sum(0), _one),
    "tanh": (torch.tanh, _one),
    "topk": (lambda x: x.topk(1, 1)[0], _one),
    "tril": (torch.tril, _one),
    "variance": (lambda x: x.var(1, correction=0), _one),
    "where": (lambda x, y: torch.where(x > 0, x, y * x), _two),
}

#: Cases with an operator that the device does not have.
ON_HOST = ("atan2", "cumsum", "sort", "topk")


def weighted(out: torch.Tensor) -> torch.Tensor:
    """Return a scalar to which every element adds in its own way."""
    places = torch.arange(out.numel(), dtype=torch.float32).reshape(out.shape)
    return (out * torch.sin(places + 1)).sum()


def gradients(names: Sequence[str]) -> Callable[[Any], dict[str, torch.Tensor]]:
    """Return a function of the inputs of several cases, with all their gradients."""

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        results: dict[str, torch.Tensor] = {}
        for name in names:
            own = {key: x for key, x in d.items() if key.partition(".")[0] == name}
            tensors = {key: x.detach().requires_grad_() for key, x in own.items()}
            loss = weighted(CASES[name][0](*tensors.values()))
            found = torch.autograd.grad(loss, list(tensors.values()), allow_unused=True)
            results[f"{name} loss"] = loss.detach()
            used = zip(tensors, found, strict=True)
            results |= {f"{key} grad": grad for key, grad in used if grad is not None}
        return results

    return run


def inputs_of(names: Sequence[str], sizes: tuple[int, int, int]) -> dict[str, torch.Tensor]:
    torch.manual_seed(sum(sizes))
    return {
        f"{name}.{number}": torch.randn(shape)
        for name in names
        for number, shape in enumerate(CASES[name][1](*sizes))
    }


def check(
    folder: Path,
    device: str,
    names: Sequence[str],
    sizes: tuple[int, int, int],
    float_dtype: str = "float",
    most: float = 2e-5,
) -> None:
    """Compare all results with torch's: ``most`` is the error relative to the largest number."""
    inputs = inputs_of(names, sizes)
    run = gradients(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"float_dtype": float_dtype}
        compiled = context(device).compile(run, inputs, folder, options=options)
    found, wanted = compiled(inputs), run(inputs)
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        scale = max(1.0, float(value.abs().max()))
        difference = float((found[key].cpu() - value).abs().max())
        assert difference <= most * scale, (sizes, key)


#: Cases that are traced and compiled as one function.
TOGETHER = 8
ALL = [list(CASES)[first : first + TOGETHER] for first in range(0, len(CASES), TOGETHER)]
DEVICE = sorted(set(CASES) - set(ON_HOST))
ON_DEVICE = [DEVICE[first : first + TOGETHER] for first in range(0, len(DEVICE), TOGETHER)]


@pytest.mark.parametrize("names", sampled(ALL, every=4, first=2), ids=lambda names: names[0])
@settings(
    max_examples=tried(1), deadline=None, suppress_health_check=list(HealthCheck), database=None
)
@given(sizes=st.tuples(*[st.integers(2, 7)] * 3))
def test_on_the_host(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], sizes: tuple[int, int, int]
) -> None:
    names = names if LONG else names[::3]
    check(tmp_path_factory.mktemp("out") / "out", "pfvm:cpu", names, sizes)


@pytest.mark.parametrize("names", sampled(ON_DEVICE, every=8, first=3), ids=lambda names: names[0])
def test_on_the_device(tmp_path: Path, names: list[str]) -> None:
    # In `make test` a part of these; the host has another.
    names = names if LONG else names[::3]
    check(tmp_path / "out", "emu2:mini", names, (3, 5, 6))
    assert report_of(tmp_path / "out")["host_fallback"] == []


PRODUCTS = ["attention", "matmul", "bmm", "einsum", "embedding"]
#: Cases whose products take halves in `mixed`, forwards and backwards, with their sizes.
OF_HALVES = (
    (PRODUCTS if LONG else PRODUCTS[1:2], (5, 9, 18)),
    (["convolution of many places"], (2, 3, 4)),
)


@pytest.mark.parametrize(("names", "sizes"), OF_HALVES, ids=["products", "convolution"])
def test_in_mixed(tmp_path: Path, names: list[str], sizes: tuple[int, int, int]) -> None:
    check(tmp_path / "out", "emu2:mini", names, sizes, "mixed", NETWORKS["mixed"])
    assert report_of(tmp_path / "out")["host_fallback"] == []


def test_transforms_of_functions(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    weights = {name: value.detach() for name, value in model.named_parameters()}

    def loss(weights: Any, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = torch.func.functional_call(model, weights, (x,))
        return out.tanh().sum()

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        each = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, d["x"])
        grads, value = torch.func.grad_and_value(loss)(weights, d["x"])
        return {"value": value, "all": grads["weight"], "each": each["weight"]}

    inputs = {"x": torch.randn(4, 5)}
    compiled = context("emu2:mini").compile(run, inputs, tmp_path / "out")
    for key, value in run(inputs).items():
        assert torch.allclose(compiled(inputs)[key].cpu(), value, rtol=1e-5, atol=1e-6), key
