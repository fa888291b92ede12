"""Training steps of modules whose norms follow the batches or the weights, against torch alone.

The host computes one in stages: its function has an operator that onnxruntime lacks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from compiling import sampled
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from pycompiler.mlsdk import Context, MNCoreSGD, MNDevice


class Bags(nn.Module):
    """Bags of words, which the host sums up in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(7, 4, mode="mean")
        self.last = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.words((x.abs() * 100).long() % 7))  # type: ignore[no-any-return]


STAGES = "in stages"
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "cumulative": (
        lambda: nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3, momentum=None)),
        (6, 5),
    ),
    "cumulative of pictures": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3, momentum=None), nn.AdaptiveAvgPool2d(1)
        ),
        (4, 1, 5, 5),
    ),
    "weight norm": (lambda: weight_norm(nn.Linear(5, 3)), (6, 5)),
    "weight norm of columns": (lambda: weight_norm(nn.Linear(5, 3), dim=1), (6, 5)),
    STAGES: (Bags, (4, 5)),
}


@pytest.mark.parametrize("name", [STAGES, *sampled([*MODULES][:-1], first=1)])
def test_steps(name: str, tmp_path: Path) -> None:
    make, shape = MODULES[name]
    torch.manual_seed(0)
    module = make()
    own = copy.deepcopy(module)
    x, target = torch.randn(shape), torch.randint(0, 3, shape[:1])
    optimizer = MNCoreSGD(module.parameters(), lr=0.1)
    plain = torch.optim.SGD(own.parameters(), lr=0.1)
    context = Context(MNDevice("pfvm:cpu"))
    context.registry.register("module", module)
    context.registry.register("optimizer", optimizer)

    def step(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        optimizer.zero_grad()
        loss = functional.cross_entropy(module(tensors["x"]).flatten(1), tensors["target"])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return {"loss": loss}

    compiled = context.compile(step, {"x": x, "target": target}, tmp_path / "out", quiet=True)
    for turn in range(3):
        given = x * (1 + turn)
        found = compiled({"x": given, "target": target})["loss"].cpu()
        plain.zero_grad()
        wanted = functional.cross_entropy(own(given).flatten(1), target)
        wanted.backward()
        plain.step()
        assert torch.allclose(found, wanted.detach(), atol=1e-5)
    context.synchronize()
    for (key, one), other in zip(module.named_buffers(), own.buffers(), strict=True):
        assert torch.allclose(one, other, atol=1e-5), key
    assert all(layer.momentum is None for layer in module.modules() if hasattr(layer, "momentum"))
