"""Other orders of the code of a node: the same bits, and simulation finds the fastest."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled, run
from onnx import TensorProto, helper

from pycompiler.graph.graph import MNNode
from pycompiler.layers.operators import LAYERS
from pycompiler.layers.products import resident

Inputs = dict[str, np.ndarray]


def node_model(op: str, shapes: dict[str, tuple[int, ...]], result: tuple[int, ...]) -> Any:
    """Return a model of one node, whose operand `i` has integers below 7, and its inputs."""
    draw = np.random.default_rng(5)
    inputs: Inputs = {
        name: draw.integers(0, 7, shape)
        if name == "i"
        else draw.standard_normal(shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    types = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in inputs.items()}
    graph = helper.make_graph(
        [helper.make_node(op, list(shapes), ["y"])],
        "g",
        [helper.make_tensor_value_info(n, types[n], shape) for n, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model, inputs


PRODUCT = node_model("MatMul", {"x": (16, 64), "w": (64, 256)}, (16, 256))
PRODUCT_OF_TAILS = node_model("MatMul", {"x": (40, 72), "w": (72, 200)}, (40, 200))
# So many rows that the registers have no room for their vectors.
PRODUCT_OF_ROWS = node_model("MatMul", {"x": (2048, 64), "w": (64, 32)}, (2048, 32))
PRODUCT_OF_LONG_TAILS = node_model("MatMul", {"x": (1200, 72), "w": (72, 24)}, (1200, 24))


@pytest.mark.parametrize(
    ("made", "order"),
    [
        (PRODUCT, resident.COLUMNS),
        (PRODUCT_OF_ROWS, resident.ONE_BANK),
        (PRODUCT_OF_TAILS, resident.COLUMNS),
        pytest.param(PRODUCT_OF_LONG_TAILS, resident.ONE_BANK, marks=pytest.mark.long),
    ],
)
def test_every_order_gives_the_same_bits(
    made: tuple[onnx.ModelProto, Inputs], order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = made
    result, _ = compiled(model, float_dtype="mixed")
    wanted = run(result, inputs)["y"]
    monkeypatch.setattr(MNNode, "order", order)
    other, _ = compiled(model, float_dtype="mixed")
    assert other.vsm != result.vsm
    assert np.array_equal(run(other, inputs)["y"], wanted)


def test_orders_are_simulated_and_the_own_one_stays_if_none_is_better() -> None:
    model, _ = PRODUCT
    plain, _ = compiled(model, float_dtype="mixed")
    result, report = compiled(model, float_dtype="mixed", simulation_mode="best")
    found = json.loads(result.files["simulation_result.json"])
    (node,) = (node for node in result.graph.nodes if node.op == "MatMul")
    settings = found["nodes"][node.name]
    own = found["outcomes"][next(iter(settings.values()))]
    others = [found["outcomes"][key] for text, key in settings.items() if " by " in text]
    assert others
    assert all(own["cycles"] <= one["cycles"] for one in others)
    assert result.vsm == plain.vsm
    assert not any("orders" in row for row in report["passes"])


def test_the_code_uses_a_better_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule's own order is made the slow one."""
    model, inputs = PRODUCT
    plain, before = compiled(model)
    layer, code = LAYERS["MatMul"], resident.code

    def turned(node: MNNode, *given: Any) -> Any:
        return code(node.in_order("" if node.order == "fast" else resident.COLUMNS), *given)

    monkeypatch.setattr(resident, "code", turned)
    monkeypatch.setattr(type(layer), "orders", lambda *_: ("fast",))
    _, slow = compiled(model)
    result, report = compiled(model, simulation_mode="best")
    assert report["cycles"] == before["cycles"] < slow["cycles"]
    assert np.array_equal(run(result, inputs)["y"], run(plain, inputs)["y"])
    (facts,) = (row["orders"] for row in report["passes"] if "orders" in row)
    assert facts == {
        "nodes": 1,
        "cycles": before["cycles"],
        "cycles_of_own_orders": slow["cycles"],
    }
    (node,) = (node for node in result.graph.nodes if node.op == "MatMul")
    assert node.order == "fast"
    assert any(
        "by fast" in text
        for text in json.loads(result.files["simulation_result.json"])["nodes"][node.name]
    )
