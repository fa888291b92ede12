"""Registered gradients are values of a function, as they are to torch: it reads and adds to them.

The same function runs in torch, on a copy of the model; a gradient that is None there is zero here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch
from compiling import context, sampled
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from pycompiler.mlsdk import Context, set_tensor_name, set_tensor_name_in_module

Tensors = dict[str, torch.Tensor]
Step = Callable[["Net", Tensors], torch.Tensor]


class Net(nn.Module):
    """Layers that share a weight, a frozen one, and one that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.first, self.tied, self.spare = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(2, 2)
        self.tied.weight = self.first.weight
        self.frozen = nn.Linear(6, 4).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(self.tied(torch.relu(self.first(x))))

    def loss(self, d: Tensors) -> torch.Tensor:
        return self(d["x"]).square().mean()


def _backward(net: Net, d: Tensors) -> torch.Tensor:
    loss = net.loss(d)
    loss.backward()
    return loss


def _twice(net: Net, d: Tensors) -> torch.Tensor:
    _backward(net, d)
    return _backward(net, {"x": d["x"] * 2})


def _begun_anew(net: Net, d: Tensors) -> torch.Tensor:
    net.zero_grad()
    return _backward(net, d)


def _zeroed(net: Net, d: Tensors) -> torch.Tensor:
    net.zero_grad(set_to_none=False)
    return _backward(net, d)


def _forgotten(net: Net, d: Tensors) -> torch.Tensor:
    loss = _backward(net, d)
    net.zero_grad()
    return loss


def _clipped(net: Net, d: Tensors) -> torch.Tensor:
    _backward(net, d)
    return clip_grad_norm_(net.parameters(), 0.25)


def _clipped_values(net: Net, d: Tensors) -> torch.Tensor:
    loss = _backward(net, d)
    clip_grad_value_(net.parameters(), 0.01)
    return loss


def _replaced(net: Net, d: Tensors) -> torch.Tensor:
    loss = net.loss(d)
    parameters = [p for p in net.parameters() if p.requires_grad and p.shape != (2, 2)][:2]
    for parameter, found in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = found * 2
    return loss


def _read(net: Net, d: Tensors) -> torch.Tensor:
    before = net.first.bias.grad
    assert before is not None
    return before.sum() + _backward(net, d)


def _only_read(net: Net, d: Tensors) -> torch.Tensor:
    assert net.first.bias.grad is not None
    return net.loss(d) + net.first.bias.grad.sum()


def _through_the_gradient(net: Net, d: Tensors) -> torch.Tensor:
    loss = net.loss(d)
    loss.backward(create_graph=True)
    return loss


def _decayed(net: Net, d: Tensors) -> torch.Tensor:
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(0.5)
    return _backward(net, d)


def _hooked(net: Net, d: Tensors) -> torch.Tensor:
    hook = net.first.weight.register_hook(lambda grad: grad * 3)
    loss = _backward(net, d)
    hook.remove()
    return loss


STEPS: dict[str, Step] = {
    "backward": _backward,
    "twice": _twice,
    "begun anew": _begun_anew,
    "zeroed": _zeroed,
    "forgotten": _forgotten,
    "clipped": _clipped,
    "clipped values": _clipped_values,
    "replaced": _replaced,
    "read": _read,
    "only read": _only_read,
    "through the gradient": _through_the_gradient,
    "decayed": _decayed,
    "hooked": _hooked,
}


def _started(shared: Context, net: Net, *, parameters: bool = True) -> None:
    """Give every parameter a gradient, and register both."""
    set_tensor_name_in_module(net, "net")
    for name, parameter in net.named_parameters():
        if parameters:
            shared.register_param(parameter)
        parameter.grad = nn.Parameter(torch.full_like(parameter, 0.125))
        set_tensor_name(parameter.grad, f"{name}@grad")
        shared.register_param(parameter.grad)


def _gradients(net: Net) -> Tensors:
    found = {name: p.grad for name, p in net.named_parameters()}
    return {
        name: torch.zeros_like(p) if (grad := found[name]) is None else grad.detach().clone()
        for name, p in net.named_parameters()
    }


@pytest.mark.parametrize(
    ("case", "device", "parameters"),
    sampled(list(product(STEPS, ["pfvm:cpu", "emu2:mini"], [True, False])), every=23, first=2),
)
def test_as_in_torch(tmp_path: Path, case: str, device: str, parameters: bool) -> None:
    shared, net, step = context(device), Net(), STEPS[case]
    _started(shared, net, parameters=parameters)
    wanted = copy.deepcopy(net)
    for theirs in wanted.parameters():
        theirs.grad = torch.full_like(theirs, 0.125)
    ours, begin = {n: p.grad for n, p in net.named_parameters()}, _gradients(net)
    compiled = shared.compile(
        lambda d: {"out": step(net, d)}, {"x": torch.ones(3, 6)}, tmp_path / "out"
    )
    assert all(ours[n] is p.grad for n, p in net.named_parameters())
    assert all(torch.equal(begin[n], g) for n, g in _gradients(net).items())
    for call in range(3):
        torch.manual_seed(call)
        inputs = {"x": torch.randn(3, 6)}
        found = compiled(inputs)["out"].cpu()
        assert torch.allclose(found, step(wanted, inputs), rtol=1e-4)
    shared.synchronize()
    assert all(ours[n] is p.grad for n, p in net.named_parameters())
    for name, gradient in _gradients(wanted).items():
        assert torch.allclose(_gradients(net)[name], gradient, rtol=1e-4, atol=1e-6), name


def test_gradients_of_inputs(tmp_path: Path) -> None:
    """A sample that requires gradients has them in the function; a registered one adds up."""
    shared, told = context("pfvm:cpu"), []
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.ones(3)
    set_tensor_name(x.grad, "x@grad")
    shared.register_buffer(x.grad)

    def step(d: Tensors) -> Tensors:
        told.append(torch.compiler.is_compiling() and torch.compiler.is_exporting())
        d["x"].pow(3).sum().backward()
        grad = d["x"].grad
        assert grad is not None
        return {"grad": grad}

    compiled = shared.compile(step, {"x": x}, tmp_path / "out")
    assert all(told)
    assert not torch.compiler.is_compiling()
    assert torch.equal(x.grad, torch.ones(3))
    for _ in range(2):
        found = compiled({"x": torch.tensor([1.0, 2.0, -1.0])})["grad"].cpu()
        assert torch.allclose(found, torch.tensor([3.0, 12.0, 3.0]))
    shared.synchronize()
    assert torch.allclose(x.grad, torch.tensor([7.0, 25.0, 7.0]))
