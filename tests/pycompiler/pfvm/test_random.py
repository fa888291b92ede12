"""Random numbers differ between calls and operators, and no pass merges two of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from compiling import context, report_of, sampled
from onnx import helper, numpy_helper
from torch.nn import functional

from pycompiler.errors import PycompilerError
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

Tensors = dict[str, torch.Tensor]
#: A function, mean and deviation of its result.
Row = tuple[Callable[[Tensors], torch.Tensor], float, float]

SHAPE = (32, 16)
INPUT = torch.zeros(SHAPE)
_HALF = 0.5**0.5


def _twice(made: Callable[[], torch.Tensor]) -> torch.Tensor:
    return made() - made()


ROWS: dict[str, Row] = {
    "randn": (lambda d: d["x"] + torch.randn(SHAPE), 0, 1),
    "randn twice": (
        lambda d: d["x"] + _twice(lambda: torch.randn(SHAPE)),
        0,
        2**0.5,
    ),
    "randn_like": (lambda d: torch.randn_like(d["x"]), 0, 1),
    "rand": (lambda d: d["x"] + torch.rand(SHAPE), 0.5, 12**-0.5),
    "rand_like": (lambda d: torch.rand_like(d["x"]), 0.5, 12**-0.5),
    "randint": (
        lambda d: d["x"] + torch.randint(0, 100, SHAPE),
        49.5,
        100 * 12**-0.5,
    ),
    "normal": (lambda d: torch.normal(3.0, 2.0, SHAPE) + d["x"], 3, 2),
    "normal of tensors": (
        lambda d: torch.normal(d["x"], torch.exp(d["x"])),
        0,
        1,
    ),
    "bernoulli": (
        lambda d: torch.bernoulli(torch.sigmoid(d["x"])),
        0.5,
        0.5,
    ),
    "bernoulli of a constant": (
        lambda d: torch.bernoulli(torch.full(SHAPE, 0.25)) + d["x"],
        0.25,
        0.1875**0.5,
    ),
    "bernoulli twice": (
        lambda d: _twice(lambda: torch.bernoulli(torch.sigmoid(d["x"]))),
        0,
        _HALF,
    ),
    "dropout": (lambda d: functional.dropout(d["x"] + 1, 0.5, True), 1, 1),
    "dropout of a constant": (
        lambda d: functional.dropout(torch.ones(SHAPE), 0.5, True) + d["x"],
        1,
        1,
    ),
    "dropout twice": (
        lambda d: _twice(lambda: functional.dropout(d["x"] + 1, 0.5, True)),
        0,
        2**0.5,
    ),
    "multinomial": (
        lambda d: torch.multinomial(torch.softmax(d["x"], 1), 4, replacement=True),
        7.5,
        (255 / 12) ** 0.5,
    ),
}


@pytest.mark.parametrize("device", ["pfvm:cpu", pytest.param("emu2:mini", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", sampled([*ROWS], every=3))
def test_random_numbers(name: str, device: str, tmp_path: Path) -> None:
    made, mean, deviation = ROWS[name]
    options = {"strict": True} if device != "pfvm:cpu" else {}
    function = context(device).compile(
        lambda d: {"y": made(d)}, {"x": INPUT}, tmp_path / "a", options=options
    )
    first, second = (function({"x": INPUT})["y"].cpu().double() for _ in range(2))
    assert (first != second).float().mean() > 0.2
    for found in (first, second):
        count = found.numel()
        assert abs(found.mean().item() - mean) < 6 * deviation / count**0.5
        assert 0.8 * deviation < found.std().item() < 1.2 * deviation


def test_random_numbers_on_the_device(tmp_path: Path) -> None:
    """The same as on the host, drawn from torch functions; device and host differ in roots."""

    def f(d: Tensors) -> Tensors:
        return {
            "randn": torch.randn_like(d["x"]),
            "randint": torch.randint(0, 100, d["x"].shape),
            "bernoulli": torch.bernoulli(torch.sigmoid(d["x"])),
            "dropout": functional.dropout(d["x"] + 1, 0.5, True),
        }

    x, found = torch.zeros(9, 4), []
    for device, options in (("emu2:mini", {"strict": True}), ("pfvm:cpu", {})):
        torch.manual_seed(1)
        function = context(device).compile(f, {"x": x}, tmp_path / device, options=options)
        found += [{name: y.cpu() for name, y in function({"x": x}).items()} for _ in range(2)]
    for ours, theirs in zip(found[:2], found[2:], strict=True):
        for name, wanted in theirs.items():
            bound = 2e-6 if name == "randn" else 0.0
            assert float((ours[name] - wanted).abs().max()) <= bound, name
    assert not torch.equal(found[0]["randint"], found[1]["randint"])


def test_the_seed_before_a_compile_decides(tmp_path: Path) -> None:
    """Also in another context; and compiling leaves torch's own generator as it was."""
    found = []
    for number, seed in enumerate((5, 5, 6)):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        function = context("pfvm:cpu").compile(
            lambda d: {"y": torch.rand_like(d["x"])}, {"x": INPUT}, tmp_path / str(number)
        )
        assert torch.equal(torch.get_rng_state(), before)
        found.append(function({"x": INPUT})["y"].cpu())
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_draws_without_replacement_are_refused(tmp_path: Path) -> None:
    """torch's exporter translates them as draws with replacement."""
    with pytest.raises(PycompilerError, match="without replacement") as caught:
        context("pfvm:cpu").compile(
            lambda d: {"y": torch.multinomial(torch.softmax(d["x"], 1), 3)},
            {"x": INPUT},
            tmp_path / "a",
        )
    assert caught.value.code == "P0138"


def test_dropout_that_drops_nothing_runs_nowhere(tmp_path: Path) -> None:
    def f(d: Tensors) -> Tensors:
        return {"y": functional.dropout(d["x"] + 1, 0.5, False)}

    function = context("emu2:mini").compile(f, {"x": INPUT}, tmp_path / "a")
    assert report_of(tmp_path / "a")["host_fallback"] == []
    assert torch.equal(function({"x": INPUT})["y"].cpu(), INPUT + 1)


#: ONNX operators without inputs or with constant inputs.
NODES = {
    "RandomNormal": ([], {"shape": [8, 8]}),
    "RandomUniform": ([], {"shape": [8, 8]}),
    "RandomNormalLike": (["ones"], {}),
    "RandomUniformLike": (["ones"], {}),
    "Bernoulli": (["half"], {}),
    "Dropout": (["ones", "ratio", "true"], {}),
}


@pytest.mark.parametrize("op", NODES)
def test_passes_keep_every_node(op: str) -> None:
    """Two equal nodes that read constants stay two nodes with different results."""
    inputs, attributes = NODES[op]
    made = [helper.make_node(op, inputs, [name], **attributes) for name in ("a", "b")]
    constants = {
        "ones": np.ones((8, 8), np.float32),
        "half": np.full((8, 8), 0.5, np.float32),
        "ratio": np.array(0.5, np.float32),
        "true": np.array(True),
    }
    graph = helper.make_graph(
        [
            *made,
            helper.make_node("Sub", ["a", "b"], ["c"]),
            helper.make_node("Add", ["c", "x"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (8, 8))],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (8, 8))],
        [numpy_helper.from_array(constants[name], name) for name in inputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    optimised = optimise(model)
    drawn = {"Bernoulli": "RandomUniformLike"}.get(op, op)
    assert [node.op_type for node in optimised.graph.node].count(drawn) == 2
    found = HostSession(optimised, "m").run({"x": np.zeros((8, 8), np.float32)})
    assert np.abs(found["y"]).sum() > 0
