"""Tensors of torch on a device: torch's results, or a refusal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from made_up_chip import Chip
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.plugins import Eager, Session, open_device
from pycompiler.plugins.torch_tensors import TorchTensor, to_device


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
    ],
)
def test_functions(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    torch.manual_seed(1)
    x = torch.randn(4, 6)
    found = function(to_device(x, _eager("emu2")))
    assert isinstance(found, TorchTensor)
    torch.testing.assert_close(found.on_host(), function(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sort(),
        lambda x: torch.add(x, x, alpha=2),
        lambda x: x + torch.ones(2, 3),
        lambda x: x.sum(0, dtype=torch.float64),
        lambda x: x.exp(),  # the chip has no such operator
        lambda x: x.add_(1),
        lambda x: to_device(torch.arange(3), x.eager),
        lambda x: to_device(torch.ones(3, dtype=torch.bfloat16), x.eager),
    ],
)
def test_refusals(function: Callable[[TorchTensor], object]) -> None:
    with pytest.raises(PycompilerError, match="P0828"):
        function(to_device(torch.ones(2, 3), _eager("chip")))
