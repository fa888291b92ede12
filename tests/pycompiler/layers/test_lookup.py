"""MNCoreLookup against numpy, bit by bit: tables, indices, layouts, and models around them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compiling import compiled, run, sampled, tried
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nest_counts import totals
from random_layouts import some_layout
from typed_model import typed_model

from pycompiler.code.nest import stages
from pycompiler.cost.sequence import waiting_steps
from pycompiler.emit.program import concatenate
from pycompiler.graph import (
    Layout,
    Location,
    MNDtype,
    MNGraph,
    MNNode,
    MNValue,
    TensorType,
    parse_layout,
)
from pycompiler.layers.dram_transfer import DOWNLOAD, UPLOAD
from pycompiler.layers.lookup.layer import Lookup
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import Target, load_target
from pycompiler.pfvm.device_functions import LOOKUP
from pycompiler.runtime.image import DramImage

Array = np.ndarray[Any, Any]

#: numpy's dtypes of tables, and the device's
DTYPES = {
    "float32": MNDtype.FLOAT,
    "int32": MNDtype.INT,
    "int64": MNDtype.LONG,
    "uint32": MNDtype.UINT,
    "bool": MNDtype.SINGLE_BOOL,
}
#: A word of LM that no lookup may overwrite.
_MARK = 0x0123456789ABCDEF
#: The rows of tables are too many for a Gather in LM, on either machine.
MANY = {"mini": [257, 509, 600, 1024], "mncore2": [1025, 1031, 2000]}
INDEX_SHAPES: list[tuple[int, ...]]
INDEX_SHAPES = [(), (1,), (2,), (7,), (16,), (67,), (3, 5), (4, 1), (2, 3, 5), (1, 8, 2)]


def some_table(rng: np.random.Generator, rows: int, width: int, dtype: str) -> Array:
    """Any bits, but no denormal numbers, infinities or NaN."""
    if dtype == "bool":
        return rng.random((rows, width)) < 0.5
    if dtype.startswith("float"):
        return rng.standard_normal((rows, width)).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, (rows, width), dtype, endpoint=True)


def some_index(rng: np.random.Generator, rows: int, shape: tuple[int, ...], dtype: str) -> Array:
    """Indices from both ends; the first row and the last are among them if there is room."""
    made = rng.integers(-rows, rows, shape).astype(dtype)
    made.reshape(-1)[:4] = np.array([rows - 1, -rows, -1, 0])[: made.size]
    return made


def check(
    model: Any, inputs: Mapping[str, Array], wanted: Mapping[str, Array], machine: str, **facts: Any
) -> int:
    """Nothing runs on the host, all bits agree; return the number of lookups."""
    result, report = compiled(model, machine, **facts)
    assert report["host_fallback"] == []
    found = run(result, inputs, machine)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array), name
    return sum(node.op == LOOKUP for node in result.graph.nodes)


def check_one(table: Array, index: Array, machine: str, axis: int = 0, **facts: Any) -> None:
    wanted = {"y": table[index]}
    nodes = [("Gather", ["w", "i"], "y", {"axis": axis})]
    model = typed_model(nodes, {"i": index}, wanted, {"w": table})
    assert check(model, {"i": index}, wanted, machine, **facts) >= 1


@pytest.mark.parametrize(("machine", "examples"), [("mini", 12), ("mncore2", 4)])
def test_drawn_shapes(machine: str, examples: int) -> None:
    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples // 2, 20 * examples))
    def case(seed: int) -> None:
        rng, made = random.Random(seed), np.random.default_rng(seed)
        rows, width = rng.choice(MANY[machine]), rng.choice([1, 3, 24, 31, 61, 128, 257])
        table = some_table(made, rows, width, rng.choice(list(DTYPES)))
        shape, kind = rng.choice(INDEX_SHAPES), rng.choice(["int64", "int32"])
        check_one(table, some_index(made, rows, shape, kind), machine)

    case()


@pytest.mark.parametrize(
    ("scheduler", "planner", "mode"),
    sampled(
        list(
            itertools.product(
                ("always_from_dram", "reuse_consecutive", "spill_opt"),
                ("lpz", "first_arrival"),
                ("float", "mixed"),
            )
        ),
        every=3,
    ),
)
def test_options(scheduler: str, planner: str, mode: str) -> None:
    rng = np.random.default_rng(5)
    table, index = some_table(rng, 521, 37, "float32"), some_index(rng, 521, (3, 7), "int64")
    options = {"scheduler": scheduler, "layout_planner": planner, "float_dtype": mode}
    check_one(table, index, "mini", **options)


@pytest.mark.parametrize("rows", [20, 600])
def test_tables_of_short_floats(rows: int) -> None:
    """They are singles on the device; a short table is a plain Gather."""
    rng = np.random.default_rng(6)
    table = some_table(rng, rows, 21, "float16")
    index = np.array([[rows - 1, 0], [-rows, -1], [17, -3]])
    wanted = {"y": table[index]}
    model = typed_model([("Gather", ["w", "i"], "y")], {"i": index}, wanted, {"w": table})
    assert check(model, {"i": index}, wanted, "mini") == (rows == 600)


@pytest.mark.parametrize("shape", [(600,), (600, 3, 5), (300, 2, 3, 4)])
def test_tables_of_other_ranks(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    table = rng.standard_normal(shape).astype(np.float32)
    check_one(table, some_index(rng, shape[0], (2, 3), "int64"), "mini", axis=-len(shape))


@pytest.mark.parametrize("given_table", [False, True])
def test_two_lookups_in_one_table(given_table: bool) -> None:
    rng = np.random.default_rng(8)
    w = some_table(rng, 600, 24, "float32")
    i, j = some_index(rng, 600, (5,), "int64"), some_index(rng, 600, (3, 4), "int32")
    nodes = [("Gather", ["w", "i"], "y"), ("Gather", ["w", "j"], "z")]
    inputs, wanted = {"i": i, "j": j}, {"y": w[i], "z": w[j]}
    if given_table:
        model = typed_model(nodes, {"w": w, **inputs}, wanted)
        inputs["w"] = w
    else:
        model = typed_model(nodes, inputs, wanted, {"w": w})
    assert check(model, inputs, wanted, "mini") == 2


@pytest.mark.parametrize(
    ("given_table", "op"), [(False, "MatMul"), (False, "Gemm"), (True, "MatMul")]
)
def test_a_table_that_a_product_reads_too(given_table: bool, op: str) -> None:
    """A constant is there twice; the rows of an input are found by comparison."""
    rng = np.random.default_rng(9)
    w, i = some_table(rng, 600, 24, "float32"), some_index(rng, 600, (5,), "int64")
    k = rng.standard_normal((24, 8) if op == "MatMul" else (5, 24)).astype(np.float32)
    product = ["w", "k"] if op == "MatMul" else ["k", "w"]
    facts: dict[str, Any] = {} if op == "MatMul" else {"transB": 1}
    nodes = [("Gather", ["w", "i"], "y"), (op, product, "z", facts)]
    z = w @ k if op == "MatMul" else k @ w.T
    inputs: dict[str, Array] = {"i": i, "k": k}
    constants = {"w": w}
    if given_table:
        inputs, constants = {"w": w, **inputs}, {}
    model = typed_model(nodes, inputs, {"y": w[i], "z": z}, constants)
    assert check(model, inputs, {"y": w[i]}, "mini") == (0 if given_table else 1)
    found = run(compiled(model, "mini")[0], inputs, "mini")["z"]
    assert np.allclose(found, z, atol=24 * 2.0**-20 * float(np.abs(w).max() * np.abs(k).max()))


def test_a_table_that_is_an_output_too() -> None:
    rng = np.random.default_rng(10)
    w, i = some_table(rng, 300, 5, "int32"), some_index(rng, 300, (4,), "int64")
    nodes = [("Gather", ["w", "i"], "y")]
    model = typed_model(nodes, {"w": w, "i": i}, {"y": w[i], "w": w})
    assert check(model, {"w": w, "i": i}, {"y": w[i], "w": w}, "mini") == 1


def test_known_indices() -> None:
    rng = np.random.default_rng(11)
    w, i = some_table(rng, 600, 9, "float32"), some_index(rng, 600, (2, 3), "int64")
    model = typed_model([("Gather", ["w", "i"], "y")], {"w": w}, {"y": w[i]}, {"i": i})
    assert check(model, {"w": w}, {"y": w[i]}, "mini") == 1


def test_the_result_goes_on() -> None:
    """The layout of the result follows its reader."""
    rng = np.random.default_rng(12)
    w, i = some_table(rng, 600, 24, "float32"), some_index(rng, 600, (30,), "int64")
    p = rng.standard_normal((30, 24)).astype(np.float32)
    nodes = [("Gather", ["w", "i"], "a"), ("Add", ["a", "p"], "b"), ("Transpose", ["b"], "y")]
    model = typed_model(nodes, {"i": i}, {"y": (w[i] + p).T}, {"w": w, "p": p})
    result, report = compiled(model, "mini")
    assert report["host_fallback"] == []
    found = run(result, {"i": i}, "mini")["y"]
    assert np.allclose(found, (w[i] + p).T, rtol=2.0**-20, atol=1e-6)


@pytest.mark.parametrize("shape", sampled([((401,),), ((2, 211),), ((211, 2),)]))
def test_time_slices(shape: tuple[int, ...]) -> None:
    """More rows than LM holds."""
    rng = np.random.default_rng(13)
    table, index = some_table(rng, 300, 24, "int64"), some_index(rng, 300, shape, "int64")
    wanted = {"y": table[index]}
    model = typed_model([("Gather", ["w", "i"], "y")], {"i": index}, wanted, {"w": table})
    assert check(model, {"i": index}, wanted, "mini") > 1


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_the_longest_row(dtype: str) -> None:
    target, rng = load_target("mini"), np.random.default_rng(14)
    table = some_table(rng, 257, target.dar_row * DTYPES[dtype].words_per_long, dtype)
    check_one(table, some_index(rng, 257, (9,), "int64"), "mini")


@pytest.mark.parametrize("dtype", [MNDtype.FLOAT, MNDtype.LONG])
def test_rows_of_which_l2bm_holds_few(target: Target, dtype: MNDtype) -> None:
    """L2BM cannot hold a row for every L1B: some L1Bs hold copies."""
    layer, longest = Lookup(), target.dar_row * dtype.words_per_long
    for width in (longest, longest // 2 + 1, longest // 3):
        node, graph = graph_of((5000, width), (70,), dtype, MNDtype.LONG, target)
        found = layer.layouts(node, graph, target, {})
        assert list(layer.refusals(node, laid_out(graph, found, target), target)) == []


@pytest.mark.long  # the layer says so in `test_what_is_refused`
def test_rows_that_are_too_long_are_no_lookup() -> None:
    rng = np.random.default_rng(15)
    longer = load_target("mini").dar_row * MNDtype.FLOAT.words_per_long + 1
    table, index = some_table(rng, 257, longer, "float32"), np.array([256])
    nodes = [("Gather", ["w", "i"], "y")]
    model = typed_model(nodes, {"i": index}, {"y": table[index]}, {"w": table})
    assert check(model, {"i": index}, {"y": table[index]}, "mini") == 0


@pytest.mark.long
def test_a_table_that_is_its_own_index_is_no_lookup() -> None:
    rng = np.random.default_rng(15)
    own = rng.integers(0, 600, (600, 2))
    nodes = [("Gather", ["w", "w"], "y"), ("Neg", ["w"], "z")]
    model = typed_model(nodes, {"w": own}, {"y": own[own], "z": -own})
    with pytest.warns(UserWarning, match="do not fit local memory"):
        result, report = compiled(model, "mini")
    # The index counts from the front: it is another value, which the host makes here.
    assert {row["op"] for row in report["host_fallback"]} == {"Less", "Add", "Where"}
    assert np.array_equal(run(result, {"w": own}, "mini")["y"], own[own])


def graph_of(
    shape: tuple[int, int], index: tuple[int, ...], dtype: MNDtype, kind: MNDtype, target: Target
) -> tuple[MNNode, MNGraph]:
    """A lookup between values without layouts."""
    out = MNValue("y", TensorType("x", (*index, shape[1])), dtype, Location.LM0, addr=0)
    values = {
        "w": MNValue("w", TensorType("x", shape), dtype, Location.DRAM, addr=0),
        "i": MNValue("i", TensorType("x", index), kind, Location.LM1, addr=0),
        "y": out,
    }
    node = MNNode("n", LOOKUP, ("w", "i"), ("y",))
    return node, MNGraph("g", target.name, nodes=(node,), values=values)


def laid_out(graph: MNGraph, layouts: Mapping[str, Layout], target: Target) -> MNGraph:
    values = {
        name: replace(value, layout=layouts[name], num_lw=layouts[name].num_lw(target.cycles))
        for name, value in graph.values.items()
    }
    return replace(graph, values=values)


def on_machine(node: MNNode, graph: MNGraph, target: Target, w: Array, i: Array) -> Array:
    """Return ``w[i]``, as one download, the lookup and an upload find it.

    LM0 keeps what lies behind the share of the result.
    """
    addresses, images, at = {"i": 0, "y": 0}, {}, target.mv_unit
    for name in "wiy":
        value = graph.values[name]
        assert value.layout is not None
        images[name] = DramImage(value.layout, value.shape, value.dtype, target)
        addresses["w" if name == "w" else f"{name}.dram"] = at
        at += -(-images[name].dram_words // target.mv_unit) * target.mv_unit
    stored = {
        f"{name}.dram": replace(graph.values[name], name=f"{name}.dram", location=Location.DRAM)
        for name in "iy"
    }
    nodes = (MNNode("d", DOWNLOAD, ("i.dram",), ("i",)), node)
    nodes += (MNNode("u", UPLOAD, ("y",), ("y.dram",)),)
    whole = replace(graph, nodes=nodes, values={**graph.values, **stored})
    fragments = [(n.name, n.op, LAYERS[n.op].emit(n, whole, target)) for n in nodes]
    code = concatenate(fragments, addresses, target)
    machine = target.new_machine()
    for name, array, addr in (("w", w, addresses["w"]), ("i", i, addresses["i.dram"])):
        for group, packed in enumerate(images[name].pack(array)):
            machine.write("dram", packed, addr=addr, group=group)
    share = graph.values["y"].num_lw
    behind = np.full_like(machine.read("lm0", addr=share, count=target.words("lm0") - share), _MARK)
    machine.write("lm0", behind, addr=share)
    machine.run(target.assemble(code.text, "lookup.vsm"))
    assert np.array_equal(machine.read("lm0", addr=share, count=behind.shape[-1]), behind)
    count, addr = images["y"].dram_words, addresses["y.dram"]
    groups = range(target.groups)
    back = [machine.read("dram", addr=addr, count=count, group=group) for group in groups]
    return images["y"].unpack(np.stack(back), w.dtype)


@pytest.mark.parametrize(("machine", "examples"), [("mini", 16), ("mncore2", 4)])
def test_any_hint(machine: str, examples: int) -> None:
    """Whatever layout the reader wants, the layer accepts its own choice, and the bits are right.

    The cost is the number of steps, plus the time of the MVs.
    """
    target, layer = load_target(machine), Lookup()

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples // 2, 20 * examples))
    def case(seed: int) -> None:
        rng, made = random.Random(seed), np.random.default_rng(seed)
        name, kind = rng.choice(["float32", "int64"]), rng.choice(["int32", "int64"])
        shape = rng.choice([2, 31, 300]), rng.choice([1, 5, 24, 64, 131])
        places = tuple(rng.choice([1, 2, 3, 8, 13]) for _ in range(rng.randint(1, 3)))
        node, graph = graph_of(shape, places, DTYPES[name], DTYPES[kind], target)
        hints = {"y": some_layout(rng, (*places, shape[1]), DTYPES[name], target)}
        graph = laid_out(graph, layer.layouts(node, graph, target, hints), target)
        assume(graph.values["y"].num_lw < target.words("lm0"))
        assert list(layer.refusals(node, graph, target)) == []
        table, index = some_table(made, *shape, name), made.integers(0, shape[0], places)
        index = index.astype(kind)
        assert np.array_equal(on_machine(node, graph, target, table, index), table[index])
        taken = stages(layer.code(node, graph, target), target)
        lines = stages(layer.emit(node, graph, target).lines, target)
        assert totals(taken, target) == totals(lines, target)
        assert layer.cost(node, graph, target) == waiting_steps(taken, target)

    case()


def test_an_index_past_the_end_picks_the_last_row() -> None:
    target = load_target("mini")
    for kind in ("int32", "int64"):
        node, graph = graph_of((300, 5), (4,), MNDtype.FLOAT, DTYPES[kind], target)
        graph = laid_out(graph, Lookup().layouts(node, graph, target, {}), target)
        table = some_table(np.random.default_rng(16), 300, 5, "float32")
        index = np.array([299, 300, 2**31 - 1, 0], dtype=kind)
        found = on_machine(node, graph, target, table, index)
        assert np.array_equal(found, table[[299, 299, 299, 0]])


def test_what_is_refused() -> None:
    target, layer = load_target("mini"), Lookup()
    node, graph = graph_of((300, 24), (5,), MNDtype.FLOAT, MNDtype.LONG, target)
    found = layer.layouts(node, graph, target, {})
    good = laid_out(graph, found, target)
    assert list(layer.refusals(node, good, target)) == []
    for name, text in [
        ("w", "((300:24), (24:1); B@[PE,MAB,L1B])"),
        ("w", "((300:8), (4_MAB:1, 4_PE:1, 2_W:1))"),
        ("i", "((5_MAB:1); B@[PE,L1B])"),
        ("y", "((5:24), (24:1); B@[PE,MAB,L1B])"),
    ]:
        other = laid_out(graph, {**found, name: parse_layout(text)}, target)
        assert list(layer.refusals(node, other, target)), (name, text)
    table = replace(good.values["w"], location=Location.LM0)
    there = replace(good, values={**good.values, "w": table})
    assert "a table outside of DRAM" in list(layer.refusals(node, there, target))
    longer = target.dar_row * MNDtype.FLOAT.words_per_long + 1
    node, graph = graph_of((300, longer), (5,), MNDtype.FLOAT, MNDtype.LONG, target)
    same = laid_out(graph, found, target)
    assert list(layer.refusals(node, same, target)) == [f"rows of {longer} elements"]
    for dtypes, part in [
        ((MNDtype.FLOAT, MNDtype.FLOAT, MNDtype.FLOAT), "by indices of Float"),
        ((MNDtype.HALF, MNDtype.LONG, MNDtype.HALF), "Half"),
    ]:
        assert part in (layer.unsupported(node, graph, dtypes) or "")
    own = replace(node, inputs=("w", "w"))
    found = layer.unsupported(own, graph, (MNDtype.LONG,) * 3)
    assert found == f"{LOOKUP} from the index itself"
