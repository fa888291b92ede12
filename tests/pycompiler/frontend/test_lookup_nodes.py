"""Gathers that become MNCoreLookup, and those that must not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from typed_model import typed_model

from pycompiler.frontend.import_onnx import ImportedModel, import_onnx
from pycompiler.frontend.lookup_nodes import with_own_tables
from pycompiler.graph.graph import MNNode, TensorType
from pycompiler.machine import load_target
from pycompiler.pfvm.device_functions import LOOKUP

MINI = load_target("mini")
ROWS = MINI.words("lm0") // 2 + 1
WIDEST = 2 * MINI.dar_row


def lookups(table: np.ndarray, index: np.ndarray, given: bool, **facts: int) -> list[MNNode]:
    """Return the lookups of a model of one Gather; the table is an input if ``given``."""
    held = {"w": table}
    result = np.take(table, index, facts.get("axis", 0))
    inputs = {"i": index, **(held if given else {})}
    model = typed_model(
        [("Gather", ["w", "i"], "y", facts)], inputs, {"y": result}, {} if given else held
    )
    return [node for node in import_onnx(model, MINI).graph.nodes if node.op == LOOKUP]


def of(*shape: int, elem: str = "float32") -> np.ndarray:
    return np.zeros(shape, elem)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(
    ("table", "index", "facts", "wanted"),
    [
        (of(ROWS, 8), of(5, elem="int64"), {}, True),
        (of(ROWS, 8), of(2, 3, elem="int32"), {"axis": 0}, True),
        (of(ROWS, WIDEST), of(5, elem="int64"), {}, True),
        (of(ROWS, WIDEST // 2, elem="int64"), of(5, elem="int64"), {}, True),
        (of(ROWS, 8), of(elem="int64"), {}, True),
        # The table fits LM; a row is too long; another axis.
        (of(ROWS - 1, 8), of(5, elem="int64"), {}, False),
        (of(ROWS, WIDEST + 1), of(5, elem="int64"), {}, False),
        (of(ROWS, WIDEST // 2 + 1, elem="int64"), of(5, elem="int64"), {}, False),
        (of(8, ROWS), of(5, elem="int64"), {"axis": 1}, False),
    ],
)
def test_which_gathers(
    table: np.ndarray, index: np.ndarray, facts: dict[str, int], wanted: bool, given: bool
) -> None:
    found = lookups(table, index, given, **facts)
    assert [(node.inputs[0], node.attributes) for node in found] == [("w", ())] * wanted


def test_tables_of_other_ranks_become_matrices() -> None:
    for shape in ((ROWS, 2, 4), (ROWS,)):
        assert len(lookups(of(*shape), of(5, elem="int64"), False)) == 1
        assert not lookups(of(*shape), of(5, elem="int64"), True)


def node(op: str, *reads: str) -> MNNode:
    return MNNode(op, op, reads, ("y",))


def test_a_constant_that_others_read_is_there_twice() -> None:
    types = {"w": TensorType("float", (ROWS, 8)), "w.rows": TensorType("float", (1,))}
    data = {"w": np.zeros((ROWS, 8), np.float32)}
    two = [node(LOOKUP, "w", "i"), node(LOOKUP, "w", "j")]
    assert list(with_own_tables(two, types, data)) == two
    made = list(with_own_tables([*two, node("MatMul", "w", "k")], types, data))
    (rows,) = set(data) - {"w"}
    assert rows != "w.rows"  # a name that is taken
    assert [one.inputs for one in made] == [(rows, "i"), (rows, "j"), ("w", "k")]
    assert data[rows] is data["w"]
    assert types[rows] == types["w"]


def test_a_table_that_the_device_makes_is_not_looked_up() -> None:
    nodes = [("Relu", ["v"], "w"), ("Gather", ["w", "i"], "y")]
    v, i = of(ROWS, 8), of(5, elem="int64")
    graph = import_onnx(typed_model(nodes, {"v": v, "i": i}, {"y": v[i]}), MINI).graph
    assert LOOKUP not in {one.op for one in graph.nodes}


PRODUCT = ("MatMul", ["w", "k"], "p")


def imported(nodes: Sequence[tuple[Any, ...]], given_table: bool) -> ImportedModel:
    """Import nodes that read a table ``w`` and an index ``i``; ``k`` is a matrix."""
    w, i = np.ones((ROWS, 8), np.float32), np.zeros((2, 3), np.int64)
    k = np.ones((8, 3), np.float32)
    outputs = {"y": w[i], "p": w @ k}
    outputs = {name: outputs[name] for _, _, name, *_ in nodes if name in outputs}
    inputs, constants = {"i": i, "k": k}, {"w": w}
    if given_table:
        inputs, constants = {**inputs, **constants}, {}
    return import_onnx(typed_model(nodes, inputs, outputs, constants), MINI)


@pytest.mark.parametrize("given_table", [False, True])
def test_models(given_table: bool) -> None:
    gather = ("Gather", ["w", "i"], "y")
    alone = imported([gather], given_table)
    assert [node.inputs[0] for node in alone.graph.nodes if node.op == LOOKUP] == ["w"]
    both = imported([gather, PRODUCT], given_table)
    tables = [node.inputs[0] for node in both.graph.nodes if node.op == LOOKUP]
    ops = {node.op for node in both.graph.nodes}
    if given_table:
        # Picks from pieces of the table need no rows in DRAM.
        assert tables == []
        assert {"Equal", "Where"} <= ops
        picks = [node for node in both.graph.nodes if node.op == "Gather"]
        assert [node.inputs[0] == "w" for node in picks] == [False]
    else:
        (rows,) = tables
        assert set(both.graph.constants) >= {"w", rows}
        assert both.graph.constants[rows] == both.graph.constants["w"]
        assert np.array_equal(both.constants[rows], both.constants["w"])
        assert both.graph.values[rows].type == both.graph.values["w"].type
