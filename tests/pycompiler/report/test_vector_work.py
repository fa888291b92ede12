"""The work on vectors in the bound: by hand, against compiled code, and never above a program."""

from __future__ import annotations

import random
from math import ceil
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, with_seeds
from onnx import TensorProto, helper

from pycompiler.machine import load_target
from pycompiler.report.bound import Bound, bound_of

#: The PEs of `mini`. A PE takes a long word a cycle, two singles or four halves.
PES = 32


def bound(model: onnx.ModelProto, precision: str = "single") -> Bound:
    return bound_of(model, load_target("mini"), {precision})


def one(
    op: str,
    shape: tuple[int, ...],
    weight: tuple[int, ...] = (),
    elem: int = TensorProto.FLOAT,
    **attributes: Any,
) -> onnx.ModelProto:
    """Return a model of one operator of ``x``, with a weight of ones."""
    constants = {"w": np.ones(weight, np.float32)} if weight else {}
    model = model_of([("Identity", ["x"], "y")], {"x": shape}, ["y"], constants, elem)
    node = helper.make_node(op, ["x", *constants], ["y"], name="n", **attributes)
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.append(node)
    model.graph.output.append(helper.make_empty_tensor_value_info("y"))
    inferred = onnx.shape_inference.infer_shapes(model)
    model.graph.output[0].CopyFrom(inferred.graph.output[0])
    return model


@pytest.mark.parametrize("op", ["Gelu", "Exp", "Sigmoid", "Tanh", "Log", "Sqrt", "Erf", "Elu"])
@pytest.mark.parametrize("elem", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_a_function_needs_the_instructions_of_its_code(op: str, elem: int) -> None:
    """All PEs have the same share. The code of some functions also keeps rows for later steps."""
    model = one(op, (16, 256), elem=elem)
    _, report = compiled(model)
    (row,) = (row for row in report["nodes"] if row["op"] == op)
    cycles = 4 * max(row["busy_steps"][unit] for unit in ("alu", "mau"))
    found = report["bound"]
    assert found["vector"] <= cycles <= 1.2 * found["vector"]
    assert (found["binds"], found["cycles"]) == ("vector", found["vector"])
    assert found["factor"] == round(report["cycles"] / found["vector"], 2)


#: A model, and the instructions of the busier slot for all its elements as (elements, instructions
#: for each); in singles and in halves.
CASES = (
    (one("Relu", (3, 5, 7)), 105, 105),
    (one("Clip", (64,)), 64, 64),
    (one("LayerNormalization", (8, 48), (48,)), 2 * 8 * 48, 2 * 8 * 48),
    (one("Neg", (64,)), 0, 0),
    (one("Cast", (64,), to=TensorProto.DOUBLE), 0, 0),
    # disjoint windows of four: three comparisons for each result
    (one("MaxPool", (1, 2, 8, 8), kernel_shape=[2, 2], strides=[2, 2]), 3 * 2 * 16, 3 * 2 * 16),
    # windows that overlap: 7 x 7 elements are read, and 9 results come out
    (one("MaxPool", (1, 1, 8, 8), kernel_shape=[3, 3], strides=[2, 2]), 40, 40),
    # one comparison for each of 7 x 7 results is more than 64 - 49
    (one("MaxPool", (1, 1, 8, 8), kernel_shape=[2, 2]), 49, 49),
    (one("MaxPool", (1, 1, 8, 8), kernel_shape=[1, 1]), 0, 0),
    # three taps along an axis of 5 with padding: 3 + 3 + 3 + 2 + 2 lie on elements
    (
        one("Conv", (2, 6, 5, 9), (6, 1, 3, 1), group=6, pads=[1, 0, 1, 0], kernel_shape=[3, 1]),
        2 * 6 * 13 * 9,
        2 * 6 * 13 * 9,
    ),
    # no depthwise convolution: its channels are added up
    (one("Conv", (1, 6, 5, 5), (4, 6, 3, 3)), 0, 0),
    (one("Conv", (1, 1, 5, 5), (4, 1, 3, 3)), 0, 0),
)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_work_by_hand(number: int) -> None:
    model, singles, halves = CASES[number]
    assert bound(model).vector == ceil(singles / 2 / PES)
    assert bound(model, "half").vector == ceil(halves / 4 / PES)


def test_softmax_takes_an_exponential_of_each_element() -> None:
    """Which has no form in halves."""
    power, softmax = (one(op, (16, 24)) for op in ("Exp", "Softmax"))
    assert bound(power).vector == bound(softmax).vector == bound(softmax, "half").vector > 0


def test_sums_and_the_reciprocal_of_a_root() -> None:
    """Sums may become part of products, and the iteration of a root gives its reciprocal."""
    shapes = {"x": (64, 64), "z": (64, 64)}
    for op in ("Add", "Mul", "Sub", "Div"):
        assert bound(model_of([(op, ["x", "z"], "y")], shapes, ["y"])).vector == 0
    chain = [("Sqrt", ["x"], "s"), ("Reciprocal", ["s"], "y")]
    joined = bound(model_of(chain, {"x": (64, 64)}, ["y"])).vector
    assert joined == bound(one("Sqrt", (64, 64))).vector
    integers = one("Relu", (64,), elem=TensorProto.INT32)
    assert bound(integers).vector == 0


def test_kernels_that_are_computed_do_not_count() -> None:
    """The gradient of depthwise weights has this form, and is no work on vectors everywhere."""
    shapes = {"x": (1, 6, 9), "z": (6, 1, 3)}
    nodes = [("Tanh", ["z"], "k"), ("Conv", ["x", "k"], "y")]
    model = model_of(nodes, shapes, ["y"])
    model.graph.node[1].attribute.append(helper.make_attribute("group", 6))
    only = bound(one("Tanh", (6, 1, 3))).vector
    assert bound(model).vector == only


def test_the_name_of_what_binds() -> None:
    product = model_of([("MatMul", ["x", "z"], "y")], {"x": (512, 512), "z": (512, 512)}, ["y"])
    assert bound(product).binds == "mau"
    assert bound(one("Relu", (4096,))).binds == "dram"
    assert bound(one("Gelu", (4096,))).binds == "vector"


OPS = ("Relu", "Gelu", "Sigmoid", "Exp", "Sqrt", "Reciprocal", "Softmax", "Erf", "Abs", "Mish")
BOTH = ("Add", "Mul", "Sub", "Div", "Max")


def drawn(seed: int) -> onnx.ModelProto:
    """Return a graph of functions, sums and products, whose sizes fill PEs badly or well."""
    rng = random.Random(seed)
    shape = (rng.choice((1, 3, 8, 16)), rng.choice((2, 7, 32, 64)), rng.choice((5, 16, 64)))
    weights = {"w": np.full((shape[-1], shape[-1]), 0.01, np.float32)}
    known, nodes = ["x"], []
    for number in range(rng.randrange(1, 7)):
        out, kind = f"v{number}", rng.random()
        if kind < 0.6:
            nodes.append((rng.choice(OPS), [rng.choice(known)], out))
        elif kind < 0.85:
            nodes.append((rng.choice(BOTH), rng.choices(known, k=2), out))
        else:
            nodes.append(("MatMul", [rng.choice(known), "w"], out))
        known.append(out)
    used = {name for _, reads, _ in nodes for name in reads}
    return model_of(nodes, {"x": shape}, [n for n in known[1:] if n not in used], weights)


def test_no_program_is_below_the_bound() -> None:
    def check(seed: int) -> None:
        for float_dtype in ("float", "mixed"):
            _, report = compiled(drawn(seed), float_dtype=float_dtype)
            assert not report["host_fallback"]
            assert report["cycles"] >= report["bound"]["cycles"] >= report["bound"]["vector"]

    with_seeds(check, 6, 300)
