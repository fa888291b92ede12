"""Updates that run behind their gradients, and the bits of training steps that do so."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from compiling import context, sampled
from torch import nn

from pycompiler.graph.graph import MNGraph
from pycompiler.graph.text import parse_graph
from pycompiler.layers.dram_transfer import UPLOAD
from pycompiler.mlsdk import MNCoreAdam, MNCoreSGD
from pycompiler.scheduler import schedule_in_lm

LAYERS = 2


def trained(folder: Path, kind: str, **options: object) -> tuple[MNGraph, list[bytes]]:
    """Return the scheduled graph, and the bits of losses and parameters after three steps."""
    torch.manual_seed(5)
    model = nn.Sequential(*(nn.Linear(17, 17) for _ in range(LAYERS)))
    parameters = list(model.parameters())
    optimizer = (
        MNCoreSGD(parameters, 0.1, 0.9, 0.0) if kind == "SGD" else MNCoreAdam(parameters, lr=0.01)
    )
    shared = context("emu2:mini")
    shared.registry.register("model0", model)
    shared.registry.register("optimizer0", optimizer)

    def step(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        optimizer.zero_grad()
        loss = (torch.tanh(model(d["x"])) ** 2).mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    data = [{"x": torch.randn(6, 17)} for _ in range(3)]
    compiled = shared.compile(step, data[0], folder, options=options)
    losses = [compiled(one)["loss"].cpu().numpy().tobytes() for one in data]
    shared.synchronize()
    graph = parse_graph((folder / "layout.spill_opt.txt").read_text())
    return graph, [*losses, *(t.detach().numpy().tobytes() for t in model.parameters())]


def first_upload(graph: MNGraph) -> tuple[int, int]:
    """Return the places of the first upload of a weight, and of the last product."""
    products = [n for n, node in enumerate(graph.nodes) if node.op in ("MatMul", "Gemm")]
    uploads = [
        n
        for n, node in enumerate(graph.nodes)
        if node.op == UPLOAD and "weight__new" in node.outputs[0]
    ]
    return uploads[0], products[-1]


@pytest.mark.parametrize("kind", sampled(["SGD", "Adam"]))
def test_updates_run_in_the_backward_pass(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, found = trained(tmp_path / "early", kind)
    upload, product = first_upload(early)
    assert upload < product
    monkeypatch.setattr(schedule_in_lm, "update_early", lambda graph, renewed, target: None)
    late, wanted = trained(tmp_path / "late", kind)
    upload, product = first_upload(late)
    assert upload > product
    assert found == wanted
