"""Exported elementwise functions of torch run on the device; the PFVM stage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from compiling import compiled, context, model_of, report_of, run, sampled

from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession
from pycompiler.tolerance import FUNCTION, bound

F = torch.nn.functional
Tensors = dict[str, torch.Tensor]

#: Functions of two tensors without cancellation, so that a relative bound is meaningful.
FUNCTIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "rsqrt": lambda x, y: torch.rsqrt(x.abs() + 0.1),
    "square": lambda x, y: x**2,
    "cube": lambda x, y: x**3,
    "root": lambda x, y: (x.abs() + 0.1) ** 0.5,
    "inverse": lambda x, y: (x.abs() + 0.1) ** -1,
    "power": lambda x, y: (x.abs() + 0.1) ** y,
    "exponential": lambda x, y: 2.0**x,
    "silu": lambda x, y: F.silu(x),
    "leaky": lambda x, y: F.leaky_relu(x, 0.2),
    "softplus": lambda x, y: F.softplus(x),
    "clamp": lambda x, y: x.clamp(-1, 1),
    "clamp_min": lambda x, y: x.clamp(min=0.25),
    "clamp_max": lambda x, y: x.clamp(max=0.25),
    "where": lambda x, y: torch.where(x > y, x, y),
    "masked": lambda x, y: x.masked_fill(x > 1, float("-inf")).exp(),
    "logic": lambda x, y: (x > 0) & (y < 0) | ~(x >= 1) ^ (y <= 0.5),
    "not equal": lambda x, y: x.int() != y.int(),
    "integers": lambda x, y: x.long() * 3 + y.long() - 1,
    "int to float": lambda x, y: x.int().float() * 2,
    "half": lambda x, y: x.half(),
    "half and back": lambda x, y: x.half().float(),
    "truncated": lambda x, y: x.trunc(),
    "bits": lambda x, y: x.int() & y.int(),
    "quotient": lambda x, y: x / (y.abs() + 1),
    "hardtanh": lambda x, y: F.hardtanh(x),
}


def test_functions_of_torch(tmp_path: Path) -> None:
    def everything(d: Tensors) -> Tensors:
        return {name: function(d["x"], d["y"]) for name, function in FUNCTIONS.items()}

    torch.manual_seed(1)
    sample = {name: torch.randn(3, 40) for name in "xy"}
    compiled = context().compile(everything, sample, tmp_path / "out")
    assert report_of(tmp_path / "out")["host_fallback"] == []
    given = {name: torch.randn(3, 40) * 3 for name in "xy"}
    assert not torch.equal(given["x"], sample["x"])
    found, wanted = compiled(given), everything(given)
    for name, reference in wanted.items():
        tensor = found[name].cpu()
        assert isinstance(tensor, torch.Tensor)
        assert tensor.dtype is reference.dtype
        if reference.dtype is not torch.float32:
            assert torch.equal(tensor, reference), name
            continue
        limit = bound("Float", FUNCTION, 4) * reference.abs() + 2.0**-126
        assert bool(((tensor - reference).abs() <= limit).all()), name
    on_host = context("pfvm:cpu").compile(everything, sample, tmp_path / "host")
    assert torch.allclose(on_host(given)["power"].cpu(), wanted["power"], rtol=1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize("sign", [1, -1])
def test_the_greatest_of_one_number(tmp_path: Path, sign: int) -> None:
    """A number has no axis, which ONNX's TopK wants."""

    def function(d: Tensors) -> Tensors:
        values, places = torch.topk(d["x"], 1, largest=sign > 0)
        return {"values": values, "places": places}

    x = torch.tensor(sign * 2.5)
    found = context().compile(function, {"x": x}, tmp_path / "out")({"x": x})
    for name, wanted in function({"x": x}).items():
        result = found[name].cpu()
        assert isinstance(result, torch.Tensor)
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        assert torch.equal(result, wanted)


@pytest.mark.parametrize(
    ("op", "constants", "expected"),
    [
        ("Pow", {"k": np.float32(2)}, ["Mul"]),
        ("Pow", {"k": np.float32(3)}, ["Mul", "Mul"]),
        ("Pow", {"k": np.float32(-0.5)}, ["Sqrt", "Reciprocal"]),
        ("Pow", {"k": np.float32(2.5)}, ["Pow"]),
        ("Clip", {"k": np.float32(0.5)}, ["Max"]),
    ],
)
def test_decomposition(op: str, constants: dict[str, np.float32], expected: list[str]) -> None:
    arrays = {name: np.asarray(value) for name, value in constants.items()}
    model = model_of([(op, ["x", "k"], "out")], {"x": (4, 5)}, ["out"], arrays)
    before = model.SerializeToString()
    made = optimise(model)
    assert model.SerializeToString() == before
    assert [node.op_type for node in made.graph.node] == expected
    assert [value.name for value in made.graph.output] == ["out"]
    x = np.random.default_rng(3).uniform(0.5, 4, (4, 5)).astype(np.float32)
    runs = [HostSession(m, "m").run({"x": x})["out"] for m in (model, made)]
    assert np.allclose(*runs, rtol=1e-6)


def test_constants_are_folded_and_equal_nodes_merged() -> None:
    nodes = [
        ("Add", ["k", "k"], "two"),
        ("Mul", ["x", "two"], "a"),
        ("Mul", ["x", "two"], "b"),
        ("Exp", ["x"], "nobody"),
        ("Add", ["a", "b"], "out"),
    ]
    model = model_of(nodes, {"x": (6,)}, ["out"], {"k": np.ones(6, np.float32)})
    assert [node.op_type for node in optimise(model).graph.node] == ["Mul", "Add"]


def test_equal_outputs_keep_their_names() -> None:
    nodes = [("Abs", ["x"], "a"), ("Reshape", ["a", "s"], "b"), ("Abs", ["x"], "c")]
    model = model_of(nodes, {"x": (6,)}, ["c", "b", "a"], {"s": np.array([6])})
    made = optimise(model)
    x = np.arange(-3, 3, dtype=np.float32)
    for found in (
        HostSession(made, "model").run({"x": x}),
        run(compiled(made)[0], {"x": x}),
    ):
        assert list(found) == ["c", "b", "a"]
        assert all(np.array_equal(array, np.abs(x)) for array in found.values())


def test_source_lines_survive() -> None:
    model = model_of(
        [("Pow", ["x", "k"], "out")], {"x": (4,)}, ["out"], {"k": np.array(3, np.float32)}
    )
    key, line = "pkg.torch.onnx.stack_trace", 'File "model.py", line 7'
    model.graph.node[0].metadata_props.add(key=key, value=line)
    for node in optimise(model).graph.node:
        assert {item.key: item.value for item in node.metadata_props}[key] == line


@pytest.mark.parametrize(
    "strided",
    sampled(
        [
            lambda x: torch.as_strided(x, (2, 3), (4, 1), 2),
            lambda x: torch.as_strided(x.permute(1, 0), (3, 2), (2, 1)),
            lambda x: torch.as_strided(
                x.reshape(2, 2, 5).permute(2, 0, 1), (2, 2, 2), (3, 1, 5), 4
            ),
        ],
        every=3,
        first=1,
    ),
    ids=["rows", "turned", "three axes"],
)
def test_strides_are_those_of_the_memory(
    tmp_path: Path, strided: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    def function(d: Tensors) -> Tensors:
        return {"y": strided(d["x"] * 2)}

    sample = {"x": torch.randn(4, 5)}
    compiled = context().compile(function, sample, tmp_path / "out")
    assert torch.equal(compiled(sample)["y"].cpu(), function(sample)["y"])


def test_strides_that_depend_on_a_kernel_are_refused() -> None:
    def function(d: Tensors) -> Tensors:
        return {"y": torch.as_strided(torch.roll(d["x"].T, 1, 0), (2, 2), (5, 1))}

    with pytest.raises(PycompilerError, match=r"P0102.*as_strided"):
        export(function, {"x": torch.randn(4, 5)})
