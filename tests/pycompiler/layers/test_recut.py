"""MNCoreRecut: rows of DRAM, cut and joined anywhere, on machines with one group and with several.

The values here are small, so that a test takes little time: all copies are recuts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, run, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from nest_counts import check_counts
from onnx import helper

from pycompiler.code.lines import Step
from pycompiler.code.nest import stages
from pycompiler.cost.sequence import steps_of
from pycompiler.graph.dtypes import MNDtype
from pycompiler.graph.graph import Location, MNValue, TensorType
from pycompiler.graph.layout import Level
from pycompiler.layers.operators import LAYERS
from pycompiler.layers.recut import code
from pycompiler.layers.recut.plain import plain_layout, unit_of, units_in_dram
from pycompiler.machine import load_target
from pycompiler.pfvm.composites import COMPOSITES, Composite
from pycompiler.pfvm.composites.writer import MOVED, Writer
from pycompiler.pfvm.device_functions import RECUT
from pycompiler.runtime.image import DramImage
from pycompiler.tolerance import MOVE

Shape = tuple[int, ...]
KINDS = {"float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64}


def marked(
    op: str, shapes: dict[str, Shape], result: Shape, elem: str = "float", **facts: Any
) -> onnx.ModelProto:
    """Return a model of one operator whose operands stay in DRAM."""
    axis = facts.pop("axis", None)
    constants = {name: np.array(found, np.int64) for name, found in facts.items()}
    kind = onnx.TensorProto.DataType.Value(elem.upper())
    model = model_of([(op, [*shapes, *constants], "y")], shapes, ["y"], constants, kind)
    if axis is not None:
        model.graph.node[0].attribute.append(helper.make_attribute("axis", axis))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, result))
    return model


@pytest.fixture(autouse=True, scope="module")
def recuts() -> Iterator[None]:
    """Write all of these copies as recuts."""
    ops = ("Reshape", "Slice", "Concat", "Gather")
    with patch.dict(COMPOSITES, dict.fromkeys(ops, Composite(recut, MOVE, MOVED))):
        yield


def recut(write: Writer) -> bool:
    """Write a node as a recut, whose runs are those of numbered elements."""
    node, names = write.node, [n for n in dict.fromkeys(write.node.input) if n not in write.data]
    ends = np.cumsum([0, *(prod(write.types[name].shape) for name in names)])
    numbers = {
        name: np.arange(first, end).reshape(write.types[name].shape)
        for name, first, end in zip(names, ends, ends[1:], strict=False)
    }
    axis = write.attribute("axis", 0)
    found = copied(node.op_type, numbers, write.data, axis).reshape(-1)
    sources = np.searchsorted(ends, found, "right") - 1
    breaks = (np.diff(found, prepend=-9) != 1) | (np.diff(sources, prepend=-1) != 0)
    begins = np.flatnonzero(breaks)
    counts = np.diff([*begins, len(found)])
    places = found[begins] - ends[sources[begins]]
    columns = (sources[begins], places, begins, counts)
    runs = [int(number) for run in zip(*columns, strict=True) for number in run]
    facts = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    with write.as_one(RECUT, *names, runs=runs):
        reads = [write.constant(write.data[n], n) if n in write.data else n for n in node.input]
        write.op(node.op_type, *reads, result=node.output[0], **facts)
    return True


def drawn(rng: random.Random, elem: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model of a Reshape, a Slice, a Concat or a Gather of rows, and its inputs."""
    front = rng.choice([(), (), (2,), (3,), (9,), (2, 3), (3, 4, 2)])
    shape = (
        *front,
        rng.choice([5, 127, 128, 129, 640, 1000, rng.randrange(2, 3000 // prod(front))]),
    )
    axis = rng.randrange(len(shape))
    size = shape[axis]

    def like(length: int) -> Shape:
        return (*shape[:axis], length, *shape[axis + 1 :])

    shapes = {"x": shape}
    op = rng.choice(["Reshape", "Slice", "Concat", "Gather"])
    if op == "Reshape":
        parts = rng.choice([d for d in range(1, 40) if prod(shape) % d == 0])
        goal = (parts, prod(shape) // parts) if parts > 1 else (prod(shape),)
        model = marked(op, shapes, goal, elem, s=list(goal))
    elif op == "Slice":
        start = rng.randrange(size)
        stop = rng.randrange(start + 1, size + 1)
        chosen = range(start, stop)
        if size < 10:
            chosen = rng.choice([chosen, chosen[::-1], chosen[::2]])
        ends = {"s": [chosen.start], "e": [chosen.stop if chosen.stop >= 0 else -99]}
        facts = {**ends, "a": [axis], "d": [chosen.step]}
        model = marked(op, shapes, like(len(chosen)), elem, **facts)
    elif op == "Gather":
        index = [rng.randrange(size) for _ in range(rng.randrange(1, 9))]
        model = marked(op, shapes, like(len(index)), elem, i=index, axis=axis)
    else:
        for number in range(rng.randrange(1, 3)):
            shapes[f"z{number}"] = like(rng.randrange(1, 400) if axis == len(shape) - 1 else 2)
        total = sum(one[axis] for one in shapes.values())
        model = marked(op, shapes, like(total), elem, axis=axis)
    made = np.random.default_rng(rng.randrange(1 << 30))
    inputs = {n: (made.standard_normal(s) * 1000).astype(KINDS[elem]) for n, s in shapes.items()}
    return model, inputs


def copied(
    op: str, inputs: dict[str, np.ndarray], facts: Mapping[str, np.ndarray], axis: int
) -> np.ndarray:
    """Return what numpy makes of the inputs."""
    x = inputs["x"]
    if op == "Reshape":
        return x.reshape(facts["s"])
    if op == "Slice":
        start, stop, axis, step = (int(facts.get(name, np.ones(1))[0]) for name in "sead")
        return np.take(x, range(x.shape[axis])[start:stop:step], axis)
    if op == "Gather":
        return np.take(x, facts["i"], axis)
    return np.concatenate(list(inputs.values()), axis=axis)


def wanted(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> np.ndarray:
    node = model.graph.node[0]
    facts = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    return copied(node.op_type, inputs, facts, axis)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["mini", "mini", "what_if/odd"]))
@settings(max_examples=tried(6, 120))
def test_rows_are_cut_and_joined_anywhere(seed: int, machine: str) -> None:
    rng = random.Random(seed)
    model, inputs = drawn(rng, rng.choice(list(KINDS)))
    made, report = compiled(model, machine, strict=True)
    ops = [node.op for node in made.graph.nodes]
    # The planner may switch short rows to their plain layouts, which pad them by much.
    assert ops.count(RECUT) == 1
    assert np.array_equal(run(made, inputs, machine)["y"], wanted(model, inputs))
    assert not report["host_fallback"]
    check_counts(made.graph, load_target(machine))


def test_long_rows_are_counted_as_fast_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the parts that are alike, one is made."""
    made = [0]
    step = code.single_step

    def counted(*given: Any) -> Step:
        made[0] += 1
        return step(*given)

    monkeypatch.setattr(code, "single_step", counted)
    target, found = load_target("mini"), []
    for parts in (4, 40):
        length = parts * 4096
        model = marked("Slice", {"x": (length,)}, (length - 777,), s=[777], e=[length], a=[0])
        graph = compiled(model, strict=True)[0].graph
        (node,) = (node for node in graph.nodes if node.op == RECUT)
        made[0] = 0
        taken = stages(LAYERS[RECUT].code(node, graph, target), target)
        found.append(made[0])
        assert steps_of(taken, target) > 10 * parts
    assert found[0] == found[1] < 100


def test_all_l2bs_of_the_full_chip_take_part() -> None:
    length = 3 * 8192 * 4 + 77
    model = marked("Slice", {"x": (length,)}, (length - 82,), s=[77], e=[length - 5], a=[0])
    x = np.arange(length, dtype=np.float32)
    made, _ = compiled(model, "mncore2", strict=True)
    assert np.array_equal(run(made, {"x": x}, "mncore2")["y"], x[77:-5])
    assert all(f"$lc0@{group}.{l2b}" in made.vsm for group in range(4) for l2b in range(2))


@pytest.mark.parametrize("machine", ["mini", "what_if/odd", "mncore2"])
@pytest.mark.parametrize("dtype", [MNDtype.FLOAT, MNDtype.LONG])
@pytest.mark.parametrize("by_rows", [False, True])
def test_the_elements_of_a_unit_follow_each_other(
    machine: str, dtype: MNDtype, by_rows: bool
) -> None:
    """Compared with the image that the host stores."""
    target = load_target(machine)
    l2bs = target.level_range["L2B"]
    # A part of every row, or some of the rows, in each L2B.
    shape = (2, 2 * l2bs + 3, 150) if by_rows else (2, 3 * target.row_words + 11)
    layout = plain_layout(shape, dtype, target)
    on_l2bs = [
        axis for axis, subs in enumerate(layout.axes) if Level.L2B in {s.level for s in subs}
    ]
    assert on_l2bs == ([] if l2bs == 1 else [1])
    kind = TensorType("float" if dtype is MNDtype.FLOAT else "int64", shape)
    value = MNValue("x", kind, dtype=dtype, layout=layout, location=Location.DRAM)
    groups, words = units_in_dram(value, target)
    image = DramImage(layout, shape, dtype, target)
    unit, each = unit_of(dtype, target), dtype.words_per_long
    rng = np.random.default_rng(5)
    for element in rng.integers(0, prod(shape), 60).tolist():
        row, place = divmod(element, shape[-1])
        number, within = divmod(place, unit)
        there = int(words[row, number]) + within // each
        assert image.place(element)[:2] == (int(groups[row, number]), there)
