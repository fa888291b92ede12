"""Random numbers of training steps: their distribution, and where a step reads them twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from math import erf, pi, sqrt
from pathlib import Path

import pytest
import torch
from compiling import LONG, context, report_of, sampled
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.mlsdk import MNCoreSGD, set_tensor_name
from pycompiler.pfvm.random_numbers import first_call

Tensors = dict[str, torch.Tensor]
#: Deviations of a mean of independent numbers that one draw in a million exceeds.
MOST = 5.0


def _calls(folder: Path, draw: Callable[[], Tensors], seed: int, count: int = 1) -> list[Tensors]:
    """Return what the first calls of a function that only draws give, in doubles."""
    torch.manual_seed(seed)
    zero = {"x": torch.zeros(())}
    compiled = context("pfvm:cpu").compile(
        lambda d: {name: value + d["x"] for name, value in draw().items()}, zero, folder
    )
    calls = (compiled(zero) for _ in range(count))
    return [{name: value.cpu().double() for name, value in call.items()} for call in calls]


def _uniform(*size: int) -> Tensors:
    return {"first": torch.rand(size), "other": torch.rand(size)}


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_numbers_look_independent(tmp_path: Path, seed: int) -> None:
    call, next_call = _calls(tmp_path / "out", lambda: _uniform(512, 512), seed, 2)
    first, other, later = call["first"], call["other"], next_call["first"]
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
    if not LONG:  # `pfvm/test_random.py` compares both
        return
    host = _step(tmp_path / "host", "pfvm:cpu")
    for ours, theirs in zip(found, host, strict=True):
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


#: How far a normal number may lie from the formula of Box and Muller in exact arithmetic.
NORMAL_ERROR = 2e-6


def _box_muller(folder: Path, seed: int, *size: int) -> torch.Tensor:
    """Return the formula in doubles, of the first two draws of a function."""
    (drawn,) = _calls(folder, lambda: _uniform(*size), seed)
    turned = torch.cos(2 * pi * drawn["other"])
    return (-2 * torch.log1p(-drawn["first"])).sqrt() * turned


@pytest.mark.parametrize("seed", [0, 77])
def test_normal_numbers(tmp_path: Path, seed: int) -> None:
    (drawn,) = _calls(tmp_path / "out", lambda: {"y": torch.randn(512, 512)}, seed)
    found = drawn["y"]
    wanted = _box_muller(tmp_path / "uniform", seed, 512, 512)
    assert float((found - wanted).abs().max()) < NORMAL_ERROR
    count, values = found.numel(), found
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(((values**power).mean() - moment) * sqrt(count / spread)) < MOST, power
    for bound in (-2.0, -0.5, 0.1, 1.7):
        chance = (1 + erf(bound / sqrt(2))) / 2
        share = (values < bound).double().mean()
        assert abs((share - chance) * sqrt(count / (chance * (1 - chance)))) < MOST, bound
    near = (values[1:] * values[:-1]).mean(), (values[:, 1:] * values[:, :-1]).mean()
    assert max(abs(one) for one in near) * sqrt(count) < MOST


@pytest.mark.long
def test_normal_numbers_on_the_device(tmp_path: Path) -> None:
    results = {}
    for device in ("emu2:mini", "pfvm:cpu"):
        torch.manual_seed(3)
        model = nn.Linear(3, 2)
        optimizer = MNCoreSGD(model.parameters(), 0.0)
        chip = context(device)
        chip.registry.register("model", model)
        chip.registry.register("optimizer", optimizer)

        def run(
            d: Mapping[str, torch.Tensor],
            model: nn.Module = model,
            optimizer: MNCoreSGD = optimizer,
        ) -> Tensors:
            optimizer.zero_grad()
            first = torch.randn(21, 13)
            loss = model(d["x"] + torch.randn_like(d["x"])).sum()
            loss.backward()
            optimizer.step()
            filled = torch.empty(40, 50).normal_(2.0, 0.5)
            return {"first": first, "filled": filled, "flat": torch.empty(30, 40).uniform_(-1, 3)}

        compiled = chip.compile(run, {"x": torch.ones(4, 3)}, tmp_path / device[:4])
        results[device] = [compiled({"x": torch.ones(4, 3)}) for _ in range(2)]
    assert report_of(tmp_path / "emu2")["host_fallback"] == []
    wanted = _box_muller(tmp_path / "uniform", 3, 21, 13)
    for ours, theirs in zip(results["emu2:mini"], results["pfvm:cpu"], strict=True):
        for name in ("first", "filled", "flat"):
            difference = ours[name].cpu() - theirs[name].cpu()
            assert float(difference.abs().max()) <= NORMAL_ERROR, name
    first = results["emu2:mini"][0]
    assert float((first["first"].cpu().double() - wanted).abs().max()) < NORMAL_ERROR
    assert abs(float(first["filled"].cpu().mean()) - 2.0) < MOST * 0.5 / sqrt(2000)
    assert abs(float(first["flat"].cpu().mean()) - 1.0) < MOST * 4 / sqrt(12 * 1200)
    assert -1 <= float(first["flat"].cpu().min()) < float(first["flat"].cpu().max()) < 3
    assert not torch.equal(first["first"].cpu(), results["emu2:mini"][1]["first"].cpu())


def test_neighbouring_seeds_have_other_numbers(tmp_path: Path) -> None:
    """The second call with a seed must not be the first call with the next one."""
    calls = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        compiled = context("pfvm:cpu").compile(
            lambda d: {"y": torch.rand_like(d["x"])}, {"x": torch.ones(40)}, tmp_path / str(seed)
        )
        calls.append([compiled({"x": torch.ones(40)})["y"].cpu() for _ in range(2)])
    (_, second), (first, _) = calls
    assert (second == first).sum() <= 1
    apart = [abs(first_call(seed) - first_call(seed + 1)) for seed in (*range(300), 2**32 - 1)]
    assert min(apart) > 1000
    assert first_call(3) != first_call(3 + 2**32)


DRAWS = {
    "rand": lambda **g: torch.rand(2, 3, **g),
    "rand_like": lambda **g: torch.rand_like(torch.ones(2, 3), **g),
    "randn": lambda **g: torch.randn((2, 3), **g),
    "randint": lambda **g: torch.randint(1, 7, (2, 3), **g),
    "normal": lambda **g: torch.normal(1.0, 2.0, (2, 3), **g),
    "normal_": lambda **g: torch.empty(2, 3).normal_(**g),
    "uniform_": lambda **g: torch.empty(2, 3).uniform_(1, 2, **g),
    "bernoulli": lambda **g: torch.bernoulli(torch.full((2, 3), 0.5), **g),
    "random_": lambda **g: torch.empty(2, 3).random_(0, 1000, **g),
}


@pytest.mark.parametrize(("name", "trains"), sampled([*product(DRAWS, (False, True))], every=7))
def test_generators(tmp_path: Path, name: str, trains: bool) -> None:
    """None is no generator; the numbers of another one are not those of the function."""
    weight = nn.Parameter(torch.ones(2, 3))
    set_tensor_name(weight, "weight")
    chip = context("pfvm:cpu")
    chip.register_param(weight)

    def drawn(generator: torch.Generator | None) -> list[torch.Tensor]:
        def run(d: Tensors) -> Tensors:
            found = DRAWS[name](generator=generator) * d["x"]
            if trains:
                (found * weight).sum().backward()
            return {"y": found}

        compiled = chip.compile(run, {"x": torch.ones(2, 3)}, tmp_path / "out")
        return [compiled({"x": torch.ones(2, 3)})["y"].cpu() for _ in range(8)]

    first, *others = drawn(None)
    assert not all(torch.equal(first, other) for other in others)
    with pytest.raises(PycompilerError, match="Generator") as caught:
        drawn(torch.Generator())
    assert caught.value.code == "P0138"
    assert caught.value.place is not None
