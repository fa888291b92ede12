"""What a backward pass that the compiler adds keeps, and what it computes again."""

from __future__ import annotations

from pathlib import Path

import torch
from compiling import context, report_of
from torch import nn

ROWS = 100


class Polynomial(nn.Module):
    """Its gradient reads what every step computes: a sum and a product of the step before."""

    def __init__(self) -> None:
        super().__init__()
        self.p, self.q = (nn.Parameter(torch.full((ROWS, 8, 8), 0.5)) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x * self.p
        out = out * out + out
        out = out * out + out
        out = out * out + self.q
        return (out * out).mean()


def test_cost_decides_between_keeping_and_computing_again(tmp_path: Path) -> None:
    """With little room the search computes a sum again, and needs fewer cycles and words."""
    x = torch.rand(ROWS, 8, 8, generator=torch.Generator().manual_seed(0))
    found, reports = [], []
    for scheduler in ("spill_opt", "auto_recompute_sa"):
        model = Polynomial()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        shared = context("emu2:mini")
        shared.registry.register("model0", model)
        shared.registry.register("optimizer0", optimizer)
        options = {"backprop": True, "scheduler": scheduler, "sram_budget": 0.4, "emit": "concat"}
        options |= {"time_slice": "off", "simulation_mode": "fake", "sa_expected_run_iters": 3000}
        step = shared.compile(
            lambda d, model=model: {"loss": model(d["x"])},
            {"x": x},
            tmp_path / scheduler,
            options=options,
            optimizers=[optimizer],
        )
        more = {
            "optimizer0@0@mncore_learning_rate": torch.tensor(0.1),
            "optimizer0@0@mncore_global_step": torch.tensor(0),
            "mncore_grad_scale_factor": torch.tensor(1.0),
        }
        loss = step({"x": x, **more})["loss"].cpu()
        shared.synchronize()
        found.append([loss, *(one.detach() for one in model.parameters())])
        reports.append(report_of(tmp_path / scheduler))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    kept, again = reports
    assert not any(".again" in row["node"] for row in kept["nodes"])
    assert any(".again" in row["node"] for row in again["nodes"])
    assert again["cycles"] < kept["cycles"]
    assert sum(again["dram_words"].values()) < sum(kept["dram_words"].values())
