"""Whole networks from PyTorch, compiled, emulated and compared, with all schedulers and modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compiling import context, report_of, run
from torch import nn

from pycompiler.frontend.export import export
from pycompiler.layout_passes import LayoutPlans
from pycompiler.machine import load_target
from pycompiler.models.networks import residual_mlp
from pycompiler.options import parse_options
from pycompiler.pipeline import Compiled, compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request

Tensors = dict[str, torch.Tensor]
F = nn.functional


def perceptron() -> tuple[Callable[[Tensors], Tensors], Tensors]:
    """An MLP 784-256-128-10 with softmax."""
    layers: list[nn.Module] = []
    for wide, narrow in ((784, 256), (256, 128), (128, 10)):
        layers += [nn.Linear(wide, narrow), nn.ReLU()]
    model = nn.Sequential(*layers[:-1]).eval()
    return lambda d: {"y": torch.softmax(model(d["x"]), -1)}, {"x": torch.randn(32, 784)}


def residual() -> tuple[Callable[[Tensors], Tensors], Tensors]:
    """An 8-layer residual MLP."""
    model, inputs = residual_mlp(1)
    model.eval()
    return lambda d: {"y": model(d["x"])}, inputs


class Block(nn.Module):
    """A pre-norm encoder block."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.read, self.write = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.one, self.other = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend, then apply the MLP; shape ``(batch, sequence, width)``."""
        batch, length, width = x.shape

        def split(t: torch.Tensor) -> torch.Tensor:
            return t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = (split(t) for t in self.read(self.one(x)).chunk(3, -1))
        scores = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        mixed = (scores @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.write(mixed)
        return x + self.down(F.gelu(self.up(self.other(x))))


def encoder() -> tuple[Callable[[Tensors], Tensors], Tensors]:
    """A two-block transformer encoder: width 128, 4 heads, sequence 64."""
    model = nn.Sequential(Block(128, 4), Block(128, 4)).eval()
    return lambda d: {"y": model(d["x"])}, {"x": torch.randn(1, 64, 128)}


def bigram() -> tuple[Callable[[Tensors], Tensors], Tensors]:
    """A bigram language model with its loss."""
    table = nn.Embedding(65, 65).eval()

    def forward(d: Tensors) -> Tensors:
        logits = table(d["tokens"])
        loss = F.cross_entropy(logits.view(-1, 65), d["targets"].view(-1))
        return {"logits": logits, "loss": loss}

    shape = (2, 8)
    return forward, {n: torch.randint(0, 65, shape) for n in ("tokens", "targets")}


NETWORKS = {f.__name__: f for f in (perceptron, residual, encoder, bigram)}


def other_inputs(inputs: Mapping[str, torch.Tensor]) -> Tensors:
    """Inputs that differ from those given at compile time."""
    torch.manual_seed(99)
    return {
        name: torch.randn_like(t) if t.is_floating_point() else torch.randint_like(t, 65)
        for name, t in inputs.items()
    }


#: Tests of models and of layers have the parts of the encoder; others here have residual layers.
LONGER = ("encoder", "residual")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long if n in LONGER else ()) for n in NETWORKS],
)
def test_network(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    function, inputs = NETWORKS[name]()
    compiled = context().compile(function, inputs, tmp_path / "out", options={"strict": True})
    assert report_of(tmp_path / "out")["host_fallback"] == []
    given = other_inputs(inputs)
    found = compiled(given)
    for key, wanted in function(given).items():
        assert torch.allclose(found[key].cpu(), wanted, rtol=2e-5, atol=2e-5), key
    dumps = sorted(path.name for path in (tmp_path / "out").glob("layout.*.txt"))
    assert "layout.layout.txt" in dumps


@lru_cache(maxsize=1)
def _small() -> tuple[Any, Mapping[str, np.ndarray], np.ndarray]:
    torch.manual_seed(2)
    model = nn.Sequential(residual_mlp(1, 20, 2)[0], Block(20, 2).eval()).eval()
    x = torch.randn(1, 6, 20)
    exported = export(lambda d: {"y": model(d["x"])}, {"x": torch.zeros_like(x)})
    with torch.no_grad():
        return exported, {"x": x.numpy()}, model(x).numpy()


@lru_cache
def _compiled(**options: Any) -> tuple[Compiled, Report]:
    report, target, checked = Report("mini", options), load_target("mini"), parse_options(options)
    return compile_onnx(Request(_small()[0], target, checked, report, plans=_plans())), report


@lru_cache(maxsize=1)
def _plans() -> LayoutPlans:
    return LayoutPlans()


SCHEDULERS = ("always_from_dram", "reuse_consecutive", "spill_opt")


def test_schedulers_agree_bit_by_bit() -> None:
    _, inputs, wanted = _small()
    found: dict[str, np.ndarray] = {}
    moved: dict[str, int] = {}
    for scheduler in SCHEDULERS:
        result, report = _compiled(scheduler=scheduler)
        found[scheduler] = run(result, inputs)["y"]
        moved[scheduler] = sum(report.data["dram_words"].values())
    assert np.allclose(found["spill_opt"], wanted, rtol=1e-5, atol=1e-5)
    for array in found.values():
        assert np.array_equal(array, found["spill_opt"])
    assert moved["spill_opt"] < moved["reuse_consecutive"] < moved["always_from_dram"]


def test_each_scheduler_reports_what_it_came_to() -> None:
    budget = load_target("mini").words("lm0")
    found = {}
    for scheduler in SCHEDULERS:
        _, report = _compiled(scheduler=scheduler)
        facts = found[scheduler] = report.data["schedule"]
        words = facts["dram_words"]
        assert facts["scheduler"] == scheduler
        assert facts["steps"] == report.data["steps"] > 0
        assert words["parameters"] + words["read"] == report.data["dram_words"]["read"]
        assert words["written"] == report.data["dram_words"]["written"]
        assert 0 < facts["lm_peak"]["lm0"] <= budget
        assert 0 < facts["lm_peak"]["lm1"] <= budget
    parameters = {facts["dram_words"]["parameters"] for facts in found.values()}
    assert min(parameters) > 0
    other = {
        scheduler: facts["dram_words"]["read"] + facts["dram_words"]["written"]
        for scheduler, facts in found.items()
    }
    assert other["spill_opt"] * 4 <= other["always_from_dram"]


@pytest.mark.long
def test_a_small_budget_spills_and_agrees() -> None:
    _, inputs, _ = _small()
    # Without slices, which would have other layouts.
    wide, wide_report = _compiled(scheduler="spill_opt", time_slice="off")
    narrow, report = _compiled(scheduler="spill_opt", time_slice="off", sram_budget=0.1)
    assert np.array_equal(run(wide, inputs)["y"], run(narrow, inputs)["y"])
    assert sum(report.data["dram_words"].values()) > sum(wide_report.data["dram_words"].values())


@pytest.mark.long
def test_mixed_stays_within_half() -> None:
    _, inputs, wanted = _small()
    result, report = _compiled(float_dtype="mixed")
    assert report.data["host_fallback"] == []
    error = np.abs(run(result, inputs)["y"] - wanted).max()
    assert 1e-6 < error < 0.1
