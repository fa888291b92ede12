"""Sums over L1Bs and groups: their steps, their MVs, and the long words that they replace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compiling import Shape, planning
from nest_counts import totals
from one_node import one_node

from pycompiler.code.lines import Move, PeOperand, Step
from pycompiler.code.nest import expand, stages
from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.graph import Location, MNDtype, MNGraph, MNNode, MNValue, parse_layout
from pycompiler.graph.graph import TensorType
from pycompiler.layers.base import layout_of
from pycompiler.layers.operators import LAYERS
from pycompiler.layers.products import choose, resident
from pycompiler.layers.products.layouts import operand_layouts
from pycompiler.layers.products.roles import precision_of, roles_of
from pycompiler.layers.products.spreads import SpreadRule, spread_units
from pycompiler.layers.products.unit_sums import Shared, sum_units, sums_words
from pycompiler.machine import WORDS_PER_LONG, Target, load_target
from pycompiler.planners.dtype import plan_dtypes

ROWS = (1, 3, 4, 5, 28, 29, 60, 61, 124, 125, 200)


def _value(name: str, location: Location, rows: int) -> MNValue:
    layout = parse_layout(f"(({rows}:1))")
    return MNValue(name, TensorType("float", (rows,)), MNDtype.FLOAT, location, layout, rows)


#: Which units share the terms; groups need a machine with several.
OVER = [("mncore2", Shared(*over)) for over in ((True, False), (True, True), (False, True))]
OVER += [("mini", Shared(True, False)), ("what_if/odd", Shared(True, True))]


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("machine", "over"), OVER)
def test_the_number_of_steps(machine: str, over: Shared, rows: int, added: bool) -> None:
    """Rows need not lie side by side, and several may have one row added to them."""
    target = load_target(machine)
    value = _value("v", Location.LM0, 3 * rows)
    more = _value("a", Location.LM1, rows) if added else None
    words = {3 * row: row // 2 for row in range(rows)}
    nests = [sum_units(value, more, words, over, target) for _ in range(3)]
    taken, lines = (stages(nest, target) for nest in (nests[0], expand(nests[1])))
    assert totals(taken, target) == totals(lines, target)
    drams = [
        operand
        for line in expand(nests[2])
        if isinstance(line, Move)
        for operand in (line.source, line.destination)
        if operand.memory == "dram"
    ]
    last = max((one.offset + one.words for one in drams), default=0)
    assert last == sums_words(rows, value.dtype, over, target)
    assert bool(drams) is bool(over.groups)


def _product(
    op: str, shapes: dict[str, Shape], columns: int, precision: str, target: Target
) -> tuple[MNGraph, MNNode]:
    """Return a product whose terms lie on all L1Bs, with the layouts of its operands."""
    terms = shapes["a"][-1]
    fixed = {"b": (terms, columns), "c": (columns,)} if op == "Gemm" else {}
    if any(len(shape) == 1 for shape in shapes.values()):  # with a parameter it stays a product
        fixed = {"b": shapes["b"]}
    given = {name: shape for name, shape in shapes.items() if name not in fixed}
    model = one_node(op, given, {n: np.zeros(shape, np.float32) for n, shape in fixed.items()})
    graph = import_onnx(model, target).graph
    graph = plan_dtypes(graph, target, planning(float_dtype="float", gemm_precision=precision))
    node = next(node for node in graph.nodes if node.op == op)
    kind, way = precision_of(node, target), SpreadRule(contracted=True)
    spread = spread_units(roles_of(node, graph), kind, target, None, way)
    values = {
        name: replace(
            graph.values[name],
            layout=layout,
            num_lw=layout.num_lw(target.cycles),
            location=Location.LM0 if name == node.inputs[0] else Location.LM1,
        )
        for name, layout in operand_layouts(node, graph, spread, target).items()
    }
    return graph.with_values(values), node


PRODUCTS: list[tuple[str, dict[str, Shape], int]] = [
    ("MatMul", {"a": (13, 512), "b": (512, 40)}, 0),
    ("MatMul", {"a": (3, 5, 512), "b": (3, 512, 17)}, 0),
    ("MatMul", {"a": (16, 512), "b": (512,)}, 0),
    ("MatMul", {"a": (512,), "b": (512, 11)}, 0),
    ("MatMul", {"a": (512,), "b": (512,)}, 0),
    ("Gemm", {"a": (37, 512)}, 20),
]


@pytest.mark.parametrize("precision", ["single", "pseudo_single", "half"])
@pytest.mark.parametrize(("op", "shapes", "columns"), PRODUCTS)
def test_a_product_counts_its_sums(
    op: str,
    shapes: dict[str, Shape],
    columns: int,
    precision: str,
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its cost has the steps of the sums, which replace only words of the result."""
    graph, node = _product(op, shapes, columns, precision, target)
    layer, counts = LAYERS[op], []
    monkeypatch.setattr(choose, "_known", lambda _: {})  # counts are kept by shape
    for sums in (True, False):
        if not sums:
            monkeypatch.setattr(resident, "sum_units", lambda *_: iter(()))
        lines = layer.emit(node, graph, target).lines
        counts.append((layer.cost(node, graph, target), len(lines)))
        for line in lines:
            for operand in _operands(line):
                end = layout_of(graph.values[operand.value or ""]).num_lw(target.cycles)
                last = max(operand.offsets) + (operand.words - 1) // WORDS_PER_LONG
                assert last < end, operand.value
    (cost, emitted), (other, fewer) = counts
    assert cost - other == emitted - fewer > 0


def _operands(line: object) -> list[PeOperand]:
    """Return the long words of values that a line reads or writes."""
    if not isinstance(line, Step):
        return []
    ends = [end for one in line.instructions for end in (*one.sources, *one.destinations)]
    return [end for end in ends if isinstance(end, PeOperand) and end.value]
