"""Gathers that become MNCoreLookup, and those that must not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper
from typed_model import typed_model

from pycompiler.frontend.import_onnx import ImportedModel, import_onnx
from pycompiler.frontend.lookup_nodes import LOOKUP, lookups
from pycompiler.graph.graph import MNNode, TensorType
from pycompiler.machine import load_target

MINI = load_target("mini")
ROWS = MINI.words("lm0") // 2 + 1
WIDEST = 2 * MINI.dar_row


def found(
    nodes: Sequence[tuple[Any, ...]],
    types: dict[str, TensorType],
    constants: Sequence[str] = ("w",),
) -> tuple[dict[str, MNNode], dict[str, Any]]:
    """The lookups among ``(op, inputs, output[, attributes])``, and all constants."""
    protos = {
        out: helper.make_node(op, reads, [out], name=out, **(facts[0] if facts else {}))
        for op, reads, out, *facts in nodes
    }
    data = {name: np.zeros(types[name].shape, np.float32) for name in constants}
    return lookups(protos, types, data, MINI), data


def of(*shape: int, elem: str = "float") -> TensorType:
    return TensorType(elem, shape)


@pytest.mark.parametrize(
    ("table", "index", "facts", "wanted"),
    [
        (of(ROWS, 8), of(5, elem="int64"), {}, True),
        (of(ROWS, 8), of(2, 3, elem="int32"), {"axis": 0}, True),
        (of(ROWS, WIDEST), of(5, elem="int64"), {}, True),
        (of(ROWS, WIDEST // 2, elem="int64"), of(5, elem="int64"), {}, True),
        # The table fits LM; a row is too long; another axis; no matrix; a single place.
        (of(ROWS - 1, 8), of(5, elem="int64"), {}, False),
        (of(ROWS, WIDEST + 1), of(5, elem="int64"), {}, False),
        (of(ROWS, WIDEST // 2 + 1, elem="int64"), of(5, elem="int64"), {}, False),
        (of(8, ROWS), of(5, elem="int64"), {"axis": 1}, False),
        (of(ROWS, 2, 4), of(5, elem="int64"), {}, False),
        (of(ROWS), of(5, elem="int64"), {}, False),
        (of(ROWS, 8), of(elem="int64"), {}, False),
    ],
)
def test_which_gathers(
    table: TensorType, index: TensorType, facts: dict[str, int], wanted: bool
) -> None:
    for constants in (("w",), ()):
        made, _ = found([("Gather", ["w", "i"], "y", facts)], {"w": table, "i": index}, constants)
        assert list(made) == (["y"] if wanted else [])
        if wanted:
            assert (made["y"].op, made["y"].inputs, made["y"].outputs) == (
                LOOKUP,
                ("w", "i"),
                ("y",),
            )
            assert made["y"].attributes == ()


def test_other_domains_and_operators() -> None:
    types = {"w": of(ROWS, 8), "i": of(5, elem="int64")}
    assert not found([("GatherND", ["w", "i"], "y")], types)[0]
    assert not found([("Gather", ["w", "i"], "y", {"domain": "mine"})], types)[0]


TYPES = {"w": of(ROWS, 8), "i": of(5, elem="int64"), "j": of(7, elem="int64"), "k": of(8, 3)}
GATHERS = [("Gather", ["w", "i"], "y"), ("Gather", ["w", "j"], "z")]
PRODUCT = ("MatMul", ["w", "k"], "p")


def test_lookups_share_a_table() -> None:
    for constants in (("w",), ()):
        made, data = found(GATHERS, dict(TYPES), constants)
        assert [node.inputs for node in made.values()] == [("w", "i"), ("w", "j")]
        assert set(data) == set(constants)


def test_a_constant_that_others_read_is_there_twice() -> None:
    types = {**TYPES, "w.rows": of(1)}  # a name that is taken
    made, data = found([*GATHERS, PRODUCT], types)
    (rows,) = set(data) - {"w"}
    assert rows != "w.rows"
    assert [node.inputs for node in made.values()] == [(rows, "i"), (rows, "j")]
    assert data[rows] is data["w"]
    assert types[rows] == types["w"]


def test_an_input_that_others_read_is_not_looked_up() -> None:
    for nodes in ([*GATHERS, PRODUCT], [PRODUCT, *GATHERS]):
        made, data = found(nodes, dict(TYPES), ())
        assert (made, data) == ({}, {})


def test_a_table_that_the_device_makes_is_not_looked_up() -> None:
    made, _ = found([("Relu", ["v"], "w"), *GATHERS], {**TYPES, "v": of(ROWS, 8)}, ())
    assert made == {}


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
        # Comparing the index with every place needs no rows in DRAM.
        assert tables == []
        assert {"Equal", "Where"} <= ops
        assert "Gather" not in ops
    else:
        (rows,) = tables
        assert set(both.graph.constants) >= {"w", rows}
        assert both.graph.constants[rows] == both.graph.constants["w"]
        assert np.array_equal(both.constants[rows], both.constants["w"])
        assert both.graph.values[rows].type == both.graph.values["w"].type
