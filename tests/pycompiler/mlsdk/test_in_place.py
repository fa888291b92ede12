"""New values that the program writes over the old ones: no copies, and the same bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compiling import context, sampled
from torch import nn
from torch.nn.functional import cross_entropy

from pycompiler.graph.dtypes import MNDtype
from pycompiler.graph.graph import Location, MNGraph, MNNode, MNValue, Side, TensorType
from pycompiler.graph.layout_text import parse_layout
from pycompiler.mlsdk import (
    CompiledFunction,
    Context,
    MNCoreAdam,
    MNCoreOptimizer,
    MNCoreSGD,
    set_tensor_name,
)
from pycompiler.runtime.dram import DramTensor
from pycompiler.runtime.executable import DeviceFunction
from pycompiler.scheduler import address_planner
from pycompiler.scheduler.in_place import written_in_place
from pycompiler.scheduler.schedulers import SCHEDULERS

Tensors = dict[str, torch.Tensor]


def network(kind: str) -> nn.Module:
    torch.manual_seed(3)
    if kind == "mlp":
        return nn.Sequential(nn.Linear(9, 13), nn.ReLU(), nn.Linear(13, 5))
    return nn.Sequential(
        nn.Unflatten(1, (1, 3, 3)),
        nn.Conv2d(1, 4, 2),
        nn.BatchNorm2d(4),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


OPTIMIZERS: Mapping[str, Callable[[Any], MNCoreOptimizer]] = {
    "SGD": lambda p: MNCoreSGD(p, 0.1, 0.9, 0.0),
    "Adam": lambda p: MNCoreAdam(p, lr=0.01),
}


def batch(seed: int) -> Tensors:
    torch.manual_seed(seed)
    return {"x": torch.randn(6, 9), "t": torch.randint(0, 5, (6,))}


class Holder(nn.Module):
    """A module with one parameter."""

    def __init__(self, values: torch.Tensor):
        super().__init__()
        self.weight = nn.Parameter(values)


def holding(values: torch.Tensor) -> tuple[Context, nn.Parameter]:
    """Return a context, and a parameter that is registered in it."""
    holder, shared = Holder(values), context("emu2:mini")
    shared.registry.register("holder", holder)
    return shared, holder.weight


def started(
    folder: Path, kind: str, make: Callable[[Any], MNCoreOptimizer], **options: Any
) -> tuple[Context, CompiledFunction, nn.Module]:
    model = network(kind)
    optimizer, shared = make(model.parameters()), context("emu2:mini")
    shared.registry.register("model0", model)
    shared.registry.register("optimizer0", optimizer)

    def step(d: Tensors) -> Tensors:
        optimizer.zero_grad()
        loss = cross_entropy(model(d["x"]), d["t"])
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    return shared, shared.compile(step, batch(0), folder, options=options), model


def device_function(compiled: CompiledFunction) -> DeviceFunction:
    assert isinstance(compiled.function, DeviceFunction)
    return compiled.function


def trained(shared: Context, compiled: CompiledFunction, model: nn.Module) -> list[bytes]:
    """Train for three steps, and return the bits of losses and parameters."""
    losses = [compiled(batch(seed))["loss"].cpu().numpy().tobytes() for seed in range(3)]
    shared.synchronize()
    return [*losses, *(t.detach().numpy().tobytes() for t in model.state_dict().values())]


@pytest.mark.parametrize(("kind", "optimizer"), sampled([("mlp", "Adam"), ("convolution", "SGD")]))
def test_only_inputs_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, optimizer: str
) -> None:
    _, compiled, model = started(tmp_path / "step", kind, OPTIMIZERS[optimizer])
    app = device_function(compiled).app
    assert len(app.updates) >= 2 * len(list(model.parameters()))
    compiled(batch(0))
    written: list[int] = []
    write = DramTensor.write_words
    monkeypatch.setattr(
        DramTensor, "write_words", lambda self, words: (written.append(1), write(self, words))[1]
    )
    compiled(batch(1))
    assert len(written) == len(app.inputs)


@pytest.mark.parametrize("scheduler", sampled(list(SCHEDULERS), every=3, first=2))
def test_the_bits_are_those_of_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str
) -> None:
    found = trained(*started(tmp_path / "new", "mlp", OPTIMIZERS["SGD"], scheduler=scheduler))
    monkeypatch.setattr(address_planner, "written_in_place", lambda graph, renewed: {})
    copied = started(tmp_path / "old", "mlp", OPTIMIZERS["SGD"], scheduler=scheduler)
    app = device_function(copied[1]).app
    assert all(app.values[p.key].dram != app.values[p.value].dram for p in app.updates)
    assert found == trained(*copied)


def test_time_slices_are_written_in_place(tmp_path: Path) -> None:
    """A weight that exceeds LM is read and written slice by slice."""
    shared, weight = holding(torch.arange(160_000, dtype=torch.float32).reshape(400, 400) / 1e5)
    wanted = weight.detach() * 0.5 + 1

    def halve(d: Tensors) -> Tensors:
        with torch.no_grad():
            weight.copy_(weight * 0.5 + d["x"])
        return {"y": d["x"] * 2}

    compiled = shared.compile(halve, {"x": torch.ones(400)}, tmp_path / "step")
    app = device_function(compiled).app
    (port,) = app.updates
    assert "Time" in str(app.values[port.key].layout)
    assert app.values[port.key].dram == app.values[port.value].dram
    compiled({"x": torch.ones(400)})
    shared.synchronize()
    assert torch.equal(weight.detach(), wanted)


def test_what_the_caller_still_reads_is_copied(tmp_path: Path) -> None:
    """A function that returns the old value, and one that returns the new one."""
    for name, wanted in (("old", [1.0, 2.0]), ("new", [2.0, 3.0])):
        shared, weight = holding(torch.tensor([1.0, 2.0]))

        def step(d: Tensors, weight: nn.Parameter = weight, name: str = name) -> Tensors:
            before = weight.detach().clone()
            with torch.no_grad():
                weight.add_(d["x"])
            return {"seen": before if name == "old" else weight.detach().clone()}

        compiled = shared.compile(step, {"x": torch.ones(2)}, tmp_path / name)
        seen = compiled({"x": torch.ones(2)})["seen"]
        for _ in range(2):
            compiled({"x": torch.ones(2)})
        assert seen.cpu().tolist() == wanted
        shared.synchronize()
        assert weight.tolist() == [4.0, 5.0]


@pytest.mark.parametrize("device", ["emu2:mini", "pfvm:cpu"])
def test_new_values_are_other_registered_ones(tmp_path: Path, device: str) -> None:
    """Two that change places, one that gets the old value of another, two that get one value."""
    start = {name: torch.arange(3.0) + place for place, name in enumerate("abcdefgh")}
    ours, theirs = ({n: t.clone() for n, t in start.items()} for _ in range(2))
    shared = context(device)
    for name, tensor in ours.items():
        set_tensor_name(tensor, name)
        shared.register_buffer(tensor)

    def step(state: Tensors, x: torch.Tensor) -> Tensors:
        before = state["a"].clone()
        state["a"].copy_(state["b"])
        state["b"].copy_(before)
        state["c"].copy_(state["d"])
        state["d"].add_(x)
        state["e"].mul_(x)
        state["f"].copy_(state["e"])
        state["g"].zero_()
        state["h"].zero_()
        return {"y": state["e"] + state["a"]}

    compiled = shared.compile(lambda d: step(ours, d["x"]), {"x": torch.ones(3)}, tmp_path / "step")
    for call in range(4):
        x = torch.full((3,), call + 1.5)
        assert torch.equal(compiled({"x": x})["y"].cpu(), step(theirs, x)["y"])
        compiled = shared.load_codegen_dir(tmp_path / "step")
    shared.synchronize()
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor), name


def test_another_order_gets_its_copy(tmp_path: Path) -> None:
    """Functions that keep a value in different orders both see its new values."""
    torch.manual_seed(0)
    shared, weight = holding(torch.randn(24, 40))
    start = weight.detach().clone()

    def grow(d: Tensors) -> Tensors:
        with torch.no_grad():
            weight.add_(d["x"])
        return {"y": d["x"] * 2}

    def product(d: Tensors) -> Tensors:
        return {"y": d["a"] @ weight}

    given = {"a": torch.randn(7, 24)}
    product_of = shared.compile(product, given, tmp_path / "product")
    product_of(given)
    grown = shared.compile(grow, {"x": torch.ones(40)}, tmp_path / "grow")
    orders = {
        device_function(one).app.values[port.value].layout
        for one in (product_of, grown)
        for port in device_function(one).app.registered
    }
    assert len(orders) == 2
    for number in range(1, 3):
        grown({"x": torch.ones(40)})
        found = product_of(given)["y"].cpu()
        wanted = given["a"].numpy().astype(np.float64) @ (start.numpy() + number)
        assert np.allclose(found.numpy(), wanted, atol=1e-4)


# -- the rule on small graphs ------------------------------------------------------------------

LAYOUT = "((4:1))"
#: Nodes as ``side:inputs>outputs``; the new value `new` may replace `old` or not.
ORDERS: Mapping[str, tuple[Sequence[str], str, bool]] = {
    "read before": (("d:old>a", "d:a>new"), "", True),
    "never read": (("d:x>new",), "", True),
    "read afterwards": (("d:x>new", "d:old>a"), "a", False),
    "read by the writer": (("d:old>new",), "", False),
    "read by the host afterwards": (("d:old>a", "d:a>new", "h:old>b"), "b", False),
    "made by the host": (("d:old>a", "h:a>new"), "", False),
    "returned": (("d:old>a", "d:a>new"), "old", False),
    "new value returned": (("d:old>a", "d:a>new"), "new", False),
    "another order": (("d:old>a", "d:a>other"), "", False),
}


@pytest.mark.parametrize("case", ORDERS)
def test_orders(case: str) -> None:
    lines, shown, wanted = ORDERS[case]
    nodes = []
    for number, line in enumerate(lines):
        side, ends = line.split(":")
        reads, makes = ends.split(">")
        on = Side.HOST if side == "h" else Side.DEVICE
        nodes.append(MNNode(f"n{number}", "Op", (reads,), (makes,), side=on))
    names = {"old", *(name for node in nodes for name in (*node.inputs, *node.outputs))}
    type = TensorType("float", (4,))
    layouts = {"other": "((2:1, 2_PE:1))"}
    values = {
        name: MNValue(
            name,
            type,
            dtype=MNDtype.FLOAT,
            layout=parse_layout(layouts.get(name, LAYOUT)),
            location=Location.DRAM,
        )
        for name in names
    }
    new = "other" if "other" in names else "new"
    outputs = [("new_key", new), *([("shown", shown)] if shown else [])]
    graph = MNGraph("g", "mini", nodes=tuple(nodes), values=values, outputs=tuple(outputs))
    if "old" not in graph.device_values():
        graph = MNGraph(
            "g",
            "mini",
            nodes=(MNNode("r", "Op", ("old",), ("z",), side=Side.DEVICE), *nodes),
            values={**values, "z": values["old"]},
            outputs=tuple(outputs),
        )
    assert written_in_place(graph, {"new_key": "old"}) == ({new: "old"} if wanted else {})
