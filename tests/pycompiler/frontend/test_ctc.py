"""The CTC loss against torch: the recursion alone, and compiled with its gradient."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from compiling import context, report_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from pycompiler.errors import PycompilerError
from pycompiler.frontend.ctc import ctc_loss
from pycompiler.frontend.export import export


@settings(max_examples=60, deadline=None, database=None)
@given(
    frames=st.integers(1, 9),
    batch=st.integers(1, 4),
    classes=st.integers(2, 6),
    labels=st.integers(1, 5),
    seed=st.integers(0, 1 << 20),
    reduction=st.sampled_from(["mean", "sum", "none"]),
    zero_infinity=st.booleans(),
    in_a_row=st.booleans(),
)
def test_the_recursion(
    frames: int,
    batch: int,
    classes: int,
    labels: int,
    seed: int,
    reduction: str,
    zero_infinity: bool,
    in_a_row: bool,
) -> None:
    torch.manual_seed(seed)
    x = torch.randn(frames, batch, classes, requires_grad=True)
    blank = int(torch.randint(classes, ()))
    targets = torch.randint(0, classes - 1, (batch, labels))
    targets += targets >= blank
    own = torch.randint(1, frames + 1, (batch,))
    wanted = torch.randint(0, labels + 1, (batch,))
    if in_a_row:
        targets = torch.cat([row[:count] for row, count in zip(targets, wanted, strict=True)])
        if not len(targets):
            return
    scores = x.log_softmax(2)
    theirs = functional.ctc_loss(scores, targets, own, wanted, blank, reduction, zero_infinity)
    for lengths in ((own, wanted), (own.tolist(), wanted.tolist())):
        ours = ctc_loss(scores, targets, *lengths, blank, reduction, zero_infinity)
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5)
        if not torch.isinf(theirs).any():
            (one,) = torch.autograd.grad(ours.sum(), x, retain_graph=True)
            (other,) = torch.autograd.grad(theirs.sum(), x, retain_graph=True)
            assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def _sample() -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    return {
        "x": torch.randn(7, 3, 5),
        "t": torch.randint(1, 5, (3, 3)),
        "own": torch.tensor([7, 6, 7]),
        "wanted": torch.tensor([3, 2, 1]),
    }


def _loss(d: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return torch.nn.CTCLoss()(d["x"].log_softmax(2), d["t"], d["own"], d["wanted"])


def _with_gradient(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    x = d["x"].detach().requires_grad_()
    loss = _loss({**d, "x": x})
    (grad,) = torch.autograd.grad(loss, x)
    return {"loss": loss.detach(), "grad": grad}


@pytest.mark.long
@pytest.mark.parametrize("device", ["pfvm:cpu", "emu2:mini"])
def test_compiled_with_its_gradient(device: str, tmp_path: Path) -> None:
    compiled = context(device).compile(_with_gradient, _sample(), tmp_path / "out")
    found = compiled(_sample())
    for name, value in _with_gradient(_sample()).items():
        assert torch.allclose(found[name].cpu(), value, rtol=1e-5, atol=1e-6), name
    if device != "pfvm:cpu":
        assert report_of(tmp_path / "out")["host_fallback"] == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"reduction": "men"}, "men is not a valid value for reduction"),
        ({"blank": 5}, "blank must be one of 5 classes, not 5"),
        ({"input_lengths": torch.tensor([7, 7])}, "input_lengths has 2 lengths for a batch of 3"),
    ],
)
def test_refused(changes: dict[str, object], text: str) -> None:
    """What torch refuses is refused while the function is traced, not computed in another way."""
    sample = _sample()
    arguments = {"input_lengths": sample["own"], "target_lengths": sample["wanted"], **changes}

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        loss = functional.ctc_loss(d["x"], d["t"], **arguments)  # type: ignore[arg-type]
        return {"loss": loss}

    with pytest.raises((ValueError, RuntimeError)):
        run(sample)
    with pytest.raises(PycompilerError, match=text):
        export(run, sample)
