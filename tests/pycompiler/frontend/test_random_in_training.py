"""Random numbers of training steps: their distribution, and where a step reads them twice."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from pathlib import Path

import pytest
import torch
from compiling import context, report_of
from torch import nn

from pycompiler.frontend.gradient_rules import Counter, counted
from pycompiler.frontend.gradient_rules.random import uniform
from pycompiler.mlsdk import MNCoreSGD

Tensors = dict[str, torch.Tensor]
#: Deviations of a mean of independent numbers that one draw in a million exceeds.
MOST = 5.0


def _draw(counter: Counter, size: int = 512) -> torch.Tensor:
    with counted(counter):
        found = uniform((size, size))
    assert found is not None
    return found.double()


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_numbers_look_independent(seed: int) -> None:
    torch.manual_seed(seed)
    counter = Counter()
    first, other = _draw(counter), _draw(counter)
    counter.calls += 1
    counter.sites = 0
    later = _draw(counter)
    assert first.min() >= 0
    assert first.max() < 1
    pairs = {
        "rows": (first[1:], first[:-1]),
        "columns": (first[:, 1:], first[:, :-1]),
        "far": (first[256:], first[:256]),
        "operators": (first, other),
        "calls": (first, later),
    }
    for name, (a, b) in pairs.items():
        assert abs(((a - 0.5) * (b - 0.5)).mean() * 12 * sqrt(a.numel())) < MOST, name
    for values in (first, first * 256 % 1, first * 2**12 % 1):
        assert abs((values.mean() - 0.5) * sqrt(12 * values.numel())) < MOST
        counts, each = torch.histc(values, 16, 0, 1), values.numel() / 16
        assert abs(((counts - each) ** 2 / each).sum() - 15) < MOST * sqrt(30)


def test_outside_of_a_step_there_are_none() -> None:
    assert uniform((2, 3)) is None


class Dropped(nn.Module):
    """A network whose masks can be read from its values and its gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.drop = nn.Parameter(torch.ones(30, 11)), nn.Dropout(0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.drop(x * self.weight)
        return out


def _step(tmp_path: Path, device: str) -> list[Tensors]:
    torch.manual_seed(3)
    model = Dropped()
    optimizer = MNCoreSGD(model.parameters(), 0.0)
    chip = context(device)
    chip.registry.register("model", model)
    chip.registry.register("optimizer", optimizer)

    def run(d: Mapping[str, torch.Tensor]) -> Tensors:
        optimizer.zero_grad()
        first = model(d["x"])
        loss = first.sum()
        loss.backward()
        optimizer.step()
        assert model.weight.grad is not None
        again = nn.functional.dropout(d["x"], 0.5)
        return {"mask": first, "gradient": model.weight.grad, "again": again}

    before = torch.get_rng_state()
    compiled = chip.compile(run, {"x": torch.ones(30, 11)}, tmp_path / "out")
    assert torch.equal(torch.get_rng_state(), before)
    calls = [compiled({"x": torch.ones(30, 11)}) for _ in range(3)]
    return [{name: value.cpu() for name, value in call.items()} for call in calls]


def test_masks(tmp_path: Path) -> None:
    found = _step(tmp_path, "emu2:mini")
    assert report_of(tmp_path / "out")["host_fallback"] == []
    for call in found:
        assert torch.allclose(call["mask"], call["gradient"])
        assert set(call["mask"].unique().tolist()) == {0.0, float(torch.tensor(1 / 0.7))}
        assert abs((call["mask"] > 0).float().mean() - 0.7) < 0.1
        assert not torch.equal(call["mask"] > 0, call["again"] > 0)
    assert not torch.equal(found[0]["mask"], found[1]["mask"])
    host = _step(tmp_path / "host", "pfvm:cpu")
    for ours, theirs in zip(found, host, strict=True):
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
