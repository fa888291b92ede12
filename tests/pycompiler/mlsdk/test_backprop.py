"""Training steps whose backward pass and update the compiler adds, against torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context, report_of
from torch import nn
from torch.nn.functional import cross_entropy

from pycompiler.errors import PycompilerError
from pycompiler.mlsdk import MNCoreAdam, MNCoreSGD

Step = Mapping[str, torch.Tensor]


class Convolutions(nn.Module):
    """A small network of pictures, with statistics of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 5, 3, padding=1), nn.BatchNorm2d(5)
        self.pool, self.last = nn.MaxPool2d(2), nn.Linear(5 * 9, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(self.pool(self.norm(self.first(x)).relu()).flatten(1))
        return out


class Attention(nn.Module):
    """Letters, attention and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.norm = nn.Embedding(7, 12), nn.LayerNorm(12)
        self.mixed, self.last = nn.MultiheadAttention(12, 3, batch_first=True), nn.Linear(12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.letters(x)
        y = self.norm(y + self.mixed(y, y, y, need_weights=False)[0])
        out: torch.Tensor = self.last(nn.functional.gelu(y).mean(1))
        return out


class Recurrent(nn.Module):
    """A recurrent layer whose last results are classified."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.layer, self.last = kind(4, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(self.layer(x)[0][:, -1])
        return out


def _dense() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "dense": (_dense, lambda: torch.randn(5, 6)),
    "convolutions": (Convolutions, lambda: torch.randn(5, 2, 7, 6)),
    "attention": (Attention, lambda: torch.randint(0, 7, (5, 4))),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: torch.randn(5, 3, 4)),
    "gru": (lambda: Recurrent(nn.GRU), lambda: torch.randn(5, 3, 4)),
}
OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "dampening": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    "nesterov": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.01}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01, "betas": (0.8, 0.99)}),
    "no means": (torch.optim.Adam, {"lr": 0.01, "betas": (0.0, 0.9)}),
}
PAIRS = [
    *(("pfvm:cpu", "dense", name) for name in OPTIMIZERS),
    *(("pfvm:cpu", name, "nesterov") for name in NETWORKS if name != "dense"),
    *(("emu2:mini", name, "momentum") for name in NETWORKS if name != "gru"),
    *(("emu2:mini", "dense", name) for name in ("dampening", "adam", "adamw")),
]


#: The compiler needs many seconds for these; the host runtime has each network and optimizer, and
#: other tests train attention and convolutions on the device.
SLOW = [
    *(("emu2:mini", name, "momentum") for name in ("attention", "lstm", "convolutions")),
    *(("emu2:mini", "dense", name) for name in ("dampening", "adam", "adamw")),
    *(("pfvm:cpu", name, "nesterov") for name in ("lstm", "gru", "convolutions")),
]


@pytest.mark.parametrize(
    ("device", "network", "optimizer"),
    [
        pytest.param(*pair, marks=pytest.mark.long if pair in SLOW else (), id=" ".join(pair))
        for pair in PAIRS
    ],
)
def test_steps_are_those_of_torch(
    tmp_path: Path, device: str, network: str, optimizer: str
) -> None:
    torch.manual_seed(0)
    make, draw = NETWORKS[network]
    (kind, settings), model = OPTIMIZERS[optimizer], make()
    twin, calls = deepcopy(model), [(draw(), torch.randint(0, 3, (5,))) for _ in range(4)]
    theirs, ours = (kind(m.parameters(), **settings) for m in (twin, model))
    chip = context(device)
    chip.registry.register("model0", model)
    chip.registry.register("optimizer0", ours)

    def run(d: Step) -> dict[str, torch.Tensor]:
        return {"loss": cross_entropy(model(d["x"]), d["t"])}

    sample = {"x": calls[0][0], "t": calls[0][1]}
    options = {"backprop": True}
    compiled = chip.compile(run, sample, tmp_path / "out", options=options, optimizers=[ours])
    for count, (x, t) in enumerate(calls):
        rate = settings["lr"] * (1 + count)
        theirs.param_groups[0]["lr"] = rate
        theirs.zero_grad()
        wanted = cross_entropy(twin(x), t)
        wanted.backward()
        theirs.step()
        more = {
            "optimizer0@0@mncore_learning_rate": torch.tensor(rate),
            "optimizer0@0@mncore_global_step": torch.tensor(count),
            "mncore_grad_scale_factor": torch.tensor(1.0),
        }
        found = compiled({"x": x, "t": t, **more})
        assert list(found) == ["loss"]
        assert torch.allclose(found["loss"].cpu(), wanted, rtol=1e-4, atol=1e-5)
    chip.synchronize()
    others = twin.state_dict()
    for name, found in model.state_dict().items():
        assert torch.allclose(found, others[name], rtol=1e-3, atol=2e-5), name
    if device != "pfvm:cpu":
        assert report_of(tmp_path / "out")["host_fallback"] == []


def test_the_scale_multiplies_the_gradients(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    before, optimizer = model.weight.detach().clone(), MNCoreSGD(model.parameters(), 0.5)
    chip = context("pfvm:cpu")
    chip.registry.register("m", model)
    chip.registry.register("o", optimizer)
    x = torch.randn(4, 3)
    compiled = chip.compile(
        lambda d: {"loss": model(d["x"]).sum(), "other": d["x"]},
        {"x": x},
        tmp_path / "out",
        options={"backprop": True},
        optimizers=[optimizer],
    )
    rate, step = torch.tensor(0.5), torch.tensor(0)
    names = ("o@0@mncore_learning_rate", "o@0@mncore_global_step", "mncore_grad_scale_factor")
    found = compiled({"x": x, **dict(zip(names, (rate, step, torch.tensor(0.25)), strict=True))})
    assert set(found) == {"loss", "other"}
    chip.synchronize()
    assert torch.allclose(model.weight, before - 0.5 * 0.25 * x.sum(0), atol=1e-6)


def test_frozen_doubles_and_products_of_elements(tmp_path: Path) -> None:
    """A frozen parameter stays, doubles are updated as doubles, and any operator has a gradient."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2, dtype=torch.float64)
    model.bias.requires_grad_(False)
    twin, x = deepcopy(model), torch.randn(4, 3, dtype=torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    chip = context("pfvm:cpu")
    chip.registry.register("m", model)
    chip.registry.register("o", optimizer)
    compiled = chip.compile(
        lambda d: {"loss": model(d["x"]).prod(1).sum()},
        {"x": x},
        tmp_path / "out",
        options={"backprop": True},
        optimizers=[optimizer],
    )
    rate, step = torch.tensor(0.5), torch.tensor(0)
    names = ("o@0@mncore_learning_rate", "o@0@mncore_global_step", "mncore_grad_scale_factor")
    compiled({"x": x, **dict(zip(names, (rate, step, torch.tensor(1.0)), strict=True))})
    chip.synchronize()
    twin(x).prod(1).sum().backward()
    assert twin.weight.grad is not None
    assert torch.allclose(model.weight, twin.weight - 0.5 * twin.weight.grad, rtol=1e-12)
    assert torch.equal(model.bias, twin.bias)


def test_results_have_the_values_from_before_the_update(tmp_path: Path) -> None:
    """Views of parameters, too; and the function reads added inputs that it has itself."""
    weight = nn.Parameter(torch.tensor([2.0, 3.0]))
    optimizer, chip = torch.optim.SGD([weight], lr=0.1), context("pfvm:cpu")
    model = nn.Module()
    model.weight = weight
    chip.registry.register("m", model)
    chip.registry.register("o", optimizer)
    scale = {"mncore_grad_scale_factor": torch.tensor(1.0)}
    compiled = chip.compile(
        lambda d: {
            "loss": weight.sum() * d["mncore_grad_scale_factor"],
            "weight": weight,
            "view": weight.detach()[1:],
        },
        scale,
        tmp_path / "out",
        options={"backprop": True},
        optimizers=[optimizer],
    )
    names = ("o@0@mncore_learning_rate", "o@0@mncore_global_step")
    for count in range(2):
        rates = dict(zip(names, (torch.tensor(0.1), torch.tensor(count)), strict=True))
        found = compiled({**scale, **rates})
        wanted = torch.tensor([2.0, 3.0]) - 0.1 * count
        assert torch.allclose(found["weight"].cpu(), wanted)
        assert torch.allclose(found["view"].cpu(), wanted[1:])
        assert torch.allclose(found["loss"].cpu(), wanted.sum())


def _refusal(tmp_path: Path, **changed: Any) -> PycompilerError:
    model = nn.Linear(3, 2)
    optimizer = changed.pop("optimizer", MNCoreAdam)(model.parameters())
    chip = context("pfvm:cpu")
    registered = changed.pop("registered", ("model", "optimizer"))
    settings = {"options": {"backprop": True}, "optimizers": [optimizer], **changed}
    function = settings.pop("function", lambda d: {"loss": model(d["x"]).sum()})

    def attempt() -> None:
        for name in registered:
            chip.registry.register(name, {"model": model, "optimizer": optimizer}[name])
        chip.compile(function, {"x": torch.ones(1, 3)}, tmp_path / "out", **settings)

    with pytest.raises(PycompilerError) as caught:
        attempt()
    return caught.value


@pytest.mark.parametrize(
    ("code", "text", "changed"),
    [
        ("P0704", "needs them", {"optimizers": None}),
        ("P0704", "without the option", {"options": {}}),
        ("P0704", "list of optimizers", {"optimizers": [3]}),
        ("P0608", "not registered", {"registered": ("model",)}),
        ("P0608", "not registered", {"registered": ("optimizer",)}),
        ("P0703", "Rprop", {"optimizer": torch.optim.Rprop}),
        (
            "P0703",
            "decoupled_weight_decay",
            {"optimizer": lambda p: torch.optim.Adam(p, decoupled_weight_decay=True)},
        ),
        ("P0704", "one dict of tensors", {"function": 3}),
        ("P0704", "one dict of tensors", {"function": lambda a, b: {"loss": a}}),
        ("P0116", "training", {"training": False}),
        ("P0118", "float", {"function": lambda d: {"loss": d["x"] * 2}}),
        ("P0118", "missing", {"function": lambda d: {"a": d["x"], "b": d["x"].sum()}}),
        ("P0118", "independent", {"function": lambda d: {"loss": d["x"].sum()}}),
    ],
)
def test_refusals(tmp_path: Path, code: str, text: str, changed: dict[str, Any]) -> None:
    problem = _refusal(tmp_path, **changed)
    assert problem.code == code
    assert text in str(problem)


def test_parameters_that_are_all_frozen_are_refused(tmp_path: Path) -> None:
    """Also where the loss depends on another tensor that requires a gradient."""
    other = torch.ones((), requires_grad=True)
    weight = nn.Parameter(torch.ones(3), requires_grad=False)
    model, chip = nn.Module(), context("pfvm:cpu")
    model.weight = weight
    optimizer = torch.optim.SGD([weight], lr=0.1)
    chip.registry.register("m", model)
    chip.registry.register("o", optimizer)
    settings: dict[str, Any] = {"options": {"backprop": True}, "optimizers": [optimizer]}
    with pytest.raises(PycompilerError, match="independent of all parameters") as caught:
        chip.compile(
            lambda d: {"loss": (weight * d["x"]).sum() * other},
            {"x": torch.ones(3)},
            tmp_path / "out",
            **settings,
        )
    assert caught.value.code == "P0118"
    with pytest.raises(PycompilerError, match="no place for learning rates") as caught:
        chip.compile_automap(lambda x: x, [torch.ones(3)], None, tmp_path / "out", **settings)
    assert caught.value.code == "P0703"
