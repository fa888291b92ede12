"""One training step of a residual network in `mixed`, against torch."""

from __future__ import annotations

import copy
import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from compiling import SCRIPTS

import pycompiler.mlsdk
from pycompiler.mlsdk import Context, MNCoreSGD, MNDevice
from pycompiler.tolerance import NETWORKS

ARGUMENTS = ("--plain", "--steps", "0", "--batch", "32")


@pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="takes minutes: EMU2_LONG=1")
@pytest.mark.parametrize(("blocks", "median", "most"), [(1, 0.12, 0.2), (3, 0.24, 0.5)])
def test_one_step(
    blocks: int, median: float, most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss, weights and running statistics are torch's; the step has its direction.

    Biases of norms begin at 0, so after one step they are their gradients. The gradients of the
    first layers come through all others. ``median`` and ``most`` bound the differences of the
    changes of single tensors, relative to their norms.
    """
    monkeypatch.setitem(sys.modules, "mlsdk", pycompiler.mlsdk)
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.setattr(sys, "argv", ["resnet20.py", *ARGUMENTS, "--blocks", str(blocks)])
    found = runpy.run_path(str(SCRIPTS / "resnet20.py"))
    model, batch = found["model"], {"x": found["pictures"][:32], "t": found["labels"][:32]}
    start = copy.deepcopy(model.state_dict())
    loss = found["train_step"](batch)["loss"].item()
    wanted = copy.deepcopy(model.state_dict())
    model.load_state_dict(start)
    optimizer = MNCoreSGD(model.parameters(), 0.05, 0.9, 1e-4)

    def step(batch: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        optimizer.zero_grad()
        made = torch.nn.functional.cross_entropy(model(batch["x"]), batch["t"])
        made.backward()
        optimizer.step()
        return {"loss": made}

    context = Context(MNDevice("emu2"))
    context.registry.register("model0", model)
    context.registry.register("optimizer0", optimizer)
    compiled = context.compile(step, batch, tmp_path / "out", options={"float_dtype": "mixed"})
    assert compiled(batch)["loss"].item() == pytest.approx(loss, rel=1e-3)
    context.synchronize()
    parameters = {name for name, _ in model.named_parameters()}
    ours, theirs = [], []
    for name, value in model.state_dict().items():
        if name in parameters:
            ours.append((value - start[name]).flatten())
            theirs.append((wanted[name] - start[name]).flatten())
        if not name.endswith("bias"):
            bound = NETWORKS["mixed"] * wanted[name].double().abs().max()
            assert (value.double() - wanted[name].double()).abs().max() <= bound, name
    errors = sorted(float((a - b).norm() / b.norm()) for a, b in zip(ours, theirs, strict=True))
    assert errors[len(errors) // 2] < median
    assert errors[-1] < most
    one, other = torch.cat(ours), torch.cat(theirs)
    assert torch.nn.functional.cosine_similarity(one, other, dim=0) > 0.95
