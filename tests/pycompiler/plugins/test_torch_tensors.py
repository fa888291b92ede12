"""Tensors of torch on a device: torch's results, or a refusal."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from made_up_chip import Chip
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.plugins import Eager, Session, open_device
from pycompiler.plugins.torch_tensors import TorchTensor, module_to_device, to_device


def _eager(name: str) -> Eager:
    device = Chip() if name == "chip" else open_device("emu2-kernel", device="emu2:mini")
    return Eager(Session(device))


def test_a_module() -> None:
    torch.manual_seed(0)
    eager = _eager("emu2")
    module = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 5), nn.Softmax(-1))
    x = torch.randn(7, 12)
    weights = {name: to_device(one, eager) for name, one in module.named_parameters()}
    with torch.no_grad():
        found = torch.func.functional_call(module, weights, (to_device(x, eager),))
        assert isinstance(found, TorchTensor)
        torch.testing.assert_close(found.on_host(), module(x), rtol=1e-4, atol=1e-5)
    assert eager.cycles > 0
    kept = found.on_host()
    del weights, found
    assert eager.session.pool.used == 0
    assert kept.sum(-1).allclose(torch.ones(7))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 - 1.5 / (x.exp() + 1),
        lambda x: x.permute(1, 0).reshape(3, 8) @ x.view(8, 3),
        lambda x: x.sum(0, keepdim=True) + x.mean((0, 1)) - x.sum(-1, keepdim=True),
        lambda x: (x @ x.t()).softmax(0).tanh().sigmoid().abs().sqrt().neg(),
        lambda x: torch.where(x > 0.5, x, torch.add(x, 1, alpha=2)).sum() + x.max(),
        lambda x: torch.cat(x.chunk(2, 1)[::-1], 1).std(0) + (x * 1e-5).log1p().sum(0) * 1e5,
        lambda x: nn.functional.conv2d(x.view(1, 1, 4, 6), x[:2, :2].reshape(1, 1, 2, 2)),
        lambda x: torch.cat([x, x[1:3] ** 2]).unsqueeze(1).expand(-1, 2, -1).amax(0) * 0.5,
    ],
)
def test_functions(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    torch.manual_seed(1)
    x = torch.randn(4, 6)
    found = function(to_device(x, _eager("emu2")))
    assert isinstance(found, TorchTensor)
    torch.testing.assert_close(found.on_host(), function(x), rtol=1e-4, atol=1e-5)


def test_a_training_loop() -> None:
    """Autograd and an optimizer of torch, operation by operation."""
    torch.manual_seed(0)
    eager = _eager("emu2")
    ours = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    theirs = copy.deepcopy(ours)
    module_to_device(ours, eager)
    x, classes = torch.randn(6, 4), torch.arange(6) % 3
    losses: list[list[float]] = []
    for model, given in ((ours, (to_device(x, eager), to_device(classes, eager))),
                         (theirs, (x, classes))):  # fmt: skip
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        losses.append([])
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(given[0]), given[1])
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0][2] < losses[0][0]
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert isinstance(own, TorchTensor)
        torch.testing.assert_close(own.detach().on_host(), other.detach(), rtol=1e-4, atol=1e-5)


def test_writes_are_seen_by_aliases_and_by_no_copy() -> None:
    x = to_device(torch.ones(2, 3), _eager("chip"))
    alias, copied = x.detach(), x.clone()
    view = x.t()
    with pytest.raises(PycompilerError, match="a view of the tensor is in use"):
        x.mul_(3)
    del view
    x.mul_(3).add_(1)
    for own, value in ((x, 4), (alias, 4), (copied, 1)):
        assert torch.equal(own.on_host(), torch.full((2, 3), float(value)))


def test_gradients_are_asked_for() -> None:
    x = to_device(torch.ones(2, 3, requires_grad=True), _eager("chip"))
    (x * x).backward(to_device(torch.full((2, 3), 0.5), x.eager))
    assert torch.equal(x.grad.on_host(), torch.ones(2, 3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sort(),
        lambda x: x + torch.ones(2, 3),
        lambda x: x.bernoulli(),
        lambda x: torch.ones(2, 3).add_(x),
        lambda x: x.mul_(x > 0),  # the chip has no comparison
        lambda x: [x.t(), x.add_(1)],
        lambda x: x.t().add_(1) + x,
        lambda x: x.sum(0, dtype=torch.float64),
        lambda x: x.exp(),  # the chip has no such operator
        lambda x: to_device(torch.arange(3), x.eager),
        lambda x: to_device(torch.ones(3, dtype=torch.bfloat16), x.eager),
    ],
)
def test_refusals(function: Callable[[TorchTensor], object]) -> None:
    with pytest.raises(PycompilerError, match="P0828"):
        function(to_device(torch.ones(2, 3), _eager("chip")))
