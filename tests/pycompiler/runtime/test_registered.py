"""Registered values: named, on the device between calls, shared by the functions of a context."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import context, report_of
from torch import nn

from pycompiler.app import read_app
from pycompiler.errors import PycompilerError
from pycompiler.mlsdk import (
    Context,
    get_tensor_name,
    set_tensor_name,
    set_tensor_name_in_module,
)

Tensors = dict[str, torch.Tensor]
DEVICES = ["emu2:mini", "pfvm:cpu"]


def linear(seed: int) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(6, 5).eval()


def close(found: Any, wanted: torch.Tensor) -> None:
    assert torch.allclose(found.cpu(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_functions_share_what_is_registered(tmp_path: Path, device: str) -> None:
    model, shared, x = linear(0), context(device), torch.randn(3, 6)
    shared.registry.register("net", model)
    sample = {"x": torch.zeros(3, 6)}
    forward = shared.compile(lambda d: {"y": model(d["x"])}, sample, tmp_path / "forward")
    # The sum of the weights must not be computed at compile time.
    scale = shared.compile(
        lambda d: {"y": d["x"].sum() * model.weight.sum(), "w": model.weight},
        sample,
        tmp_path / "scale",
    )
    for seed in (0, 7):
        other = linear(seed)
        for name, parameter in model.named_parameters():
            value = other.get_parameter(name).detach()
            shared.get_registered_value_proxy(parameter).load_from(value)
        close(forward({"x": x})["y"], other(x))
        close(scale({"x": x})["y"], x.sum() * other.weight.sum())
        close(scale({"x": x})["w"], other.weight)
    assert torch.equal(model.weight, linear(0).weight)
    shared.synchronize()
    assert torch.equal(model.weight, linear(7).weight)
    assert torch.equal(model.bias, linear(7).bias)
    again = shared.compile(lambda d: {"y": model(d["x"])}, sample, tmp_path / "again")
    close(again({"x": x})["y"], linear(7)(x))
    # In a new context, the loaded values are those of compile time; later loads share them.
    alone = context(device)
    loaded = alone.load_codegen_dir(tmp_path / "forward")
    close(loaded({"x": x})["y"], linear(0)(x))
    assert report_of(tmp_path / "forward")["host_fallback"] == []
    names = {tensor.name for tensor in onnx.load(tmp_path / "forward/model.onnx").graph.input}
    assert names == {"x", "net.weight", "net.bias"}


def test_values_stay_in_device_memory(tmp_path: Path) -> None:
    shared, sample = context("emu2:mini"), {"x": torch.zeros(8)}
    weight = nn.Parameter(torch.arange(8.0))
    set_tensor_name(weight, "weight")
    shared.register_param(weight)
    compiled = shared.compile(lambda d: {"y": d["x"] + weight}, sample, tmp_path / "a")
    close(compiled({"x": torch.ones(8)})["y"], torch.arange(8.0) + 1)
    board = shared._board
    assert board is not None
    app = read_app((tmp_path / "a" / "model.app").read_bytes(), "model.app")
    (port,) = app.registered
    value = app.values[port.value]
    for group in range(board.target.groups):
        words = np.zeros(value.words, np.uint64)
        board.machine.write("dram", words, addr=value.dram, group=group)
    close(compiled({"x": torch.ones(8)})["y"], torch.ones(8))
    close(shared.get_registered_value_proxy(weight), torch.zeros(8))


def test_layouts_of_a_registered_value_are_written_together(tmp_path: Path) -> None:
    shared = context("emu2:mini")
    weight = torch.randn(8, 6)
    set_tensor_name(weight, "table")
    shared.register_buffer(weight)
    sample = {"x": torch.zeros(8, 6)}
    functions: list[tuple[Any, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = []
    for number, layout in enumerate((None, "((8:3), (3:1, 2_W:1))")):
        options = {} if layout is None else {"overrides": {"table": {"layout": layout}}}
        compiled = shared.compile(
            lambda d: {"y": d["x"] - weight}, sample, tmp_path / f"{number}", options=options
        )
        functions.append((compiled, lambda x, w: x - w))
    for value in (weight.clone(), torch.randn(8, 6)):
        shared.get_registered_value_proxy(weight).load_from(value)
        x = torch.randn(8, 6)
        for compiled, reference in functions:
            close(compiled({"x": x})["y"], reference(x, value))
    texts = [(tmp_path / f"{n}" / "l3ir.txt").read_text() for n in range(2)]
    assert "8:3" in texts[1]
    assert "8:3" not in texts[0]


@pytest.mark.parametrize(
    ("machine", "size", "whole"),
    [("mini", 27, True), ("mini", 27, False), ("mncore2", 65, False)],
)
def test_a_registered_embedding(tmp_path: Path, machine: str, size: int, whole: bool) -> None:
    """A bigram model whose table may change: registered as a module, or as one parameter."""
    torch.manual_seed(3)
    table, shared = nn.Embedding(size, size).eval(), context(f"emu2:{machine}")
    if whole:
        shared.registry.register("net", table)
    else:
        set_tensor_name(table.weight, "weight")
        shared.register_param(table.weight)

    def forward(d: Tensors) -> Tensors:
        logits = table(d["x"])
        loss = nn.functional.cross_entropy(logits.view(-1, size), d["y"].view(-1))
        return {"logits": logits, "loss": loss}

    sample = {name: torch.zeros(2, 4, dtype=torch.int64) for name in "xy"}
    compiled = shared.compile(forward, sample, tmp_path / "out", options={"strict": True})
    for seed in (0, 7):
        torch.manual_seed(seed)
        value = torch.randn(size, size)
        shared.get_registered_value_proxy(table.weight).load_from(value)
        given = {name: torch.randint(0, size, (2, 4)) for name in "xy"}
        found = compiled(given)
        logits = value[given["x"]]
        assert torch.equal(found["logits"].cpu(), logits)
        wanted = nn.functional.cross_entropy(logits.view(-1, size), given["y"].view(-1))
        close(found["loss"], wanted)


def test_names() -> None:
    model = nn.Sequential(linear(1), nn.BatchNorm1d(5))
    assert get_tensor_name(model[0].weight) is None
    set_tensor_name_in_module(model, "m")
    assert get_tensor_name(model[0].weight) == "m.0.weight"
    assert get_tensor_name(model[1].running_mean) == "m.1.running_mean"
    set_tensor_name(model[0].weight, "other")
    assert get_tensor_name(model[0].weight) == "other"
    assert get_tensor_name(torch.ones(1)) is None
    for wrong in (
        lambda: set_tensor_name(3, "a"),  # type: ignore[arg-type]
        lambda: set_tensor_name(torch.ones(1), ""),
        lambda: set_tensor_name_in_module(model, 3),  # type: ignore[arg-type]
        lambda: set_tensor_name_in_module([], "m"),  # type: ignore[arg-type]
        lambda: context("pfvm:cpu").registry.register("m", 3),
        lambda: context("pfvm:cpu").register_param(3),  # type: ignore[arg-type]
    ):
        with pytest.raises(PycompilerError) as caught:
            wrong()
        assert caught.value.code == "P0704"


def test_names_reach_the_model(tmp_path: Path) -> None:
    weight, bias = torch.randn(4), torch.randn(4)
    set_tensor_name(weight, "scale")
    set_tensor_name(bias, "x")  # this is already the name of an input
    shared = context("emu2:mini")
    compiled = shared.compile(
        lambda d: {"y": d["x"] * weight + bias}, {"x": torch.zeros(4)}, tmp_path / "out"
    )
    names = {tensor.name for tensor in onnx.load(tmp_path / "out" / "model.onnx").graph.initializer}
    assert names == {"scale", "x__1"}
    x = torch.randn(4)
    close(compiled({"x": x})["y"], x * weight + bias)


def test_what_cannot_be_registered() -> None:
    shared = context("pfvm:cpu")
    named, same = torch.ones(2), torch.ones(2)
    set_tensor_name(named, "a")
    set_tensor_name(same, "a")
    shared.register_param(named)
    shared.register_param(named)
    complex_ = torch.ones(2, dtype=torch.complex64)
    set_tensor_name(complex_, "c")
    for code, wrong in (
        ("P0608", lambda: shared.register_param(torch.ones(2))),
        ("P0608", lambda: shared.register_buffer(same)),
        ("P0608", lambda: shared.get_registered_value_proxy(same)),
        ("P0608", lambda: shared.get_registered_value_proxy(torch.ones(2))),
        ("P0109", lambda: shared.register_param(complex_)),
    ):
        with pytest.raises(PycompilerError) as caught:
            wrong()
        assert caught.value.code == code


def test_another_type_by_the_same_name_is_refused(tmp_path: Path) -> None:
    first, second = context("pfvm:cpu"), context("pfvm:cpu")
    small, large = torch.ones(2), torch.ones(3)
    for owner, tensor in ((first, small), (second, large)):
        set_tensor_name(tensor, "w")
        owner.register_param(tensor)
    first.compile(lambda d: {"y": d["x"] * small}, {"x": torch.ones(2)}, tmp_path / "out")
    with pytest.raises(PycompilerError) as caught:
        second.load_codegen_dir(tmp_path / "out")
    assert caught.value.code == "P0608"
    with pytest.raises(PycompilerError) as caught:
        second.load_codegen_dir(3)  # type: ignore[arg-type]
    assert caught.value.code == "P0704"


def test_invalidate(tmp_path: Path) -> None:
    shared = context("emu2:mini")
    sample = {"x": torch.ones(4)}
    compiled = shared.compile(lambda d: {"y": d["x"] * 2.0}, sample, tmp_path / "out")
    out = compiled(sample)["y"]
    shared.invalidate()
    for use in (
        out.cpu,
        shared.synchronize,
        lambda: compiled(sample),
        lambda: shared.load_codegen_dir(tmp_path / "out"),
        lambda: shared.compile(lambda d: d, sample, tmp_path / "more"),
    ):
        with pytest.raises(PycompilerError) as caught:
            use()
        assert caught.value.code == "P0607"


def test_an_optimizer_without_a_known_step_is_refused() -> None:
    parameters = [nn.Parameter(torch.ones(2))]
    shared: Context = context("pfvm:cpu")
    with pytest.raises(PycompilerError, match="Adagrad") as caught:
        shared.registry.register("o", torch.optim.Adagrad(parameters, 0.1))
    assert caught.value.code == "P0703"
    shared.registry.register("model0", nn.ParameterList(parameters))
    shared.registry.register("o", torch.optim.SGD(parameters, 0.1))
    with pytest.raises(PycompilerError, match="MNCoreOptimizer") as caught:
        shared.register_optimizer_buffers(torch.optim.SGD(parameters, 0.1))  # type: ignore[arg-type]
    assert caught.value.code == "P0704"


@pytest.mark.parametrize(
    ("kind", "refused"),
    [("tied by data", True), ("a view", True), ("parts of one buffer", False), ("tied", False)],
)
def test_values_that_share_memory(tmp_path: Path, kind: str, refused: bool) -> None:
    """A change of one would not reach the other: it is refused, unless they are one tensor."""
    shared, sample = context("pfvm:cpu"), {"x": torch.ones(2)}
    whole = torch.zeros(4)
    first, second = {
        "tied by data": lambda: (nn.Parameter(whole), nn.Parameter(whole)),
        "a view": lambda: (whole, whole[1:3]),
        "parts of one buffer": lambda: (whole[:2], whole[2:]),
        "tied": lambda: (whole, whole),
    }[kind]()
    for name, tensor in (("first", first), ("second", second)):
        set_tensor_name(tensor, name)
        shared.register_buffer(tensor)

    def step(d: Tensors) -> Tensors:
        with torch.no_grad():
            second.add_(d["x"].sum())
        return {"y": first.sum()}

    read = shared.compile(
        lambda d: {"y": d["x"] + second.sum()}, sample, tmp_path / "read", quiet=True
    )
    assert read(sample)["y"].cpu().tolist() == [1, 1]
    if refused:
        with pytest.raises(PycompilerError, match=r"P0703.*shares its memory"):
            shared.compile(step, sample, tmp_path / "step")
        return
    run = shared.compile(step, sample, tmp_path / "step", quiet=True)
    wanted = 8 if first is second else 0
    assert run(sample)["y"].item() == wanted
    assert shared.get_registered_value_proxy(second).cpu().tolist() == [2] * len(second)
    shared.synchronize()
    assert whole.tolist() == ([2] * 4 if first is second else [0, 0, 2, 2])


def test_expanded_tensors_stay_as_they_are(tmp_path: Path) -> None:
    """A model may have them as buffers, and torch would not write them."""
    shared, buffer = context("pfvm:cpu"), torch.tensor([3.0]).expand(4)
    set_tensor_name(buffer, "places")
    shared.register_buffer(buffer)
    run = shared.compile(
        lambda d: {"y": d["x"] + buffer}, {"x": torch.ones(4)}, tmp_path / "o", quiet=True
    )
    assert run({"x": torch.ones(4)})["y"].cpu().tolist() == [4] * 4
    shared.synchronize()
    assert buffer.tolist() == [3] * 4
