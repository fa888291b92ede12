"""Mistakes of a user who trains: each gets one diagnostic, which says what to do."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from compiling import context
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.mlsdk import (
    CompiledFunction,
    Context,
    MNCoreAdam,
    MNCoreAdamW,
    MNCoreLRScheduler,
    MNCoreOptimizer,
    MNCoreSGD,
    set_buffer_name_in_optimizer,
)
from pycompiler.pfvm.source import source_of


@dataclass
class Run:
    """A model that trains in a context; a mistake changes it at some time."""

    chip: Context
    model: nn.Linear
    optimizer: torch.optim.Optimizer
    folder: Path
    #: What is registered, by the time of the compile.
    registered: tuple[str, ...] = ("model", "optimizer")
    sample: Mapping[str, torch.Tensor] | None = None
    #: What the function does last.
    last: Callable[[], object] = lambda: None

    def register(self) -> None:
        for name in self.registered:
            self.chip.registry.register(name, getattr(self, name))

    def compile(self) -> CompiledFunction:
        def step(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            self.optimizer.zero_grad()
            loss = self.model(d["x"]).square().sum()
            loss.backward()
            self.optimizer.step()
            self.last()
            return {"loss": loss}

        return self.chip.compile(step, self.inputs(4), self.folder)

    def inputs(self, rows: int) -> dict[str, torch.Tensor]:
        return {"x": torch.ones(rows, self.model.weight.shape[1])}


def _resize(run: Run) -> None:
    run.model.weight.data = torch.ones(2, 5)


def _model_forgotten(run: Run) -> None:
    run.registered = ("optimizer",)
    run.register()
    run.compile()


def _optimizer_forgotten(run: Run) -> None:
    run.registered = ("model",)
    run.register()
    run.compile()


def _group_forgotten(run: Run) -> None:
    """A layer that came after the registration."""
    run.register()
    last = nn.Linear(2, 1)
    run.optimizer.add_param_group({"params": list(last.parameters())})
    run.model.forward = lambda x: last(nn.Linear.forward(run.model, x))  # type: ignore[method-assign]
    run.compile()


def _resized_before_compiling(run: Run) -> None:
    run.register()
    _resize(run)
    run.compile()


def _resized_before_coming_back(run: Run) -> None:
    run.register()
    run.compile()(run.inputs(4))
    _resize(run)
    run.chip.synchronize()


def _other_batch(run: Run) -> None:
    run.register()
    run.compile()(run.inputs(5))


def _other_values(run: Run) -> None:
    run.register()
    run.chip.get_registered_value_proxy(run.model.weight).load_from(torch.ones(2, 5))


def _other_state(run: Run) -> None:
    run.register()
    state = deepcopy(run.optimizer.state_dict())
    state["state"][0]["momentum_buffer"] = torch.ones(7)
    run.optimizer.load_state_dict(state)


def _other_model(run: Run) -> None:
    run.register()
    run.model = nn.Linear(5, 2)
    run.register()


def _step_outside(run: Run) -> None:
    run.register()
    run.compile()(run.inputs(4))
    run.model(run.inputs(4)["x"]).sum().backward()
    run.optimizer.step()


def _step_of_torch_outside(run: Run) -> None:
    run.optimizer = torch.optim.Adam(run.model.parameters())
    run.register()
    run.model(run.inputs(4)["x"]).sum().backward()
    run.optimizer.step()


def _state_of_torch_inside(run: Run) -> None:
    """Its momentum would begin anew in each call."""
    run.optimizer = torch.optim.SGD(run.model.parameters(), 0.1, 0.9)
    run.registered = ("model",)
    run.register()
    try:
        run.compile()
    finally:
        assert not run.optimizer.state


def _adam_of_torch_inside(run: Run) -> None:
    run.optimizer = torch.optim.Adam(run.model.parameters())
    run.register()
    run.compile()


def _of_torch(kind: str) -> Callable[[Run], None]:
    """Their state is there before the first step, or decides about it on the host."""

    def make(run: Run) -> None:
        run.optimizer = getattr(torch.optim, kind)(run.model.parameters())
        run.registered = ("model",)
        run.register()
        run.compile()

    return make


def _scaler_inside(run: Run) -> None:
    """It would begin anew in each call, or keep the scale that it has now."""
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(()))
    run.register()
    run.last = lambda: scaler.scale(torch.ones(()))
    run.compile()


def _other_memory(run: Run) -> None:
    run.register()
    run.last = lambda: setattr(run.model.bias, "data", run.model.bias * 2)
    try:
        run.compile()
    finally:
        assert type(run.model.bias.data) is torch.Tensor


def _rate_of_torch(run: Run) -> None:
    """It is a constant of the function."""
    run.optimizer = torch.optim.SGD(run.model.parameters(), 0.1)
    run.registered = ("model",)
    run.register()
    compiled = run.compile()
    run.optimizer.param_groups[0]["lr"] = 0.05
    compiled(run.inputs(4))


def _momentum_of_a_scheduler(run: Run) -> None:
    run.register()
    rates = torch.optim.lr_scheduler.OneCycleLR(run.optimizer, 0.5, total_steps=6)
    compiled = run.compile()
    compiled(run.inputs(4))
    rates.step()
    compiled(run.inputs(4))


def _parameters_added(run: Run) -> None:
    run.register()
    compiled = run.compile()
    run.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
    compiled(run.inputs(4))


def _rate_inside(run: Run) -> None:
    run.register()
    group = run.optimizer.param_groups[0]
    run.last = lambda: group.update(lr=group["lr"] / 2)
    try:
        run.compile()
    finally:
        assert group["lr"] == 0.1


def _scheduler_inside(run: Run) -> None:
    run.register()
    rates = torch.optim.lr_scheduler.StepLR(run.optimizer, 9)
    run.last = MNCoreLRScheduler(rates, run.chip).step
    run.compile()


def _without_values(run: Run) -> None:
    run.model = nn.Linear(3, 2, device="meta")
    run.register()


def _lazy(run: Run) -> None:
    run.model = nn.LazyLinear(2)
    run.register()


MISTAKES: Mapping[str, tuple[Callable[[Run], None], str, str]] = {
    "model forgotten": (_model_forgotten, "P0115", "context.registry.register(prefix, module)"),
    "optimizer forgotten": (_optimizer_forgotten, "P0115", "register_optimizer_buffers(optimizer)"),
    "group forgotten": (_group_forgotten, "P0115", "register"),
    "resized before compiling": (_resized_before_compiling, "P0608", "float32 (2, 5) now"),
    "resized before coming back": (_resized_before_coming_back, "P0608", "model.weight"),
    "other batch": (_other_batch, "P0603", "x: float32 (4, 3)"),
    "other values": (_other_values, "P0609", "float32 (2, 3)"),
    "other state": (_other_state, "P0704", "momentum_buffer"),
    "other model": (_other_model, "P0608", "another tensor is registered"),
    "step outside": (_step_outside, "P0117", "inside the function"),
    "step of torch outside": (_step_of_torch_outside, "P0117", "Adam.step()"),
    "Adagrad of torch inside": (_of_torch("Adagrad"), "P0703", "`Adagrad.step()`"),
    "ASGD of torch inside": (_of_torch("ASGD"), "P0703", "`ASGD.step()`"),
    "a scaler inside": (_scaler_inside, "P0703", "`GradScaler` is not supported"),
    "other memory": (_other_memory, "P0703", "tensor.copy_(value)"),
    "state of torch inside": (_state_of_torch_inside, "P0703", "MNCoreSGD"),
    "Adam of torch inside": (_adam_of_torch_inside, "P0703", "MNCoreAdam"),
    "rate of torch": (_rate_of_torch, "P0703", "`lr = 0.05`"),
    "momentum of a scheduler": (_momentum_of_a_scheduler, "P0703", "`momentum = "),
    "parameters added": (_parameters_added, "P0703", "compile it again"),
    "rate inside": (_rate_inside, "P0703", "between calls"),
    "scheduler inside": (_scheduler_inside, "P0703", "between calls"),
    "without values": (_without_values, "P0608", "no values yet"),
    "lazy": (_lazy, "P0608", "no values yet"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_diagnostic(tmp_path: Path, mistake: str) -> None:
    make, code, text = MISTAKES[mistake]
    model = nn.Linear(3, 2)
    optimizer: Any = MNCoreSGD(model.parameters(), lr=0.1, momentum=0.9)
    run = Run(context("pfvm:cpu"), model, optimizer, tmp_path / "out")
    with pytest.raises(PycompilerError) as caught:
        make(run)
    shown = caught.value.render()
    assert caught.value.code == code
    assert text in shown
    assert shown.count("error[") == 1
    assert isinstance(optimizer, MNCoreOptimizer)


def test_torch_steps_again_when_the_context_has_ended() -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    chip = context("pfvm:cpu")
    chip.registry.register("optimizer", optimizer)
    chip.invalidate()
    before = model.bias.detach().clone()
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    assert torch.allclose(model.bias, before - 2.0)


def test_a_registered_momentum_of_torch_serves_inside(tmp_path: Path) -> None:
    """Its state exists and lives on the device, so nothing begins anew."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    twin = deepcopy(model)
    optimizer, theirs = (
        torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9) for m in (model, twin)
    )
    run = Run(context("pfvm:cpu"), model, optimizer, tmp_path / "out")
    run.register()
    compiled = run.compile()
    for _ in range(3):
        compiled(run.inputs(4))
        theirs.zero_grad()
        twin(run.inputs(4)["x"]).square().sum().backward()
        theirs.step()
    run.chip.synchronize()
    assert torch.allclose(model.weight, twin.weight, rtol=1e-5)


def test_operators_name_the_lines_of_the_function(tmp_path: Path) -> None:
    """Those of the backward pass and of the update too."""
    model = nn.Linear(3, 2)
    run = Run(context("pfvm:cpu"), model, MNCoreSGD(model.parameters(), 0.1, 0.9), tmp_path / "out")
    run.register()
    run.compile()
    made = onnx.load(tmp_path / "out" / "model.onnx")
    found = {str(source_of(node)) for node in made.graph.node}
    lines, first = inspect.getsourcelines(Run.compile)
    named = {f"{Path(__file__)}:{number}": line for number, line in enumerate(lines, first)}
    assert found <= {*named}
    for what in ("self.model(", "loss.backward()", "self.optimizer.step()"):
        assert any(what in named[place] for place in found), what


@pytest.mark.parametrize(
    "make",
    [
        lambda p: MNCoreSGD(p, -0.1),
        lambda p: MNCoreSGD(p, 0.1, nesterov=True),
        lambda p: MNCoreSGD(p, math.nan),
        lambda p: MNCoreSGD(p, math.inf),
        lambda p: MNCoreSGD(p, "0.1"),  # type: ignore[arg-type]
        lambda p: MNCoreAdam(p, betas=(0.9, 1.0)),
        lambda p: MNCoreAdam(p, betas=(0.9, 0.9, 0.9)),  # type: ignore[arg-type]
        lambda p: MNCoreAdam(p, betas=0.9),  # type: ignore[arg-type]
        lambda p: MNCoreAdam(p, betas=("0.9", 0.9)),  # type: ignore[arg-type]
        lambda p: MNCoreAdamW(p, eps=-1),
        lambda p: MNCoreAdam(p).load_state_dict(MNCoreSGD(p, 0.1).state_dict()),
        lambda p: set_buffer_name_in_optimizer(torch.optim.SGD(p, 0.1), "o"),  # type: ignore[arg-type]
        lambda p: set_buffer_name_in_optimizer(MNCoreSGD(p, 0.1), ""),
        lambda p: MNCoreLRScheduler(None, context("pfvm:cpu")),  # type: ignore[arg-type]
    ],
)
def test_wrong_settings(make: Callable[[Any], object]) -> None:
    with pytest.raises(PycompilerError) as caught:
        make([nn.Parameter(torch.ones(2))])
    assert caught.value.code == "P0704"
    assert "must be" in caught.value.render()


def test_rates_of_the_host() -> None:
    """A tensor is a rate too, also when a scheduler of torch writes into it."""
    optimizer = MNCoreSGD([nn.Parameter(torch.ones(2))], 0.1)
    (group,), rate = optimizer.param_groups, next(optimizer.state_tensors())[1]
    for wrong in ("high", None, [0.1], math.nan, math.inf, torch.ones(2)):
        group["lr"] = wrong
        with pytest.raises(PycompilerError, match=r"P0704.*`lr`"):
            optimizer.push_rates()
    assert rate.item() == pytest.approx(0.1)
    group["lr"] = torch.tensor(0.5)
    optimizer.push_rates()
    assert rate.item() == 0.5
    group["lr"].fill_(0.25)
    optimizer.push_rates()
    assert rate.item() == 0.25
