"""DRAM words of a training step under two schedulers: a row for `make bench`.

All words count, those of parameters and momentum too. Both schedulers must move those, so the
ratio without them is smaller still.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from targets_layers import Row
from torch import nn
from torch.nn.functional import cross_entropy

from pycompiler.mlsdk import Context, MNCoreSGD, MNDevice

CLASSES = 10
MOST = 0.25


def words(layers: int, batch: int, width: int, machine: str, scheduler: str) -> int:
    """Return the long words that a step of SGD with momentum moves from and to DRAM."""
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    for _ in range(layers - 1):
        parts += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Linear(width, CLASSES))
    optimizer = MNCoreSGD(model.parameters(), lr=0.1, momentum=0.9)
    context = Context(MNDevice(f"emu2:{machine}"))
    context.registry.register("model0", model)
    context.registry.register("optimizer0", optimizer)

    def step(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        optimizer.zero_grad()
        loss = cross_entropy(model(d["x"]), d["t"])
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    sample = {"x": torch.randn(batch, width), "t": torch.randint(CLASSES, (batch,))}
    with tempfile.TemporaryDirectory() as folder:
        context.compile(step, sample, Path(folder) / "out", options={"scheduler": scheduler})
        moved = json.loads((Path(folder) / "out" / "report.json").read_text())["dram_words"]
    return int(moved["read"] + moved["written"])


def rows(
    layers: int = 8, batch: int = 256, width: int = 1024, machine: str = "mncore2"
) -> Iterator[Row]:
    """Yield the words of ``spill_opt`` over those of ``always_from_dram``."""
    value = words(layers, batch, width, machine, "spill_opt")
    bound = words(layers, batch, width, machine, "always_from_dram")
    yield {
        "name": f"DRAM words of a training step, {layers} layers, batch {batch}, width {width}",
        "value": value,
        "unit": "long words",
        "bound": bound,
        "ratio": value / bound,
        "target": f"at most {MOST}",
        "met": value <= MOST * bound,
    }
