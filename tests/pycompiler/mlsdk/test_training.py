"""Training steps: backward passes and updates in the traced function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import SCRIPTS, context, report_of, sampled
from forked import Forks
from torch import nn
from torch.nn.functional import cross_entropy

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
    set_tensor_name,
)

Tensors = dict[str, torch.Tensor]
DEVICES = ["emu2:mini", "pfvm:cpu"]
#: The losses and biases of a layer of ones by the rule of gradient descent with momentum.
LOSSES = [11, 9.9, 7.81, 4.829, 1.0461, 0, 0, 0, 0, 0]
BIASES = [0.9, 0.71, 0.439, 0.0951, -0.31441, -0.682969, -1.0146721, -1.31320489, -1.5818844]
BIASES += [-1.82369596]


def mlp(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(9, 13), nn.ReLU(), nn.Linear(13, 5))


def batch(seed: int, rows: int = 6) -> Tensors:
    torch.manual_seed(seed)
    return {"x": torch.randn(rows, 9), "t": torch.randint(0, 5, (rows,))}


def training(model: nn.Module, optimizer: MNCoreOptimizer) -> Callable[[Tensors], Tensors]:
    def step(d: Tensors) -> Tensors:
        optimizer.zero_grad()
        loss = cross_entropy(model(d["x"]), d["t"])
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    return step


def started(
    device: str, folder: Path, model: nn.Module, optimizer: MNCoreOptimizer, **options: Any
) -> tuple[Context, CompiledFunction]:
    shared = context(device)
    shared.registry.register("model0", model)
    shared.registry.register("optimizer0", optimizer)
    step = training(model, optimizer)
    return shared, shared.compile(step, batch(0), folder, options=options)


def largest_difference(model: nn.Module, wanted: nn.Module) -> float:
    pairs = zip(model.parameters(), wanted.parameters(), strict=True)
    return max(float((a - b).detach().abs().max() / b.detach().abs().max()) for a, b in pairs)


OPTIMIZERS: Mapping[str, tuple[Callable[[Any], MNCoreOptimizer], Callable[[Any], Any]]] = {
    "SGD": (lambda p: MNCoreSGD(p, 0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "momentum": (
        lambda p: MNCoreSGD(p, 0.1, 0.9, 0.0),
        lambda p: torch.optim.SGD(p, 0.1, 0.9),
    ),
    "Nesterov and decay": (
        lambda p: MNCoreSGD(p, 0.05, 0.8, weight_decay=0.01, nesterov=True),
        lambda p: torch.optim.SGD(p, 0.05, 0.8, weight_decay=0.01, nesterov=True),
    ),
    "Adam": (
        lambda p: MNCoreAdam(p, lr=0.01, weight_decay=0.02),
        lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.02),
    ),
    "AdamW": (
        lambda p: MNCoreAdamW(p, lr=0.01, betas=(0.8, 0.95), eps=1e-6),
        lambda p: torch.optim.AdamW(p, lr=0.01, betas=(0.8, 0.95), eps=1e-6),
    ),
}


@pytest.mark.parametrize(
    ("case", "device"), sampled(list(product(OPTIMIZERS, DEVICES)), every=7, first=2)
)
def test_steps_match_torch(tmp_path: Path, device: str, case: str) -> None:
    make, make_torch = OPTIMIZERS[case]
    model, wanted = mlp(), mlp()
    reference = make_torch(wanted.parameters())
    shared, compiled = started(device, tmp_path / "step", model, make(model.parameters()))
    assert report_of(tmp_path / "step")["host_fallback"] == []
    for seed in range(1, 12):
        found = compiled(batch(seed))["loss"].item()
        reference.zero_grad()
        loss = cross_entropy(wanted(batch(seed)["x"]), batch(seed)["t"])
        loss.backward()
        reference.step()
        assert found == pytest.approx(loss.item(), rel=1e-4)
    shared.synchronize()
    assert largest_difference(model, wanted) < 1e-4


@pytest.mark.parametrize("case", ["Adam", "Nesterov and decay"])
def test_rates_of_doubles_are_doubles(tmp_path: Path, case: str) -> None:
    make, make_torch = OPTIMIZERS[case]
    model, wanted = nn.Linear(2, 1).double(), nn.Linear(2, 1).double()
    wanted.load_state_dict(model.state_dict())
    reference, optimizer = make_torch(wanted.parameters()), make(model.parameters())
    shared, x = context("pfvm:cpu"), torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    shared.registry.register("model0", model)
    shared.registry.register("optimizer0", optimizer)

    def step(d: Tensors, model: nn.Module, optimizer: Any) -> Tensors:
        optimizer.zero_grad()
        loss = model(d["x"]).square().sum()
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    compiled = shared.compile(lambda d: step(d, model, optimizer), {"x": x}, tmp_path / "step")
    for _ in range(3):
        compiled({"x": x})
        step({"x": x}, wanted, reference)
    shared.synchronize()
    assert largest_difference(model, wanted) < 1e-13


@pytest.mark.long
def test_a_hundred_steps_stay_close(tmp_path: Path) -> None:
    model, wanted = mlp(), mlp()
    reference = torch.optim.SGD(wanted.parameters(), 0.1, 0.9)
    optimizer = MNCoreSGD(model.parameters(), 0.1, 0.9)
    shared, compiled = started("emu2:mini", tmp_path / "step", model, optimizer)
    for seed in range(100):
        compiled(batch(seed))
        reference.zero_grad()
        cross_entropy(wanted(batch(seed)["x"]), batch(seed)["t"]).backward()
        reference.step()
    shared.synchronize()
    assert largest_difference(model, wanted) < 1e-4


@pytest.mark.parametrize("device", sampled(DEVICES))
def test_the_script(tmp_path: Path, device: str, forks: Forks) -> None:
    variables = {"MLSDK_DEVICE": device, "TMPDIR": str(tmp_path)}
    done = forks.module("pycompiler.mlsdk", SCRIPTS / "train.py", **variables)
    assert done.returncode == 0, done.stderr
    lines = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    for (loss, bias), wanted_loss, wanted_bias in zip(lines, LOSSES, BIASES, strict=True):
        assert loss == pytest.approx(wanted_loss, abs=1e-6)
        assert bias == pytest.approx(wanted_bias, abs=1e-6)


@pytest.mark.parametrize(
    "make", sampled([MNCoreAdam, MNCoreSGD], first=1), ids=lambda kind: kind.__name__
)
def test_tracing_changes_nothing(tmp_path: Path, make: Any) -> None:
    model = nn.Sequential(nn.Linear(9, 5), nn.BatchNorm1d(5))
    model[0].weight.grad = kept = torch.ones(5, 9)
    shared, optimizer = context("pfvm:cpu"), make(model.parameters(), lr=0.1)
    shared.registry.register("net", model)
    shared.registry.register("optimizer", optimizer)
    with torch.no_grad():
        for _, tensor in optimizer.state_tensors():
            tensor.fill_(3)
    tensors = {**model.state_dict(), **dict(optimizer.state_tensors())}
    before = {name: value.clone() for name, value in tensors.items()}
    sample, step = batch(0), training(model, optimizer)
    state = torch.get_rng_state()
    shared.compile(step, sample, tmp_path / "step")
    assert torch.equal(torch.get_rng_state(), state)
    assert model[0].weight.grad is kept
    assert model[1].weight.grad is None
    for name, value in tensors.items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("device", sampled(DEVICES, first=1))
def test_another_function_sees_what_was_learned(tmp_path: Path, device: str) -> None:
    model = mlp()
    optimizer = MNCoreSGD(model.parameters(), 0.1, 0.9)
    shared, compiled = started(device, tmp_path / "step", model, optimizer)
    sample = {"x": torch.randn(4, 9)}
    forward = shared.compile(lambda d: {"y": model(d["x"])}, sample, tmp_path / "forward")
    before = forward(sample)["y"].cpu()
    for seed in range(3):
        compiled(batch(seed))
        found = forward(sample)["y"].cpu()
        shared.synchronize()
        assert torch.allclose(found, model(sample["x"]), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found, before, rtol=1e-2)


@pytest.mark.long  # Tests of schedulers run each without training.
def test_schedulers_give_the_same_bits(tmp_path: Path) -> None:
    results = []
    for scheduler in ("always_from_dram", "reuse_consecutive", "spill_opt"):
        model = mlp()
        optimizer = MNCoreSGD(model.parameters(), 0.1, 0.9)
        folder = tmp_path / scheduler
        shared, compiled = started("emu2:mini", folder, model, optimizer, scheduler=scheduler)
        losses = [compiled(batch(seed))["loss"].cpu() for seed in range(3)]
        shared.synchronize()
        results.append([*losses, *(p.detach().clone() for p in model.parameters())])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("device", sampled(DEVICES, first=1))
@pytest.mark.parametrize(
    "make", sampled([MNCoreAdam, MNCoreSGD], first=1), ids=lambda kind: kind.__name__
)
def test_an_interrupted_run_continues(tmp_path: Path, make: Any, device: str) -> None:
    settings = {"momentum": 0.9} if make is MNCoreSGD else {}

    def run(first: int, last: int, saved: dict[str, Any] | None) -> dict[str, Any]:
        model = mlp(saved is not None)
        optimizer = make(model.parameters(), lr=0.05, **settings)
        shared, compiled = started(device, tmp_path / "step", model, optimizer)
        if saved is not None:  # behind compile, so that the device must learn of it
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            for parameter in model.parameters():
                shared.get_registered_value_proxy(parameter).load_from(parameter.detach())
        for seed in range(first, last):
            compiled(batch(seed))
        shared.synchronize()
        kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(kept, tmp_path / "checkpoint")
        found: dict[str, Any] = torch.load(tmp_path / "checkpoint")
        return found

    whole = run(0, 6, None)
    halves = run(3, 6, run(0, 3, None))
    for name, value in whole["model"].items():
        assert torch.equal(halves["model"][name], value), name


@pytest.mark.parametrize("device", sampled(DEVICES))
def test_a_scheduler_changes_the_rate_on_the_device(tmp_path: Path, device: str) -> None:
    model, wanted = mlp(), mlp()
    optimizer = MNCoreSGD(model.parameters(), 0.2, 0.5)
    shared, compiled = started(device, tmp_path / "step", model, optimizer)
    reference = torch.optim.SGD(wanted.parameters(), 0.2, 0.5)
    rates = MNCoreLRScheduler(torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1), shared)
    wanted_rates = torch.optim.lr_scheduler.StepLR(reference, 2, 0.1)
    for seed in range(6):
        compiled(batch(seed))
        rates.step()
        reference.zero_grad()
        cross_entropy(wanted(batch(seed)["x"]), batch(seed)["t"]).backward()
        reference.step()
        wanted_rates.step()
        assert rates.get_last_lr() == pytest.approx(wanted_rates.get_last_lr())
    shared.synchronize()
    assert largest_difference(model, wanted) < 1e-4


@pytest.mark.parametrize("device", sampled(DEVICES, first=1))
def test_unregistered_buffers_are_the_functions_own(tmp_path: Path, device: str) -> None:
    def network() -> nn.Sequential:
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(9, 7), nn.BatchNorm1d(7), nn.Linear(7, 5))

    def start(model: nn.Sequential, name: str) -> CompiledFunction:
        optimizer = MNCoreSGD(model.parameters(), 0.1)
        for number, parameter in enumerate(model.parameters()):
            set_tensor_name(parameter, f"{name}.{number}")
            shared.register_param(parameter)
        shared.registry.register(f"{name}.optimizer", optimizer)

        def step(d: Tensors) -> Tensors:
            optimizer.zero_grad()
            loss = cross_entropy(model(d["x"]), d["t"])
            loss.backward()
            optimizer.step()
            return {"loss": loss, "mean": model[1].running_mean * 1.0}

        return shared.compile(step, batch(0), tmp_path / name)

    shared, wanted = context(device), network()
    model = network()
    compiled, other = start(model, "one"), start(network(), "two")
    reference = torch.optim.SGD(wanted.parameters(), 0.1)
    for seed in range(4):
        reference.zero_grad()
        cross_entropy(wanted(batch(seed)["x"]), batch(seed)["t"]).backward()
        reference.step()
        found = compiled(batch(seed))["mean"].cpu()
        assert torch.allclose(found, wanted[1].running_mean, rtol=1e-4, atol=1e-6)
    first = network()
    first(batch(9)["x"])
    assert torch.allclose(other(batch(9))["mean"].cpu(), first[1].running_mean, atol=1e-6)
    shared.synchronize()
    assert torch.equal(model[1].running_mean, torch.zeros(7))


def test_registered_buffers_come_back(tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(9, 5), nn.BatchNorm1d(5))
    shared = context("emu2:mini")
    shared.registry.register("net", model)
    sample = {"x": torch.randn(8, 9)}
    compiled = shared.compile(lambda d: {"y": model(d["x"])}, sample, tmp_path / "out")
    torch.manual_seed(3)
    wanted = nn.Sequential(nn.Linear(9, 5), nn.BatchNorm1d(5))
    for _ in range(2):
        assert torch.allclose(compiled(sample)["y"].cpu(), wanted(sample["x"]), atol=1e-5)
    shared.synchronize()
    for name, value in wanted.state_dict().items():
        assert torch.allclose(model.state_dict()[name], value, rtol=1e-5, atol=1e-6), name


def test_accumulation_and_clipping_in_the_function(tmp_path: Path) -> None:
    model, wanted = mlp(), mlp()
    optimizer = MNCoreSGD(model.parameters(), 0.1)
    reference = torch.optim.SGD(wanted.parameters(), 0.1)

    def step(net: nn.Module, used: Any, d: Tensors) -> Tensors:
        used.zero_grad()
        for rows in (slice(0, 4), slice(4, 6)):
            cross_entropy(net(d["x"][rows]), d["t"][rows]).backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        used.step()
        return {"norm": norm}

    shared = context("emu2:mini")
    shared.registry.register("model0", model)
    shared.registry.register("optimizer0", optimizer)
    compiled = shared.compile(lambda d: step(model, optimizer, d), batch(0), tmp_path / "out")
    for seed in range(3):
        wanted_norm = step(wanted, reference, batch(seed))["norm"]
        found = compiled(batch(seed))["norm"].item()
        assert found == pytest.approx(wanted_norm.item(), rel=1e-4)
    shared.synchronize()
    assert largest_difference(model, wanted) < 1e-4


def test_a_loaded_function_goes_on(tmp_path: Path) -> None:
    model, again = mlp(), mlp()
    optimizer = MNCoreSGD(model.parameters(), 0.1, 0.9)
    shared, compiled = started("emu2:mini", tmp_path / "step", model, optimizer)
    other = context("emu2:mini")
    other.registry.register("model0", again)
    reloaded = other.load_codegen_dir(tmp_path / "step")
    for seed in range(3):
        assert torch.equal(compiled(batch(seed))["loss"].cpu(), reloaded(batch(seed))["loss"].cpu())
    shared.synchronize()
    other.synchronize()
    assert largest_difference(again, model) == 0


def refused(code: str, text: str, use: Callable[[], object]) -> None:
    with pytest.raises(PycompilerError) as caught:
        use()
    assert caught.value.code == code
    assert text in caught.value.render()


def test_what_is_not_registered_is_refused(tmp_path: Path) -> None:
    model = mlp()
    optimizer = MNCoreSGD(model.parameters(), 0.1, 0.9)
    shared = context("emu2:mini")
    step = training(model, optimizer)

    def compile_() -> object:
        return shared.compile(step, batch(0), tmp_path / "out")

    refused("P0115", "registry.register", compile_)
    shared.registry.register("model0", model)
    refused("P0115", "register_optimizer_buffers", compile_)
    refused("P0608", "has no name", lambda: shared.register_optimizer_buffers(optimizer))
    set_buffer_name_in_optimizer(optimizer, "optimizer0")
    shared.register_optimizer_buffers(optimizer)
    refused("P0117", "inside the function", optimizer.step)
    refused("P0116", "training", lambda: shared.compile(step, batch(0), tmp_path, training=False))
    compiled = shared.compile(step, batch(0), tmp_path / "out", training=True)
    refused("P0603", "shape", lambda: compiled(batch(0, rows=7)))
