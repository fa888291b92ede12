"""What a function keeps between its operators: counted, packed, printed and drawn."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import onnx
import pytest
import torch
from click.testing import CliRunner
from compiling import context
from onnx import TensorProto, helper
from resnet18 import resnet18
from torch import nn

from pycompiler.build import load_model
from pycompiler.cli import commands
from pycompiler.errors import PycompilerError
from pycompiler.memory import (
    ACTIVATION,
    GRADIENT,
    KINDS,
    WEIGHT_GRADIENT,
    Tensor,
    lower_bound,
    tensors_of,
    training_tensors,
    uses,
)
from pycompiler.mlsdk import MNCoreSGD
from pycompiler.pfvm.prepare import prepare
from pycompiler.pfvm.registered import detach, updates
from pycompiler.pfvm.update_order import IMMEDIATE, LAST, ordered, own_updates

MIB = 2**20
Tensors = dict[str, torch.Tensor]


def test_resnet18() -> None:
    """The case of a published compiler: 37.35 without reuse, 13.08 with its packing."""
    tensors = training_tensors(resnet18(), half=True, vectors=False, inputs=True)
    ways = uses(tensors)
    assert f"{ways[0].size / MIB:.2f}" == "37.35"
    assert ways[-1].size == lower_bound(tensors)
    assert ways[-1].size <= 13.08 * MIB
    assert [way.size for way in ways] == sorted((way.size for way in ways), reverse=True)


def _drawn(seed: int) -> list[Tensor]:
    draw = random.Random(seed)
    found = []
    for number in range(draw.randint(1, 24)):
        start = draw.randint(0, 30)
        kind, end = draw.choice(KINDS), start + draw.randint(1, 12)
        found.append(Tensor(f"t{number}", kind, draw.randint(1, 99), start, end))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_drawn_packings(seed: int) -> None:
    """No two tensors share a byte while both live; each way needs no more than the one before."""
    tensors = _drawn(seed)
    at = {t: sum(o.size for o in tensors if o.start <= t < o.end) for t in range(45)}
    assert lower_bound(tensors) == max(at.values())
    ways = uses(tensors)
    for way in ways:
        assert set(way.offsets) == {tensor.name for tensor in tensors}
        assert max(way.offsets[t.name] + t.size for t in tensors) <= way.size
        for number, one in enumerate(tensors):
            for other in tensors[number + 1 :]:
                apart = one.end <= other.start or other.end <= one.start
                low, high = sorted((one, other), key=lambda t: way.offsets[t.name])
                assert apart or way.offsets[low.name] + low.size <= way.offsets[high.name]
    assert all(one.size >= other.size for one, other in pairwise(ways)), ways
    assert ways[-1].size >= lower_bound(tensors)


def _train(model: nn.Module, optimizer: MNCoreSGD) -> Callable[[Tensors], Tensors]:
    def train(d: Tensors) -> Tensors:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(d["x"]), d["y"])
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    return train


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a training step."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3))
    optimizer = MNCoreSGD(model.parameters(), lr=0.1, momentum=0.9)
    shared = context("emu2:mini")
    shared.registry.register("model0", model)
    shared.registry.register("optimizer0", optimizer)

    folder = tmp_path_factory.mktemp("memory") / "step"
    shared.compile(
        _train(model, optimizer), {"x": torch.randn(9, 7), "y": torch.randn(9, 3)}, folder
    )
    return folder


def _read(folder: Path) -> onnx.ModelProto:
    plain, _ = detach(onnx.load(folder / "model.onnx"))
    return prepare(plain)


def test_kinds_of_a_step(step: Path) -> None:
    tensors = tensors_of(ordered(_read(step), IMMEDIATE))
    assert {tensor.kind for tensor in tensors} == set(KINDS)
    sizes = {kind: {t.size for t in tensors if t.kind == kind} for kind in KINDS}
    assert 7 * 5 * 4 in sizes[WEIGHT_GRADIENT]
    assert 9 * 5 * 4 in sizes[GRADIENT]
    assert 9 * 5 * 4 in sizes[ACTIVATION]
    half = tensors_of(_read(step), half=True)
    assert sum(t.size for t in half) < sum(t.size for t in tensors)


def test_order_of_updates(step: Path) -> None:
    """Every node stands behind what it reads, and the updates of the last layer come first."""
    model = _read(step)
    assert ordered(model, LAST) is model
    early = ordered(model, IMMEDIATE)
    nodes = list(early.graph.node)
    assert sorted(n.output[0] for n in nodes) == sorted(n.output[0] for n in model.graph.node)
    made = {name for node in nodes for name in node.output}
    seen: set[str] = set()
    for node in nodes:
        assert {name for name in node.input if name in made} <= seen
        seen.update(node.output)
    own = own_updates(model)
    places = {
        goal: [at for at, n in enumerate(nodes) if own.get(n.output[0]) == goal]
        for goal in own.values()
    }
    large = {value: own[output] for output, value in updates(model).items() if output in own}
    last = next(places[goal] for value, goal in large.items() if "2.weight" in value)
    first = next(places[goal] for value, goal in large.items() if "0.weight" in value)
    assert max(last) < max(first)


@pytest.mark.long
def test_updates_give_the_same_bits(tmp_path: Path) -> None:
    found = []
    for when in (LAST, IMMEDIATE):
        torch.manual_seed(2)
        model = nn.Sequential(nn.Linear(6, 11), nn.Tanh(), nn.Linear(11, 3))
        optimizer = MNCoreSGD(model.parameters(), lr=0.2, momentum=0.5)
        shared = context("emu2:mini")
        shared.registry.register("model0", model)
        shared.registry.register("optimizer0", optimizer)

        sample = {"x": torch.randn(5, 6), "y": torch.randn(5, 3)}
        compiled = shared.compile(
            _train(model, optimizer), sample, tmp_path / when, options={"update": when}
        )
        for _ in range(3):
            compiled(sample)
        shared.synchronize()
        found.append([parameter.detach().clone() for parameter in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_the_command(step: Path, tmp_path: Path) -> None:
    run = CliRunner().invoke(commands, ["memory", str(step), "--draw", str(tmp_path / "drawn")])
    assert run.exit_code == 0, run.output
    for text in ("no reuse", "immediate update", "best packing", "lower bound", "weight gradient"):
        assert text in run.output
    pictures = sorted((tmp_path / "drawn").iterdir())
    assert len(pictures) == 4
    for path in pictures:
        root = ElementTree.parse(path).getroot()
        titles = [title for title in root.iter() if title.tag.endswith("title")]
        assert len(titles) == len(tensors_of(_read(step)))


def test_an_inference_has_two_ways(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 6))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 6))
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)
    run = CliRunner().invoke(commands, ["memory", str(path)])
    assert run.exit_code == 0, run.output
    assert re.search(r"no reuse\D+384\b", run.output)
    assert re.search(r"best packing\D+192\b", run.output)
    assert "immediate" not in run.output
    more = CliRunner().invoke(commands, ["memory", str(path), "--training"])
    assert "gradients share memory" in more.output


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["{missing}"], "P0001"), (["{text}"], "P0002"), (["{step}", "--training"], "P0118")],
)
def test_refused(arguments: list[str], code: str, step: Path, tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    places = {"missing": tmp_path / "missing.onnx", "text": tmp_path / "text.onnx", "step": step}
    given = [argument.format(**places) for argument in arguments]
    run = CliRunner().invoke(commands, ["memory", *given])
    assert isinstance(run.exception, PycompilerError), run.output
    assert run.exception.code == code


def test_load_model_reads_external_data(tmp_path: Path) -> None:
    model = resnet18()
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data")
    assert training_tensors(prepare(load_model(tmp_path / "m.onnx"))) == training_tensors(model)


def test_a_body_keeps_what_it_reads() -> None:
    """A value that only the branch of an If reads lives until the If."""
    info = helper.make_tensor_value_info
    x, y = info("x", TensorProto.FLOAT, (5,)), info("y", TensorProto.FLOAT, (5,))
    branches = {
        name: helper.make_graph(
            [helper.make_node(op, ["a"], [f"{name}_out"])],
            name,
            [],
            [info(f"{name}_out", TensorProto.FLOAT, (5,))],
        )
        for name, op in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("Tanh", ["x"], ["b"]),
        helper.make_node("If", ["c"], ["d"], **branches),
        helper.make_node("Add", ["b", "d"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x, info("c", TensorProto.BOOL, ())], [y])
    model = prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    (kept,) = [tensor for tensor in tensors_of(model) if tensor.name == "a"]
    assert (kept.start, kept.end) == (0, 3)


def test_running_statistics_have_no_gradient() -> None:
    data = [helper.make_tensor(n, TensorProto.FLOAT, (3,), [1.0] * 3) for n in "sbmv"]
    info = helper.make_tensor_value_info
    x, y = (info(n, TensorProto.FLOAT, (2, 3, 4)) for n in "xy")
    nodes = [helper.make_node("BatchNormalization", ["x", *"sbmv"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], data)
    model = prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    found = {t.name for t in training_tensors(model) if t.kind == WEIGHT_GRADIENT}
    assert found == {"gradient of s", "gradient of b"}


@pytest.mark.parametrize(
    ("elem", "size"),
    [
        (TensorProto.FLOAT, 4),
        (TensorProto.DOUBLE, 8),
        (TensorProto.FLOAT16, 2),
        (TensorProto.BFLOAT16, 2),
    ],
)
def test_gradients_of_every_float_count(elem: int, size: int) -> None:
    """Two layers: a product with a tensor of 3 x 5, and an exponential with another one."""
    weight = helper.make_tensor("w", elem, (4, 5), [1.0] * 20)
    x = helper.make_tensor_value_info("x", elem, (3, 4))
    y = helper.make_tensor_value_info("y", elem, (3, 5))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Exp", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    opsets = [helper.make_opsetid("", 20)]
    model = prepare(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    found = {t.name: t.size for t in training_tensors(model) if t.kind == GRADIENT}
    assert found == {"gradient of h": 15 * size, "gradient of y": 15 * size}
    (learnt,) = [t for t in training_tensors(model) if t.kind == WEIGHT_GRADIENT]
    assert learnt.size == 20 * size
