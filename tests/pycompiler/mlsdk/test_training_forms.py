"""Forms of training loops that scripts have, each beside the same loop of torch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context, sampled
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from pycompiler.errors import PycompilerError
from pycompiler.mlsdk import MNCoreAdam, MNCoreLRScheduler, MNCoreSGD, set_tensor_name

Tensors = dict[str, torch.Tensor]
SCALE = 128.0


class Net(nn.Module):
    """A body and a head, as scripts train them apart, and an average of the head's weight."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 3)
        self.register_buffer("average", self.head.weight.detach().clone())
        self.mean = AveragedModel(self.head)
        self.drift = AveragedModel(self.head, multi_avg_fn=get_ema_multi_avg_fn(0.75))

    def loss(self, d: Tensors) -> torch.Tensor:
        return cross_entropy(self.head(torch.relu(self.body(d["x"]))), d["t"])


def batch(seed: int) -> Tensors:
    torch.manual_seed(seed)
    return {"x": torch.randn(4, 6), "t": torch.randint(0, 3, (4,))}


def _sgd(kind: Any, net: Net) -> list[Any]:
    return [kind[0]([*net.body.parameters(), *net.head.parameters()], 0.2, 0.5)]


def _two(kind: Any, net: Net) -> list[Any]:
    return [kind[0](net.body.parameters(), 0.2), kind[1](net.head.parameters(), lr=0.01)]


def _groups(kind: Any, net: Net) -> list[Any]:
    parts = [{"params": net.body.parameters()}, {"params": net.head.parameters(), "lr": 0.02}]
    return [kind[0](parts, lr=0.2)]


def _begin(optimizers: list[Any]) -> None:
    for optimizer in optimizers:
        optimizer.zero_grad()


def _plain(net: Net, optimizers: list[Any], d: Tensors) -> torch.Tensor:
    _begin(optimizers)
    loss = net.loss(d)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    return loss


def _averaged(net: Net, optimizers: list[Any], d: Tensors) -> torch.Tensor:
    loss = _plain(net, optimizers, d)
    with torch.no_grad():
        net.average.lerp_(net.head.weight, 0.25)
    return loss


def _averaged_by_torch(net: Net, optimizers: list[Any], d: Tensors) -> torch.Tensor:
    """The first average is the model; the number of averages is a tensor."""
    loss = _plain(net, optimizers, d)
    net.mean.update_parameters(net.head)
    net.drift.update_parameters(net.head)
    return loss


def _with_a_scaler(net: Net, optimizers: list[Any], d: Tensors) -> torch.Tensor:
    """One that is not enabled, as torch makes it where it finds no GPU."""
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    _begin(optimizers)
    loss = net.loss(d)
    scaler.scale(loss).backward()
    scaler.step(optimizers[0])
    scaler.update()
    return loss


def _by_closure(net: Net, optimizers: list[Any], d: Tensors) -> torch.Tensor:
    def loss() -> torch.Tensor:
        _begin(optimizers)
        found = net.loss(d)
        found.backward()
        return found

    found: torch.Tensor = optimizers[0].step(loss)
    return found


def _past_autograd(net: Net, optimizers: list[Any], d: Tensors) -> torch.Tensor:
    """Writes through `data` and `detach()`."""
    loss = _plain(net, optimizers, d)
    net.body.bias.data.mul_(0.5)
    net.head.bias.detach().copy_(net.head.bias * 2)
    return loss


def _scaled(net: Net, optimizers: list[Any], d: Tensors) -> torch.Tensor:
    """The loss is scaled for short floats; a step with infinities changes nothing."""
    _begin(optimizers)
    loss = net.loss(d)
    (loss * SCALE).backward()
    grads = [p.grad for p in net.parameters() if p.grad is not None]
    finite = torch.stack([grad.isfinite().all() for grad in grads]).all()
    for grad in grads:
        grad.copy_(torch.where(finite, grad / SCALE, 0.0))
    for optimizer in optimizers:
        optimizer.step()
    return loss


def _alternating(net: Net, optimizers: list[Any], d: Tensors) -> torch.Tensor:
    """One optimizer after the other, each with a backward pass of its own."""
    for optimizer in optimizers:
        _begin(optimizers)
        loss = net.loss(d)
        loss.backward()
        optimizer.step()
    return loss


def _branching(net: Net, optimizers: list[Any], d: Tensors) -> torch.Tensor:
    """What torch does between steps, and a compiled function must not do."""
    loss = _plain(net, optimizers, d)
    if not torch.compiler.is_compiling():
        assert loss.item() >= 0
    return loss


FORMS: dict[str, tuple[Callable[[Any, Net], list[Any]], Callable[..., torch.Tensor], bool]] = {
    # name: (optimizers, step, whether a scheduler changes the rates)
    "two optimizers": (_two, _plain, False),
    "an average of weights": (_sgd, _averaged, False),
    "a scaled loss": (_sgd, _scaled, False),
    "groups and schedulers": (_groups, _plain, True),
    "alternating": (_two, _alternating, True),
    "a branch": (_sgd, _branching, False),
    "averages by torch": (_sgd, _averaged_by_torch, False),
    "a scaler": (_sgd, _with_a_scaler, False),
    "a closure": (_sgd, _by_closure, False),
    "past autograd": (_sgd, _past_autograd, False),
}


@pytest.mark.parametrize(
    ("form", "device"), sampled([*product(FORMS, ["emu2:mini", "pfvm:cpu"])], every=12, first=5)
)
def test_a_loop_is_that_of_torch(form: str, device: str, tmp_path: Path) -> None:
    make, step, scheduled = FORMS[form]
    net, shared = Net(), context(device)
    wanted = copy.deepcopy(net)
    ours = make((MNCoreSGD, MNCoreAdam), net)
    theirs = make((torch.optim.SGD, torch.optim.Adam), wanted)
    shared.registry.register("net", net)
    for number, optimizer in enumerate(ours):
        shared.registry.register(f"optimizer{number}", optimizer)
    compiled = shared.compile(
        lambda d: {"loss": step(net, ours, d)}, batch(0), tmp_path / "step", quiet=True
    )
    kind = torch.optim.lr_scheduler.ExponentialLR
    rates = [MNCoreLRScheduler(kind(own, 0.5), shared) for own in ours] if scheduled else []
    own_rates = [kind(optimizer, 0.5) for optimizer in theirs] if scheduled else []
    for seed in range(4):
        found, exact = compiled(batch(seed))["loss"].item(), step(wanted, theirs, batch(seed))
        assert found == pytest.approx(exact.item(), rel=1e-4), seed
        for rate in (*rates, *own_rates):
            rate.step()
    shared.synchronize()
    for name, value in wanted.state_dict().items():
        assert torch.allclose(net.state_dict()[name], value, rtol=1e-4, atol=1e-5), name


def _by_hand(optimizers: list[Any]) -> Callable[[], None]:
    def change() -> None:
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] *= 0.5

    return change


def _by_torch(optimizers: list[Any]) -> Callable[[], None]:
    kind = torch.optim.lr_scheduler.ExponentialLR
    rates = [kind(optimizer, 0.5) for optimizer in optimizers]
    return lambda: [rate.step() for rate in rates] and None


@pytest.mark.parametrize(
    ("change", "device"),
    sampled([*product([_by_hand, _by_torch], ["pfvm:cpu", "emu2:mini"])], every=4),
)
def test_rates_follow_the_host(change: Any, device: str, tmp_path: Path) -> None:
    """Of every function that steps; a function that was loaded has the values of the context."""
    net, shared = Net(), context(device)
    wanted = copy.deepcopy(net)
    (ours,), (theirs,) = _groups([MNCoreSGD], net), _groups([torch.optim.SGD], wanted)
    shared.registry.register("net", net)
    shared.registry.register("optimizer", ours)
    first = shared.compile(
        lambda d: {"loss": _plain(net, [ours], d)}, batch(0), tmp_path / "step", quiet=True
    )
    second = shared.load_codegen_dir(tmp_path / "step")
    changes = change([ours]), change([theirs])
    for seed in range(4):
        (second if seed % 2 else first)(batch(seed))
        _plain(wanted, [theirs], batch(seed))
        for one in changes:
            one()
    shared.synchronize()
    for name, value in wanted.state_dict().items():
        assert torch.allclose(net.state_dict()[name], value, rtol=1e-4, atol=1e-5), name


def test_a_step_of_its_own_function(tmp_path: Path) -> None:
    """Gradients add up over calls of one function; another function has the step alone."""
    net, shared, hooked = Net(), context("pfvm:cpu"), []
    (own,), wanted = _sgd([MNCoreSGD], net), copy.deepcopy(net)
    (theirs,) = _sgd([torch.optim.SGD], wanted)
    own.register_step_post_hook(lambda *_: hooked.append(1))
    shared.registry.register("net", net)
    shared.registry.register("optimizer", own)
    for name, parameter in [*net.body.named_parameters(), *net.head.named_parameters("head")]:
        parameter.grad = torch.zeros_like(parameter)
        set_tensor_name(parameter.grad, f"gradient.{name}")
        shared.register_buffer(parameter.grad)

    def add(d: Tensors) -> Tensors:
        loss = net.loss(d)
        loss.backward()
        return {"loss": loss}

    def update(_: Tensors) -> Tensors:
        own.step()
        own.zero_grad()
        return {}

    adds = shared.compile(add, batch(0), tmp_path / "add", quiet=True)
    updates = shared.compile(update, {}, tmp_path / "update", quiet=True)
    assert hooked == [1]
    for seed in range(4):
        adds(batch(seed))
        wanted.loss(batch(seed)).backward()
        if seed % 2:
            updates({})
            theirs.step()
            theirs.zero_grad()
    shared.synchronize()
    for name, value in wanted.state_dict().items():
        assert torch.allclose(net.state_dict()[name], value, rtol=1e-4, atol=1e-5), name


#: What reads a number of a registered tensor, which differs from call to call.
READS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "item": lambda x, n: x * n.item(),
    "of a result": lambda x, n: x * (n + 1).item(),
    "an element": lambda x, n: x * n.reshape(1)[0].item(),
    "a list": lambda x, n: torch.tensor(n[None].tolist()),
    "a list of tensors": lambda x, n: torch.tensor([n, n]),
    "a branch": lambda x, n: x * 2 if n > 0 else x,
    "equal": lambda x, n: x * 2 if torch.equal(n, torch.tensor(1.0)) else x,
    "alpha": lambda x, n: torch.add(x, x, alpha=n),  # type: ignore[call-overload]
    "full": lambda x, n: torch.full_like(x, 1.0) * torch.full((2,), n),  # type: ignore[call-overload]
    "index": lambda x, n: x[n.long() - 1],
    "lerp": lambda x, n: torch._foreach_lerp([x], [x * 3], n)[0],  # type: ignore[call-overload]
}


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("read", READS)
def test_no_number_of_a_registered_tensor_is_a_constant(
    read: str, writes: bool, tmp_path: Path
) -> None:
    number, shared = torch.tensor(1.0), context("pfvm:cpu")
    set_tensor_name(number, f"number of {read} {writes}")
    shared.register_buffer(number)

    def function(d: Tensors) -> Tensors:
        found = READS[read](d["x"], number)
        if writes:
            number.add_(1)
        return {"y": found}

    with pytest.raises(PycompilerError, match=r"P0101.*\n?"):
        shared.compile(function, {"x": torch.ones(2)}, tmp_path / "out", quiet=True)
    assert number == 1


def test_a_number_that_depends_on_an_input_is_read_in_each_call(tmp_path: Path) -> None:
    number, shared = torch.tensor(1.0), context("pfvm:cpu")
    set_tensor_name(number, "number of a loss")
    shared.register_buffer(number)

    def function(d: Tensors) -> Tensors:
        return {"y": d["x"] * (d["x"].sum() * number).item() * torch.tensor(3.0).item()}

    compiled = shared.compile(function, {"x": torch.ones(2)}, tmp_path / "out", quiet=True)
    shared.get_registered_value_proxy(number).load_from(torch.tensor(5.0))
    assert compiled({"x": torch.ones(2)})["y"].cpu().tolist() == [30.0, 30.0]


@pytest.mark.long
def test_a_step_with_infinities_changes_nothing(tmp_path: Path) -> None:
    net, shared = Net(), context("pfvm:cpu")
    optimizers = [MNCoreSGD(net.parameters(), 0.2)]
    shared.registry.register("net", net)
    shared.registry.register("optimizer", optimizers[0])
    before = copy.deepcopy(net.state_dict())
    compiled = shared.compile(
        lambda d: {"loss": _scaled(net, optimizers, d)}, batch(0), tmp_path / "step", quiet=True
    )
    compiled({**batch(1), "x": torch.full((4, 6), 3e38)})
    shared.synchronize()
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    compiled(batch(1))
    shared.synchronize()
    assert not torch.equal(net.head.weight, before["head.weight"])
