"""Habits of users of ``torch.compile`` that once surprised the back end."""

from __future__ import annotations

import sys
import threading
from itertools import product

import pytest
import torch
from compiling import sampled
from dynamo import CLOSE, compiled
from torch import nn

from pycompiler.errors import HostFallbackWarning, internal
from pycompiler.torch_backend import emu2
from pycompiler.torch_backend.partition import Parts
from pycompiler.torch_backend.piece import Piece


def test_dynamic_sizes_are_one_graph() -> None:
    """The back end must not make a number of a size: torch would trace anew for each."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + x.shape[0]

    seen: list[Parts] = []
    run = compiled(function, seen)
    for rows in (3, 5, 3):
        x = torch.randn(rows, 4)
        torch._dynamo.mark_dynamic(x, 0)  # torch raises if the size becomes a number
        torch.testing.assert_close(run(x), function(x), **CLOSE)
    assert [len(parts.pieces) for parts in seen] == [1]
    assert len(seen[0].pieces[0].reports) == 2


def test_sizes_that_depend_on_data_stay_in_torch() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * 3)[x > 0] * 2 + 1

    seen: list[Parts] = []
    x = torch.randn(4, 5)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        torch.testing.assert_close(compiled(function, seen)(x), function(x), **CLOSE)
    (parts,) = seen
    assert len(parts.pieces) == 1
    assert "its sizes depend on data" in {why for _, why in parts.in_torch}


@pytest.mark.parametrize(
    ("mode", "kind"),
    sampled(
        list(
            product(
                ("nearest", "nearest-exact", "bilinear", "bicubic"),
                (torch.float32, torch.float64, torch.uint8),
            )
        ),
        first=1,
    ),
)
def test_resizes_are_those_of_the_kernels(mode: str, kind: torch.dtype) -> None:
    """torch's own forms of resizes in Python differ where the size stays, and for bytes."""
    x = (torch.rand(1, 2, 5, 7, generator=torch.Generator().manual_seed(3)) * 255).to(kind)
    scales = (1.1, 1.3, 2.0) if kind == torch.float32 else (1.1, 1.3)

    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [nn.functional.interpolate(x, scale_factor=scale, mode=mode) for scale in scales]

    run = torch.compile(function, backend=emu2, options={"device": "pfvm:cpu"})
    near = {"rtol": 0, "atol": 0} if kind == torch.uint8 else {"rtol": 1e-5, "atol": 1e-3}
    for found, wanted in zip(run(x), function(x), strict=True):
        torch.testing.assert_close(found, wanted, **near)


def test_threads_do_not_mix_their_inputs() -> None:
    run = compiled(lambda x: 1 - x)
    wrong = []

    def work(first: int) -> None:
        for number in range(first, first + 40):
            x = torch.full((2, 3), float(number))
            if not torch.equal(run(x), 1 - x):
                wrong.append(number)

    run(torch.zeros(2, 3))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_rules_with_constants_have_gradients() -> None:
    """Windows of different sizes are a product with a constant, which the rule makes."""
    pool = nn.AdaptiveAvgPool1d(3)
    x = torch.randn(1, 1, 5, requires_grad=True)
    results = []
    for run in (compiled(pool), pool):
        made = run(x)
        results.append((made, *torch.autograd.grad(made.sum(), x)))
    torch.testing.assert_close(*results, **CLOSE)


def test_recurrent_layers_run_if_torch_may_trace_them() -> None:
    layer, x = nn.RNN(2, 2), torch.randn(2, 1, 2)
    seen: list[Parts] = []
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        torch.testing.assert_close(compiled(layer, seen)(x), layer(x), **CLOSE)
    assert [len(parts.pieces) for parts in seen] == [1]
    assert seen[0].in_torch == []


def test_modes_of_torch_are_refused() -> None:
    run = torch.compile(lambda x: x + 1, backend=emu2, mode="reduce-overhead")
    with pytest.raises(Exception, match=r"P0704.*`options` has `preset` and `tune`"):
        run(torch.ones(3))


def test_faults_of_the_compiler_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operators stay in torch, and a warning says that this is no property of the device."""

    def fails(*_: object) -> None:
        raise internal(ValueError("too many axes"))

    monkeypatch.setattr(Piece, "prepared", fails)
    x, parts = torch.randn(3, 4), list[Parts]()
    with pytest.warns(HostFallbackWarning, match="2 operators stay in torch: .*too many axes"):
        found = compiled(lambda x: torch.relu(x) + 1.0, parts)(x)
    torch.testing.assert_close(found, torch.relu(x) + 1.0)
    assert not parts[0].pieces


@pytest.mark.long
def test_large_systems_stay_in_torch() -> None:
    """A solve of more rows than are written out is torch's; what is around it is compiled."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve(x @ x.T + 40 * torch.eye(40), x[:, :2] + 1) * 2

    x, seen = torch.linspace(-1, 1, 1600).reshape(40, 40), list[Parts]()
    torch.testing.assert_close(compiled(function, seen)(x), function(x), **CLOSE)
    (parts,) = seen
    assert len(parts.pieces) == 2
    assert any("of more than" in why for _, why in parts.in_torch)
