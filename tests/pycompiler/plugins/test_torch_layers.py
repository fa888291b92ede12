"""Layers of torch on a device, operation by operation, with their gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from pycompiler.errors import PycompilerError
from pycompiler.plugins import Eager, Session, open_device
from pycompiler.plugins.torch_tensors import TorchTensor, module_to_device, to_device

LONG = pytest.mark.long

Call = Callable[[nn.Module, torch.Tensor], torch.Tensor]


def eager() -> Eager:
    return Eager(Session(open_device("emu2-kernel", device="emu2:mini")))


def whole(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = module(x)
    return made


def outputs(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = module(x)[0]
    return made


@pytest.mark.parametrize(
    ("module", "shape", "call"),
    [
        pytest.param(nn.MaxPool2d(3, 2, 1, ceil_mode=True), (2, 5, 6), whole, marks=LONG),
        pytest.param(nn.AvgPool2d(3, 2, 1, False, False), (1, 2, 5, 6), whole, marks=LONG),
        (nn.AvgPool2d(2, divisor_override=3), (1, 2, 4, 4), whole),
        (nn.GroupNorm(2, 4), (2, 4, 3), whole),
        pytest.param(nn.LSTM(4, 3), (1, 2, 4), outputs, marks=LONG),
        pytest.param(nn.LSTM(4, 3, 2, bidirectional=True), (3, 2, 4), outputs, marks=LONG),
        pytest.param(nn.GRU(4, 3, batch_first=True), (2, 3, 4), outputs, marks=LONG),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, nn.Module) else "",
)
def test_layers_and_their_gradients(module: nn.Module, shape: tuple[int, ...], call: Call) -> None:
    torch.manual_seed(3)
    ours, device = copy.deepcopy(module), eager()
    module_to_device(ours, device)
    x = torch.randn(shape, requires_grad=True)
    given = to_device(x, device)
    found, wanted = call(ours, given), call(module, x)
    assert isinstance(found, TorchTensor)
    (found * found).sum().backward()
    (wanted * wanted).sum().backward()
    pairs = [(found, wanted), (given.grad, x.grad)]
    weights = zip(ours.parameters(), module.parameters(), strict=True)
    pairs += [(own.grad, weight.grad) for own, weight in weights]
    for own, right in pairs:
        assert isinstance(own, TorchTensor)
        assert isinstance(right, torch.Tensor)
        torch.testing.assert_close(own.on_host(), right.detach(), rtol=1e-4, atol=1e-4)


def test_places_of_a_max_pool() -> None:
    torch.manual_seed(4)
    x = torch.randn(2, 2, 4, 6)
    found = functional.max_pool2d(to_device(x, eager()), 2, return_indices=True)
    for own, right in zip(found, functional.max_pool2d(x, 2, return_indices=True), strict=True):
        assert torch.equal(own.on_host(), right)


def test_a_state_on_the_host_is_refused() -> None:
    """Only the zeros that a module begins with come to the device unasked."""
    device = eager()
    layer = module_to_device(nn.LSTM(4, 3), device)
    x, state = to_device(torch.randn(1, 2, 4), device), torch.ones(1, 2, 3)
    with pytest.raises(PycompilerError) as caught:
        layer(x, (state, state))
    assert (caught.value.code, caught.value.fields["reason"]) == (
        "P0828",
        "an operand is on the host: call to_device",
    )
