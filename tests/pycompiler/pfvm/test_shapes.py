"""Shapes that contradict each other, and constant indices out of range, are refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import compiled, context
from onnx import TensorProto, helper, numpy_helper

from pycompiler.errors import PycompilerError
from pycompiler.pfvm.optimise import optimise

Shape = tuple[int, ...]
#: Operator, shape of `x`, constants, shapes of the results, attributes.
Row = tuple[str, Shape, Mapping[str, Any], list[Shape], dict[str, Any]]


def model_of(row: Row) -> onnx.ModelProto:
    op, shape, constants, results, attributes = row
    outputs = [f"y{number}" for number in range(len(results))]
    given = {
        name: value if isinstance(value, np.ndarray) else np.array(value, np.int64)
        for name, value in constants.items()
    }
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *constants], outputs, name="node", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, result)
            for name, result in zip(outputs, results, strict=True)
        ],
        [numpy_helper.from_array(array, name) for name, array in given.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


TWO = {"blocksize": 2}
STEP: tuple[Shape, dict[str, np.ndarray], list[Shape]] = (
    (1, 1, 2),
    {"w": floats(1, 2, 2), "r": floats(1, 2, 2)},
    [(1, 1, 1, 2)],
)
REFUSED: dict[str, tuple[str, Row]] = {
    "more elements": ("P0112", ("Reshape", (2, 3), {"s": [4, 2]}, [(4, 2)], {})),
    "fewer elements": ("P0112", ("Reshape", (2, 3), {"s": [2, 2]}, [(2, 2)], {})),
    "no elements": ("P0112", ("Reshape", (2, 3), {"s": [0, 3]}, [(0, 3)], {"allowzero": 1})),
    "rest that does not divide": ("P0112", ("Reshape", (2, 3), {"s": [-1, 4]}, [(1, 4)], {})),
    "two rests": ("P0112", ("Reshape", (2, 3), {"s": [-1, -1]}, [(2, 3)], {})),
    "zero and rest": ("P0112", ("Reshape", (2, 3), {"s": [0, -1]}, [(2, 3)], {"allowzero": 1})),
    "zero past the rank": ("P0112", ("Reshape", (2, 3), {"s": [0, 0, 0]}, [(2, 3, 1)], {})),
    "negative sizes": ("P0112", ("Reshape", (2, 3), {"s": [-2, -3]}, [(2, 3)], {})),
    "declared otherwise": ("P0112", ("Reshape", (2, 3), {"s": [3, 2]}, [(2, 3)], {})),
    "declared of other rank": ("P0112", ("Reshape", (2, 3), {"s": [3, 2]}, [(6,)], {})),
    "Expand": ("P0112", ("Expand", (2, 3), {"s": [4, 3]}, [(4, 3)], {})),
    "Split, less": ("P0112", ("Split", (6, 2), {"s": [2, 3]}, [(2, 2), (3, 2)], {})),
    "Split, more": ("P0112", ("Split", (6, 2), {"s": [2, 5]}, [(2, 2), (5, 2)], {})),
    "Split, negative": ("P0113", ("Split", (6, 2), {"s": [-2, 8]}, [(-2, 2), (8, 2)], {})),
    "Concat": ("P0112", ("Concat", (2, 3), {"b": floats(2, 4)}, [(4, 3)], {"axis": 0})),
    "Concat, ranks": ("P0112", ("Concat", (2, 3), {"b": floats(2, 3, 1)}, [(4, 3)], {"axis": 0})),
    "Transpose, twice": ("P0112", ("Transpose", (2, 3), {}, [(2, 2)], {"perm": [0, 0]})),
    "Transpose, no axis": ("P0112", ("Transpose", (2, 3), {}, [(2, 2)], {"perm": [0, 2]})),
    "Transpose, too few": ("P0112", ("Transpose", (2, 3), {}, [(2,)], {"perm": [0]})),
    "Squeeze": ("P0112", ("Squeeze", (2, 3), {"a": [0]}, [(3,)], {})),
    "Unsqueeze": ("P0112", ("Unsqueeze", (2, 3), {"a": [5]}, [(2, 3, 1)], {})),
    "Pad": ("P0113", ("Pad", (2, 3), {"p": [-3, 0, 0, 0]}, [(-1, 3)], {})),
    "Pad by a number": ("P0112", ("Pad", (), {"p": 4}, [()], {})),
    "negative input": ("P0113", ("Relu", (2, -3), {}, [(2, -3)], {})),
    "Relu": ("P0112", ("Relu", (2, 3), {}, [(2, 4)], {})),
    "Gather": ("P0111", ("Gather", (4, 3), {"i": [1, 4]}, [(2, 3)], {})),
    "Gather, negative": ("P0111", ("Gather", (4, 3), {"i": [0, -5]}, [(2, 3)], {})),
    "Gather, one": ("P0111", ("Gather", (4, 3), {"i": 3}, [(4,)], {"axis": 1})),
    "GatherElements": ("P0111", ("GatherElements", (4, 3), {"i": [[0, 4, 1]]}, [(1, 3)], {})),
    "GatherND": ("P0111", ("GatherND", (4, 3), {"i": [[0, 3]]}, [(1,)], {})),
    "GatherND, batch": (
        "P0111",
        ("GatherND", (2, 3, 4), {"i": [[3], [0]]}, [(2, 4)], {"batch_dims": 1}),
    ),
    "ScatterElements": (
        "P0111",
        ("ScatterElements", (4, 3), {"i": [[4]], "u": floats(1, 1)}, [(4, 3)], {}),
    ),
    "ScatterND": ("P0111", ("ScatterND", (4,), {"i": [[-5]], "u": floats(1)}, [(4,)], {})),
    "parts": ("P0112", ("Split", (4,), {}, [(2,), (2,)], {"num_outputs": 3})),
    "many parts": ("P0112", ("Split", (4,), {}, [(4,)], {"num_outputs": 1 << 30})),
    "axis of a norm": (
        "P0112",
        ("LayerNormalization", (4,), {"w": floats(4)}, [(4,)], {"axis": 5}),
    ),
    "axis of a sum": ("P0112", ("CumSum", (4,), {"a": 4}, [(4,)], {})),
    "LRN": ("P0112", ("LRN", (1, 2, 4, 4), {}, [(1, 2, 4, 4)], {"size": 0})),
    "activation": ("P0112", ("RNN", *STEP, {"hidden_size": 2, "activations": ["Sine"]})),
    "activations": ("P0112", ("RNN", *STEP, {"hidden_size": 2, "activations": ["Tanh"] * 2})),
    "a number of an activation": (
        "P0112",
        ("RNN", *STEP, {"hidden_size": 2, "activations": ["Affine"], "activation_alpha": [1.0]}),
    ),
    "LpNormalization": ("P0112", ("LpNormalization", (4,), {}, [(4,)], {"p": 5})),
    "keepdims": ("P0112", ("ReduceMax", (4,), {}, [(1,)], {"keepdims": 7})),
    "mode": ("P0112", ("DepthToSpace", (1, 4, 1, 1), {}, [(1, 1, 2, 2)], {"mode": "X", **TWO})),
    "channels": ("P0112", ("DepthToSpace", (1, 6, 1, 1), {}, [(1, 1, 2, 2)], TWO)),
    "mode of a Pad": ("P0112", ("Pad", (4,), {"p": [1, 1]}, [(6,)], {"mode": "Edge"})),
    "output_padding": (
        "P0112",
        ("ConvTranspose", (1, 1, 4), {"w": floats(1, 1, 2)}, [(1, 1, 8)], {"output_padding": [3]}),
    ),
    "blocks": (
        "P0112",
        ("Col2Im", (1, 5, 9), {"s": [4, 4], "b": [2, 2]}, [(1, 1, 4, 4)], {}),
    ),
    "direction": ("P0112", ("RNN", *STEP, {"hidden_size": 2, "direction": "up"})),
    "Einsum, operands": ("P0112", ("Einsum", (2, 3), {}, [(2, 3)], {"equation": "ij,ij->ij"})),
    "Einsum, axes": ("P0112", ("Einsum", (4,), {}, [(4,)], {"equation": ""})),
    "Einsum, result": ("P0112", ("Einsum", (4,), {}, [(4, 4)], {"equation": "i->ii"})),
}


def of_constants(op: str, *data: Any, elem: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Return a model of an operator of constants; the sum of its result is added to an input."""
    names = [f"c{number}" for number in range(len(data))]
    tensors = [numpy_helper.from_array(a, n) for a, n in zip(data, names, strict=True)]
    nodes = [helper.make_node(op, names, ["z"], name="node")]
    nodes.append(helper.make_node("ReduceSum", ["z"], ["s"]))
    nodes.append(helper.make_node("Add", ["x", "s"], ["y"]))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("x", elem, (1,))], [info("y", elem, (1,))], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("numbers", [(0, 7, 0), (0, np.inf, 1), (np.nan, 7, 1), (0, 1, 1e-30)])
def test_steps_that_do_not_end(numbers: tuple[float, ...]) -> None:
    """onnx's inference makes an empty tensor of them."""
    with pytest.raises(PycompilerError, match="Range `node`") as caught:
        optimise(of_constants("Range", *(np.array(number, np.float32) for number in numbers)))
    assert caught.value.code == "P0112"


@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_whole_numbers_divided_by_zero(op: str) -> None:
    data = [np.array([value], np.int32) for value in (7, 0)]
    with pytest.raises(PycompilerError, match="divisor") as caught:
        optimise(of_constants(op, *data, elem=TensorProto.INT32))
    assert caught.value.code == "P0112"


def test_folding_says_nothing(recwarn: pytest.WarningsRecorder) -> None:
    optimise(of_constants("Div", np.ones(1, np.float32), np.zeros(1, np.float32)))
    assert not recwarn.list


@pytest.mark.parametrize("optimised", [True, False])
@pytest.mark.parametrize("name", REFUSED)
def test_contradictions(name: str, optimised: bool) -> None:
    code, row = REFUSED[name]
    model = model_of(row)
    with pytest.raises(PycompilerError) as caught:
        compiled(optimise(model) if optimised else model)
    assert caught.value.code == code, caught.value
    if code == "P0111":
        assert "`node`" in caught.value.message
        assert "use indices from -" in caught.value.help


KEPT: list[Row] = [
    ("Reshape", (2, 3), {"s": [3, 2]}, [(3, 2)], {}),
    ("Reshape", (2, 3), {"s": [0, -1]}, [(2, 3)], {}),
    ("Reshape", (2, 3), {"s": [-1]}, [(6,)], {}),
    ("Gather", (4, 3), {"i": [-4, 3]}, [(2, 3)], {}),
    ("GatherElements", (4, 3), {"i": [[-4, 3, 1]]}, [(1, 3)], {}),
    ("GatherND", (4, 3), {"i": [[-4, -3], [3, 2]]}, [(2,)], {}),
    ("GatherND", (2, 3, 4), {"i": [[2], [-3]]}, [(2, 4)], {"batch_dims": 1}),
]


@pytest.mark.parametrize("row", KEPT, ids=str)
def test_legal_ones_compile(row: Row) -> None:
    compiled(optimise(model_of(row)))


def test_shape_that_a_caller_gives() -> None:
    """If the shape is an input, only the declared shape is known."""
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "s"], ["y"], name="node")],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3)),
            helper.make_tensor_value_info("s", TensorProto.INT64, (2,)),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 2))],
    )
    opsets = [helper.make_opsetid("", 18)]
    with pytest.raises(PycompilerError) as caught:
        compiled(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    assert caught.value.code == "P0112"


def test_the_line_is_named(tmp_path: Path) -> None:
    def f(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"y": d["x"][torch.tensor([0, 9])]}

    with pytest.raises(PycompilerError) as caught:
        context("emu2:mini").compile(f, {"x": torch.zeros(4, 8)}, tmp_path / "a")
    assert caught.value.code == "P0111"
    assert caught.value.place is not None
    assert caught.value.place.file == __file__
