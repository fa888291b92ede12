"""Training steps of convolutions: the same bits in every way, and near torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context, report_of, sampled
from torch import nn

from pycompiler.mlsdk import MNCoreSGD
from pycompiler.pfvm.windows import WEIGHT_GRADIENT

Tensors = dict[str, torch.Tensor]
STEPS = 2
#: Ways to compile a step that may not change a bit of it.
WAYS = (
    {"scheduler": "always_from_dram"},
    {"scheduler": "auto_recompute_sa", "sa_expected_run_iters": 100},
    {"scheduler": "spill_opt", "emit": "concat", "sram_budget": 0.5},
    {"scheduler": "reuse_consecutive", "emit": "concat"},
)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    first, last = (nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(2))
    return nn.Sequential(first, nn.BatchNorm2d(16), nn.ReLU(), last).train()


def batch(seed: int) -> Tensors:
    torch.manual_seed(seed)
    return {name: torch.randn(2, 16, 4, 4) for name in ("x", "w")}


def stepped(model: nn.Module, optimizer: Any, d: Mapping[str, torch.Tensor]) -> Tensors:
    optimizer.zero_grad()
    loss = (model(d["x"]) * d["w"]).mean()
    loss.backward()
    optimizer.step()
    return {"loss": loss}


def state(model: nn.Module, losses: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    kept = (v.detach().clone() for v in (*model.parameters(), *model.buffers()))
    return [*kept, *(loss.detach().cpu() for loss in losses)]


def on_device(folder: Path, **options: Any) -> list[torch.Tensor]:
    """Return parameters, statistics and losses of some steps."""
    model, shared = network(), context("emu2:mini")
    optimizer = MNCoreSGD(model.parameters(), 0.1, 0.9, 1e-4)
    shared.registry.register("model0", model)
    shared.registry.register("optimizer0", optimizer)
    given = {"float_dtype": "mixed", "layout_planner": "first_arrival", **options}
    step = shared.compile(lambda d: stepped(model, optimizer, d), batch(0), folder, options=given)
    losses = [step(batch(seed))["loss"] for seed in range(STEPS)]
    shared.synchronize()
    return state(model, losses)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[torch.Tensor]:
    """Return what the options that nobody sets give."""
    folder = tmp_path_factory.mktemp("usual")
    found = on_device(folder)
    assert WEIGHT_GRADIENT in {node["op"] for node in report_of(folder)["nodes"]}
    return found


def test_steps_are_near_torch(usual: list[torch.Tensor]) -> None:
    """Factors have 10 bits of fraction; a mean over random signs loses some of them."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=1e-4)
    losses = [stepped(model, optimizer, batch(seed))["loss"] for seed in range(STEPS)]
    for found, wanted in zip(usual, state(model, losses), strict=True):
        assert (found - wanted).abs().max() <= 2e-3 * max(1.0, float(wanted.abs().max()))


@pytest.mark.parametrize(
    "way", sampled(WAYS, every=4, first=2), ids=lambda way: "-".join(map(str, way.values()))
)
def test_every_way_gives_the_same_bits(
    tmp_path: Path, usual: list[torch.Tensor], way: dict[str, Any]
) -> None:
    found = on_device(tmp_path, **way)
    assert all(torch.equal(one, other) for one, other in zip(found, usual, strict=True))
