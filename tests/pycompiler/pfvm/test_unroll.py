"""Loops with a known number of turns run on the device; onnxruntime runs the loops themselves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled, run
from onnx import TensorProto, helper, numpy_helper

from pycompiler.errors import HostFallbackWarning
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
node, info = helper.make_node, helper.make_tensor_value_info


def body(nodes: list[Any], inputs: list[Any], outputs: list[Any], **held: np.ndarray) -> Any:
    tensors = [numpy_helper.from_array(array, name) for name, array in held.items()]
    return helper.make_graph(nodes, "body", inputs, outputs, tensors)


def model_with(
    loop: onnx.NodeProto,
    inputs: dict[str, tuple[int, ...]],
    outputs: dict[str, tuple[int, ...]],
    **held: Any,
) -> onnx.ModelProto:
    infos = [[info(n, FLOAT, s) for n, s in ends.items()] for ends in (inputs, outputs)]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()]
    graph = helper.make_graph([loop], "g", *infos, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def check(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Compare with onnxruntime; return the operators on the host."""
    wanted = HostSession(model, "model").run(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HostFallbackWarning)
        result, report = compiled(optimise(model))
    found = run(result, inputs)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)
    rows: list[dict[str, Any]] = report["host_fallback"]
    return rows


def random_arrays(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(225)
    return {n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}


@pytest.mark.parametrize("ways", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (-1, -1)])
def test_scan(ways: tuple[int, int], axes: tuple[int, int]) -> None:
    """The state is read by name, and so are a constant of the body and a value outside of it."""
    step = body(
        [
            node("Mul", ["s", "half"], ["h"]),
            node("Add", ["h", "x_t"], ["t"]),
            node("Add", ["t", "w"], ["y_t"]),
        ],
        [info("s", FLOAT, (3,)), info("x_t", FLOAT, (3,))],
        [info("t", FLOAT, (3,)), info("y_t", FLOAT, (3,))],
        half=np.array(0.5, np.float32),
    )
    loop = node(
        "Scan",
        ["s0", "x"],
        ["last", "y"],
        body=step,
        num_scan_inputs=1,
        scan_input_directions=[ways[0]],
        scan_output_directions=[ways[1]],
        scan_input_axes=[axes[0]],
        scan_output_axes=[axes[1]],
    )
    shape = (4, 3) if axes[0] == 0 else (3, 4)
    inputs = {"s0": (3,), "x": shape, "w": (3,)}
    model = model_with(loop, inputs, {"last": (3,), "y": shape})
    assert not check(model, random_arrays(**inputs))


def loop_body(condition: str, *more: onnx.NodeProto) -> onnx.GraphProto:
    return body(
        [
            node("Cast", ["i"], ["f"], to=FLOAT),
            node("Add", ["s", "f"], ["a"]),
            node("Mul", ["a", "w"], ["t"]),
            node("Identity", ["t"], ["y"]),
            *more,
        ],
        [info("i", INT64, ()), info("c", BOOL, ()), info("s", FLOAT, (2, 3))],
        [info(condition, BOOL, ()), info("t", FLOAT, (2, 3)), info("y", FLOAT, (2, 3))],
    )


GOES_ON = ("d", node("Identity", ["c"], ["d"]))
STOPS = (
    "d",
    node("ReduceMax", ["t"], ["m"], keepdims=0),
    node("Less", ["m", "m"], ["d"]),
)


@pytest.mark.parametrize("turns", [1, 5])
@pytest.mark.parametrize("given", ["go", ""])
def test_loop(turns: int, given: str) -> None:
    loop = node("Loop", ["n", given, "s0"], ["last", "all"], body=loop_body(*GOES_ON))
    inputs = {"s0": (2, 3), "w": (2, 3)}
    outputs = {"last": (2, 3), "all": (turns, 2, 3)}
    held = {"n": np.array(turns)} | ({"go": np.array(True)} if given else {})
    assert not check(model_with(loop, inputs, outputs, **held), random_arrays(**inputs))


@pytest.mark.parametrize(
    ("part", "held"),
    [
        (STOPS, {"n": np.array(3), "go": np.array(True)}),
        (GOES_ON, {"n": np.array(3), "go": np.array(False)}),
        (GOES_ON, {"n": np.array(200), "go": np.array(True)}),
    ],
)
def test_other_loops_stay_loops(part: Any, held: dict[str, np.ndarray]) -> None:
    step = loop_body(*part)
    del step.output[2:]
    loop = node("Loop", ["n", "go", "s0"], ["last"], body=step)
    inputs = {"s0": (2, 3), "w": (2, 3)}
    arrays = random_arrays(**inputs)
    arrays["w"] *= 0.1
    (row,) = check(model_with(loop, inputs, {"last": (2, 3)}, **held), arrays)
    assert row["op"] == "Loop"


def test_a_loop_in_a_scan() -> None:
    """Names of inner bodies are new in every turn."""
    inner = body(
        [node("Add", ["v", "x_t"], ["u"]), node("Identity", ["c"], ["d"])],
        [info("i", INT64, ()), info("c", BOOL, ()), info("v", FLOAT, (3,))],
        [info("d", BOOL, ()), info("u", FLOAT, (3,))],
    )
    step = body(
        [node("Loop", ["n", "", "s"], ["t"], body=inner), node("Identity", ["t"], ["y_t"])],
        [info("s", FLOAT, (3,)), info("x_t", FLOAT, (3,))],
        [info("t", FLOAT, (3,)), info("y_t", FLOAT, (3,))],
        n=np.array(2),
    )
    loop = node("Scan", ["s0", "x"], ["last", "y"], body=step, num_scan_inputs=1)
    inputs = {"s0": (3,), "x": (4, 3)}
    model = model_with(loop, inputs, {"last": (3,), "y": (4, 3)})
    assert not check(model, random_arrays(**inputs))
