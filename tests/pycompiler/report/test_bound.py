"""The bound of a model, against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pycompiler.cost.moves import chip_dram_rate
from pycompiler.machine import load_target
from pycompiler.pfvm.optimise import optimise
from pycompiler.planners.dtype import product_precisions
from pycompiler.report.bound import bodies, bound_of, peak

Shape = tuple[int, ...]


def model_of(
    op: str, given: Sequence[Shape], weights: Sequence[Shape], result: Shape, **attributes: Any
) -> onnx.ModelProto:
    """Return a model of one node."""
    names = [f"x{number}" for number in range(len(given))]
    constants = {f"w{number}": np.ones(shape, np.float32) for number, shape in enumerate(weights)}
    graph = helper.make_graph(
        [helper.make_node(op, [*names, *constants], ["y"], name="n", **attributes)],
        "g",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in zip(names, given, strict=True)
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model


#: Operator, inputs, weights, result, attributes; multiply-adds.
PRODUCTS = (
    ("MatMul", [(2, 3, 5)], [(5, 7)], (2, 3, 7), {}, 2 * 3 * 5 * 7),
    ("MatMul", [(5,), (4, 5, 7)], [], (4, 7), {}, 4 * 5 * 7),
    ("Gemm", [(3, 5)], [(5, 7)], (3, 7), {}, 3 * 5 * 7),
    ("Gemm", [(5, 3)], [(7, 5)], (3, 7), {"transA": 1, "transB": 1}, 3 * 5 * 7),
    ("Conv", [(2, 6, 9, 9)], [(4, 6, 3, 3)], (2, 4, 7, 7), {}, 2 * 4 * 49 * 6 * 9),
    ("Conv", [(1, 6, 9)], [(6, 1, 3), (6,)], (1, 6, 7), {"group": 6}, 6 * 7 * 3),
    ("ConvTranspose", [(1, 6, 4, 4)], [(6, 3, 2, 2)], (1, 3, 8, 8), {"strides": [2, 2]},
     6 * 16 * 3 * 4),
    ("Einsum", [(2, 3, 5), (2, 5, 7)], [], (2, 3, 7), {"equation": "bij,bjk->bik"}, 2 * 3 * 5 * 7),
    ("Einsum", [(2, 3, 5), (5, 7)], [], (2, 3, 7), {"equation": "...j, jk -> ...k"}, 2 * 3 * 5 * 7),
    ("Einsum", [(3, 5)], [], (5, 3), {"equation": "ij->ji"}, 0),
    ("Add", [(3, 5), (3, 5)], [], (3, 5), {}, 0),
)  # fmt: skip


@pytest.mark.parametrize(("op", "given", "weights", "result", "attributes", "wanted"), PRODUCTS)
def test_multiply_adds(
    op: str,
    given: list[Shape],
    weights: list[Shape],
    result: Shape,
    attributes: dict[str, Any],
    wanted: int,
) -> None:
    model = model_of(op, given, weights, result, **attributes)
    onnx.checker.check_model(model, full_check=True)
    assert bound_of(model, load_target("mncore2"), {"single"}).multiply_adds == wanted


def test_rates() -> None:
    chip, mini = load_target("mncore2"), load_target("mini")
    assert peak(chip, "half") == 262144
    assert peak(chip, "half") // peak(mini, "half") == 4096 // 32
    assert peak(chip, "single") < peak(chip, "pseudo_single") < peak(chip, "half")
    assert chip_dram_rate(chip) == 64


def test_words_and_cycles() -> None:
    model = model_of("MatMul", [(64, 512)], [(512, 1024)], (64, 1024))
    numbers = 64 * 512 + 512 * 1024 + 64 * 1024
    target = load_target("mncore2")
    single, half, both = (
        bound_of(model, target, kinds) for kinds in ({"single"}, {"half"}, {"single", "half"})
    )
    assert (single.words, half.words) == (numbers // 2, numbers // 4)
    assert (half.mau, half.dram) == (64 * 512 * 1024 // 262144, numbers // 4 // 64)
    assert half.cycles == half.dram > half.mau
    assert both == half  # the fastest precision counts
    large = bound_of(model_of("MatMul", [(4096,) * 2] * 2, [], (4096, 4096)), target, {"half"})
    assert large.cycles == large.mau == 4096**3 // 262144 > large.dram


@pytest.mark.parametrize("given", [False, True])
def test_only_the_picked_rows_of_a_table_count(given: bool) -> None:
    """Whether the table is a parameter or an input; an input that nothing reads does not count."""
    table = np.ones((1000, 8), np.float32)
    inputs = [
        helper.make_tensor_value_info("rows", TensorProto.INT64, (4,)),
        helper.make_tensor_value_info("unused", TensorProto.FLOAT, (64,)),
        helper.make_tensor_value_info("table", TensorProto.FLOAT, table.shape),
    ]
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "rows"], ["y"], name="n")],
        "g",
        inputs[: 3 if given else 2],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 8))],
        [] if given else [numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    found = bound_of(optimise(model), load_target("mncore2"), {"single"})
    assert found.words == 4 + 2 * 4 * 8 // 2


def test_values_that_the_optimiser_made_have_shapes() -> None:
    graph = helper.make_graph(
        [
            helper.make_node("Pow", ["x", "three"], ["p"], name="pow"),
            helper.make_node("MatMul", ["p", "p"], ["y"], name="product"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 4))],
        [numpy_helper.from_array(np.float32(3), "three")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    made = optimise(model)
    assert [node.op_type for node in made.graph.node] == ["Mul", "Mul", "MatMul"]
    assert bound_of(made, load_target("mncore2"), {"single"}).multiply_adds == 64


def test_shapes_that_constants_give() -> None:
    """The numbers of `shape` say how long the sums of the product are."""
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["x", "shape"], ["r"], name="reshape"),
            helper.make_node("MatMul", ["r", "w"], ["y"], name="product"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))],
        [
            numpy_helper.from_array(np.array([2, -1]), "shape"),
            numpy_helper.from_array(np.ones((16, 3), np.float32), "w"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    found = bound_of(model, load_target("mini"), {"single"})
    assert found.multiply_adds == 2 * 16 * 3
    assert found.words == 2 + 4 * 8 // 2 + 16 * 3 // 2 + 2 * 3 // 2


@pytest.mark.parametrize(
    ("float_dtype", "gemm_precision", "overrides", "wanted"),
    [
        ("float", "auto", {}, {"single"}),
        ("mixed", "auto", {}, {"single", "half"}),
        ("mixed", "single", {}, {"single"}),
        ("float", "half", {"y": {"keep": "LM"}}, {"half"}),
        ("float", "auto", {"y": {"precision": "pseudo_single"}}, {"single", "pseudo_single"}),
        ("float", "auto", {"y": {"dtype": "Half"}}, {"single", "half"}),
    ],
)
def test_the_precisions_that_options_choose(
    float_dtype: str, gemm_precision: str, overrides: dict[str, dict[str, str]], wanted: set[str]
) -> None:
    assert product_precisions(float_dtype, gemm_precision, overrides) == wanted


def test_products_of_other_domains_are_unknown() -> None:
    """Another domain may give the name another meaning."""
    model = model_of("MatMul", [(3, 5)], [(5, 7)], (3, 7))
    domain = model.graph.node[0]
    domain.domain = "me"
    model.opset_import.append(helper.make_opsetid("me", 1))
    assert bound_of(model, load_target("mini"), {"single"}).multiply_adds == 0


def test_nodes_with_bodies_are_found() -> None:
    assert bodies(model_of("Relu", [(3,)], [], (3,))) is None
    then = helper.make_graph(
        [helper.make_node("Neg", ["x0"], ["t"], name="neg")],
        "then",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, (3,))],
    )
    model = model_of("If", [(3,)], [], (3,), then_branch=then, else_branch=then)
    assert bodies(model) == "If `n`"
