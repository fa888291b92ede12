"""Patterns: what is found, what is not, and what users add."""

from __future__ import annotations

import os
from math import inf

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from compiling import model_of

import pycompiler
from pycompiler.errors import PycompilerError
from pycompiler.partitioning import PATTERNS, Any, Row, SupportTable, Unit, op, pattern
from pycompiler.partitioning.patterns import Part, Pattern, composites
from pycompiler.partitioning.source import read_source

W = np.ones((4, 4), np.float32)
K = np.ones((2, 3, 1, 1), np.float32)
PICTURE = {"x": (1, 3, 4, 4), "y": (1, 2, 4, 4)}


def names(model: onnx.ModelProto, patterns: tuple[Pattern, ...] = PATTERNS) -> list[str]:
    return [unit.name for unit in composites(read_source(model), patterns)]


@pytest.mark.parametrize(
    ("nodes", "inputs", "wanted"),
    [
        (
            [("Conv", ["x", "K"], "a"), ("Add", ["a", "y"], "b"), ("Relu", ["b"], "r")],
            PICTURE,
            ["Conv_Add_Relu"],
        ),
        (
            [("Conv", ["x", "K"], "a"), ("Add", ["y", "a"], "b"), ("Relu", ["b"], "r")],
            PICTURE,
            ["Conv_Add_Relu"],
        ),
        ([("Conv", ["x", "K"], "a"), ("Relu", ["a"], "r")], PICTURE, ["Conv_Relu"]),
        # The sum has another reader, so only what lies after it could be one.
        (
            [("Conv", ["x", "K"], "a"), ("Relu", ["a"], "b"), ("Add", ["a", "b"], "r")],
            PICTURE,
            [],
        ),
        ([("MatMul", ["x", "W"], "a"), ("Relu", ["a"], "r")], {"x": (2, 4)}, ["Product_Relu"]),
        ([("Gemm", ["x", "W"], "a"), ("Gelu", ["a"], "r")], {"x": (2, 4)}, ["Product_Gelu"]),
        ([("Gelu", ["x"], "r")], {"x": (2, 4)}, []),  # one node needs no pattern
        ([("Gemm", ["x", "W"], "a"), ("Tanh", ["a"], "r")], {"x": (2, 4)}, []),
    ],
)
def test_chosen_graphs(nodes: list, inputs: dict, wanted: list[str]) -> None:
    model = model_of(nodes, inputs, ["r"], {"K": K, "W": W})
    assert names(model) == wanted


class Attention(torch.nn.Module):
    def __init__(self, masked: bool):
        super().__init__()
        self.masked = masked

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-1, -2) / 2.0
        if self.masked:
            scores = scores + torch.full((3, 3), -1e9).triu(1)
        return torch.softmax(scores, -1) @ v


class Norm(torch.nn.Module):
    def __init__(self, centred: bool):
        super().__init__()
        self.centred, self.weight = centred, torch.nn.Parameter(torch.rand(4))
        self.bias = torch.nn.Parameter(torch.rand(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.centred:
            x = x - x.mean(-1, keepdim=True)
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight + self.bias
        return x * (1 / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)) * self.weight


class Gelu(torch.nn.Module):
    def __init__(self, form: str):
        super().__init__()
        self.form, self.linear = form, torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        if self.form == "tanh":
            return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
        return x * 0.5 * (1 + torch.erf(x / 2**0.5))


LONG = pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="torch's exporter is slow")
X = torch.arange(12.0).reshape(3, 4) / 10


@pytest.mark.parametrize(
    ("module", "inputs", "wanted"),
    [
        pytest.param(Attention(True), (X, X, X), "Attention", marks=LONG),
        pytest.param(Norm(True), (X,), "LayerNorm", marks=LONG),
        (Gelu("tanh"), (X,), "Product_Gelu"),
        pytest.param(Attention(False), (X, X, X), "Attention", marks=LONG),
        pytest.param(Norm(False), (X,), "RMSNorm", marks=LONG),
        pytest.param(Gelu("erf"), (X,), "Product_Gelu", marks=LONG),
    ],
)
def test_modules_as_torch_exports_them(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], wanted: str
) -> None:
    program = torch.onnx.export(module.eval(), inputs, dynamo=True, verbose=False)
    model = program.model_proto
    assert wanted in names(model)
    found = pycompiler.partition(model, "emu2:mini", threshold=inf, simulate=False)
    onnx.checker.check_model(found.model, full_check=True)
    given = [value.name for value in model.graph.input]
    arrays = {name: x.numpy() for name, x in zip(given, inputs, strict=True)}
    session = onnxruntime.InferenceSession(found.model.SerializeToString())
    (made,) = session.run(None, arrays)
    np.testing.assert_allclose(made, module(*inputs).detach().numpy(), rtol=1e-4, atol=1e-5)
    used = {function.name.rsplit("_", 1)[0] for function in found.model.functions}
    assert wanted in used


@pattern("Cosine_Pair", check=lambda unit: len(unit.nodes) == 2)
def cosine_pair() -> Part:
    return op("Mul", op("Cos", Any()), Any())


def test_a_pattern_of_a_user() -> None:
    """A device may take a composite whose operators it does not take alone."""
    nodes = [("Cos", ["x"], "c"), ("Mul", ["x", "c"], "y")]
    model = model_of(nodes, {"x": (4,)}, ["y"])
    table = SupportTable([Row("Cosine_Pair")])
    facts = {"support": table, "threshold": inf, "simulate": False}
    without = pycompiler.partition(model, "emu2:mini", **facts)
    assert not any(piece.on_device for piece in without.pieces)
    found = pycompiler.partition(model, "emu2:mini", patterns=[cosine_pair], **facts)
    assert [piece.on_device for piece in found.pieces] == [True]
    (unit,) = found.units
    assert (unit.name, unit.numbers) == ("Cosine_Pair", (0, 1))
    domains = [function.domain for function in found.model.functions]
    assert domains == ["pycompiler.composite", "pycompiler.device"]
    x = np.linspace(-2, 2, 4, dtype=np.float32)
    session = onnxruntime.InferenceSession(found.model.SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": x})[0], x * np.cos(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("op_type", "wanted", "attributes", "fits"),
    [
        ("LeakyRelu", {"alpha": 0.2}, {"alpha": 0.2}, True),  # a single is not the double 0.2
        ("LeakyRelu", {"alpha": 0.2}, {"alpha": 0.21}, False),
        ("LeakyRelu", {"alpha": 0.01}, {}, True),  # the default of ONNX
        ("LeakyRelu", {"alpha": 0.2}, {}, False),
        ("LeakyRelu", {"alfa": 0.2}, {}, False),
        ("Transpose", {"perm": (1, 0)}, {"perm": [1, 0]}, True),
        ("Transpose", {"perm": (0, 1)}, {"perm": [1, 0]}, False),
        ("Gelu", {"approximate": "none"}, {}, True),
        ("Gelu", {"approximate": "tanh"}, {"approximate": "tanh"}, True),
    ],
)
def test_attributes(op_type: str, wanted: dict, attributes: dict, fits: bool) -> None:
    own = pattern("Own")(lambda: op(op_type, op("Neg", Any()), **wanted))
    model = model_of([("Neg", ["x"], "a"), (op_type, ["a"], "y")], {"x": (2, 3)}, ["y"])
    for name, value in attributes.items():
        model.graph.node[1].attribute.append(onnx.helper.make_attribute(name, value))
    assert names(model, (own,)) == (["Own"] if fits else [])


def test_a_value_that_stands_twice_is_one_value() -> None:
    @pattern("Square")
    def square() -> Part:
        x = op("Neg", Any())
        return op("Mul", x, x)

    same = [("Neg", ["x"], "a"), ("Mul", ["a", "a"], "y")]
    other = [("Neg", ["x"], "a"), ("Neg", ["z"], "b"), ("Mul", ["a", "b"], "y")]
    shapes = {"x": (4,), "z": (4,)}
    assert names(model_of(same, shapes, ["y"]), (square,)) == ["Square"]
    assert names(model_of(other, shapes, ["y"]), (square,)) == []


def test_a_check_may_refuse() -> None:
    def never(unit: Unit) -> bool:
        return False

    refused = pattern("Refused", check=never)(lambda: op("Neg", op("Neg", Any())))
    model = model_of([("Neg", ["x"], "a"), ("Neg", ["a"], "y")], {"x": (4,)}, ["y"])
    assert names(model, (refused,)) == []


@pytest.mark.parametrize(
    ("name", "tree"), [("two words", lambda: op("Neg")), ("Fine", lambda: None), ("Fine", Any)]
)
def test_wrong_patterns(name: str, tree: object) -> None:
    with pytest.raises(PycompilerError) as caught:
        pattern(name)(tree)  # type: ignore[arg-type]
    assert caught.value.code == "P0802"
