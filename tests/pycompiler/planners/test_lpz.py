"""The layout planner lpz: its search against brute force, its costs, genes, and networks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, run, tried
from corpus.programs import NETWORKS
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import random_model
from reference_search import (
    all_costs,
    cheapest,
    new_search,
    reference_cheapest,
    reference_elimination,
    search_of,
    total,
)

from pycompiler.errors import PycompilerError
from pycompiler.graph import Level, MNDtype, parse_graph, parse_layout
from pycompiler.layers.switch.pass_moves import LayoutChange
from pycompiler.machine import Target
from pycompiler.pfvm.session import HostSession
from pycompiler.planners.lpz import planner as lpz
from pycompiler.planners.lpz import pools, tables
from pycompiler.planners.lpz.costs import NEVER, TOO_LARGE
from pycompiler.planners.switch_plan import plan_switch

Table = np.ndarray


def random_problem(rng: random.Random) -> tuple[list[Table], dict[tuple[int, int], Table]]:
    """Return up to six variables with up to four choices, and costs of some pairs."""
    sizes = [rng.randrange(1, 5) for _ in range(rng.randrange(1, 7))]

    def costs_of(*shape: int) -> Table:
        return np.array([rng.randrange(50) for _ in range(int(np.prod(shape)))]).reshape(shape)

    pairs = {
        (u, v): costs_of(sizes[u], sizes[v])
        for v in range(len(sizes))
        for u in range(v)
        if rng.random() < 0.6
    }
    return [costs_of(size) for size in sizes], pairs


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(60, 1500))
def test_the_search_finds_the_cheapest(seed: int) -> None:
    single, pairs = random_problem(random.Random(seed))
    ways = product(*(range(len(costs_here)) for costs_here in single))
    least = min(total(single, pairs, way) for way in ways)
    found = cheapest(single, pairs, [0] * len(single))
    assert total(single, pairs, found) == least


@contextmanager
def small_tables(entries: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ENTRIES", entries)
        yield


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 4, 16, 1 << 16]))
@settings(max_examples=tried(150))
def test_a_search_that_goes_on_is_that_of_the_reference(seed: int, table: int) -> None:
    """Few costs change between two calls, also to "not possible" and back."""
    rng = random.Random(seed)
    single, pairs = random_problem(rng)
    places: list[tuple[Any, Any]] = [(single, v) for v in range(len(single))]
    places += [(pairs, pair) for pair in pairs]
    with small_tables(table):
        sizes = [len(costs) for costs in single]
        work, search = (new_search(sizes, pairs) for _ in range(2))
        for _ in range(6):
            for one in (work, search):
                one.take(all_costs(single, pairs))
            start = [rng.randrange(len(costs)) for costs in single]
            assert work.total(start) == total(single, pairs, start)
            wanted = reference_elimination(single, pairs, start)
            assert work.eliminated(start) == wanted
            wanted = reference_cheapest(single, pairs, start)
            assert search.cheapest(start) == wanted
            for held in work.held:
                answers = []
                for choice in range(sizes[held]):
                    asked = [*start[:held], choice, *start[held + 1 :]]
                    found = reference_elimination(single, pairs, asked)
                    answers.append((total(single, pairs, found), choice, found))
                most = rng.randrange(1, len(answers) + 1)
                assert work.answers(start, held, most) == sorted(answers)[:most]
            for _ in range(rng.randrange(4)):
                where, key = rng.choice(places)
                changed = where[key].copy()
                changed.flat[rng.randrange(changed.size)] = rng.choice((rng.randrange(50), NEVER))
                where[key] = changed


def test_more_neighbours_than_an_array_has_axes() -> None:
    """Inputs of a model have one layout each, and a region may touch hundreds of them."""
    rng = random.Random(5)
    sizes = [3, 2, *[1] * 100]
    single = [np.array([rng.randrange(50) for _ in range(size)]) for size in sizes]
    pairs = {
        (u, v): np.array([[rng.randrange(50) for _ in range(sizes[v])] for _ in range(sizes[u])])
        for u in (0, 1)
        for v in range(u + 1, len(sizes))
    }
    ways = ([a, b, *[0] * 100] for a in range(3) for b in range(2))
    least = min(total(single, pairs, way) for way in ways)
    assert total(single, pairs, cheapest(single, pairs, [0] * len(sizes))) == least
    work = search_of(single, pairs)
    for _ in range(2):
        assert work.total(work.eliminated([0] * len(sizes))) == least
        pairs[0, 50] = pairs[0, 50] + np.array([[0], [90], [0]])
        work.take({(0, 50): pairs[0, 50]})
        least = min(total(single, pairs, [a, b, *[0] * 100]) for a in range(3) for b in range(2))


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 4, 16]))
@settings(max_examples=tried(100))
def test_small_tables_never_make_it_worse(seed: int, table: int) -> None:
    rng = random.Random(seed)
    single, pairs = random_problem(rng)
    start = [rng.randrange(len(costs_here)) for costs_here in single]
    with small_tables(table):
        found = cheapest(single, pairs, start)
    reached = total(single, pairs, found)
    assert reached <= total(single, pairs, start)
    # No single change improves it.
    for variable, costs_here in enumerate(single):
        for choice in range(len(costs_here)):
            other = [*found[:variable], choice, *found[variable + 1 :]]
            assert total(single, pairs, other) >= reached


# -- the costs of passes ---------------------------------------------------------------------


def test_a_limit_ends_the_search_for_passes(target: Target) -> None:
    source, result = (
        parse_layout(text) for text in ("((2_L1B:1, 8:1), (4_MAB:1))", "((8:1, 2_L1B:1), (4_PE:1))")
    )
    arguments = LayoutChange(source, result, (16, 4), MNDtype.FLOAT), target
    steps = sum(step.steps for step in plan_switch(*arguments))
    assert sum(s.steps for s in plan_switch(*arguments, most=steps)) == steps
    with pytest.raises(PycompilerError) as caught:
        plan_switch(*arguments, most=steps - 1)
    assert caught.value.code == "P0305"


# -- graphs ----------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(10, 250))
def test_never_dearer_and_the_same_results(seed: int) -> None:
    model, inputs = random_model(random.Random(seed))
    wanted = HostSession(model, "model").run(inputs)
    result, report = compiled(model, "mini", layout_planner="lpz", strict=True)
    facts = next(row for row in report["passes"] if row["pass"] == "layout")["estimated_steps"]
    assert max(row["steps"] for row in facts.values()) < TOO_LARGE
    assert len(facts["lpz"]["does_not_fit"]) <= len(facts["first_arrival"]["does_not_fit"])
    if not facts["first_arrival"]["does_not_fit"]:
        assert facts["lpz"]["steps"] <= facts["first_arrival"]["steps"]
    found = run(result, inputs)
    scale = max(float(np.abs(a).max(initial=0)) for a in wanted.values()) + 1
    for name, reference in wanted.items():
        assert np.abs(found[name] - reference).max(initial=0) <= 1e-4 * scale


RNG = np.random.default_rng(11)


def weight(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / shape[0]).astype(np.float32)


CHAIN = model_of(
    [
        ("Relu", ["x"], "r"),
        ("MatMul", ["r", "w"], "a"),
        ("Add", ["a", "r"], "s"),
        ("MatMul", ["s", "v"], "b"),
        ("Tanh", ["b"], "y"),
    ],
    {"x": (32, 32)},
    ["y"],
    {"w": weight(32, 32), "v": weight(32, 32)},
)


def test_a_region_takes_what_its_products_make() -> None:
    inputs = {"x": RNG.standard_normal((32, 32)).astype(np.float32)}
    steps: dict[str, int] = {}
    for planner in ("first_arrival", "lpz"):
        result, report = compiled(CHAIN, "mncore2", layout_planner=planner)
        steps[planner] = sum(
            row["steps"] for row in report["nodes"] if row["op"] == "MNCoreLayoutSwitch"
        )
        wanted = HostSession(CHAIN, "model").run(inputs)["y"]
        assert np.abs(run(result, inputs, "mncore2")["y"] - wanted).max() < 1e-4
    assert steps["lpz"] < steps["first_arrival"] / 2


@pytest.mark.parametrize(
    "nodes",
    [
        # All axes of the mean have size 1, but the product's result has padding.
        [("MatMul", ["s", "w"], "p"), ("ReduceMean", ["p", "axes"], "y")],
        # The same, for one operand of an operator with a larger operand.
        [("MatMul", ["s", "w"], "p"), ("Mul", ["p", "x"], "m"), ("MatMul", ["m", "v"], "y")],
    ],
)
def test_single_elements_of_a_product_meet_a_region(nodes: list) -> None:  # type: ignore[type-arg]
    shapes = {"s": (1, 1, 1), "x": (1, 16, 32)}
    shapes = {name: shape for name, shape in shapes.items() if any(name in n[1] for n in nodes)}
    constants = {"w": weight(1, 1), "v": weight(32, 16), "axes": np.array([1])}
    used = {name: a for name, a in constants.items() if any(name in n[1] for n in nodes)}
    model = model_of(nodes, shapes, ["y"], used)
    inputs = {n: RNG.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    wanted = HostSession(model, "model").run(inputs)["y"]
    result, _ = compiled(model, "mini", layout_planner="lpz")
    assert np.abs(run(result, inputs)["y"] - wanted).max() < 1e-4


@pytest.mark.long
def test_growth_finds_layouts_that_the_first_pools_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two 3x3 convolutions around one of 1x1: the tiles of the first reach the last."""
    rng = np.random.default_rng(3)
    kernels = {"u": (32, 32, 3, 3), "v": (64, 32, 1, 1), "w": (32, 64, 3, 3)}
    constants = {n: rng.standard_normal(s).astype(np.float32) for n, s in kernels.items()}
    nodes = [("Conv", ["x", "u"], "a"), ("Relu", ["a"], "b"), ("Conv", ["b", "v"], "c")]
    nodes += [("Relu", ["c"], "d"), ("Conv", ["d", "w"], "y")]
    model = model_of(nodes, {"x": (8, 32, 28, 28)}, ["y"], constants)
    inputs = {"x": rng.standard_normal((8, 32, 28, 28)).astype(np.float32)}
    wanted = HostSession(model, "model").run(inputs)["y"]
    steps = []
    monkeypatch.setattr(pools, "POOL", 4)
    # Families find them too.
    monkeypatch.setattr(lpz, "add_families", lambda *_: ())
    for rounds in (0, 4):
        monkeypatch.setattr(lpz, "GROWTHS", rounds)
        result, report = compiled(model, "mncore2", layout_planner="lpz")
        passed = next(row for row in report["passes"] if row["pass"] == "layout")
        steps.append(passed["estimated_steps"]["lpz"]["steps"])
        found = run(result, inputs, "mncore2")["y"]
        assert np.abs(found - wanted).max() < 1e-5 * np.abs(wanted).max()
    assert steps[1] < steps[0]


def test_no_trial_begins_when_the_work_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first choice, and what grows near it, cost what they cost; trials come behind them."""
    tried_seeds: list[Any] = []
    beside = lpz.LayoutPlannerZ._beside

    def counted(planner: Any, best: list[int], seeds: Any, **more: bool) -> list[int]:
        tried_seeds.append(seeds)
        return beside(planner, best, seeds, **more)

    monkeypatch.setattr(lpz.LayoutPlannerZ, "_beside", counted)
    steps = []
    for budget in (lpz.BUDGET, 1):
        monkeypatch.setattr(lpz, "BUDGET", budget)
        tried_seeds.clear()
        _, report = compiled(CHAIN, "mncore2", compare_float=False)
        assert bool(tried_seeds) == (budget > 1)
        passed = next(row for row in report["passes"] if row["pass"] == "layout")
        steps.append(passed["estimated_steps"]["lpz"]["steps"])
    assert steps[0] <= steps[1]


@pytest.mark.long
def test_regions_move_together_into_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bottleneck, whose regions have many neighbours, costs less than by moves of single ones."""
    steps = []
    for trials in (None, lambda *_: ()):
        if trials is not None:
            monkeypatch.setattr(lpz, "add_everywhere", trials)
        _, report = compiled(NETWORKS["bottleneck"](), "mncore2", compare_float=False)
        passed = next(row for row in report["passes"] if row["pass"] == "layout")
        steps.append(passed["estimated_steps"]["lpz"]["steps"])
    assert steps[0] < steps[1]


AXIS = {"last": np.array([-1]), "first": np.array([0])}


def reduced(op: str, reads: list[str], out: str) -> onnx.NodeProto:
    return onnx.helper.make_node(op, reads, [out], name=f"{op}.{out}", keepdims=0)


def plain(op: str, reads: list[str], out: str) -> onnx.NodeProto:
    return onnx.helper.make_node(op, reads, [out], name=f"{op}.{out}")


CROSSED = [
    # The row axis of the maxima is aligned with the columns.
    [reduced("ReduceMax", ["x", "last"], "m"), plain("Sub", ["x", "m"], "y")],
    # The same through other operators; the column axis of the minima is aligned with the rows too.
    [
        reduced("ReduceMax", ["x", "last"], "m"),
        reduced("ReduceMin", ["x", "first"], "n"),
        plain("Mul", ["m", "n"], "p"),
        plain("Tanh", ["p"], "q"),
        plain("Add", ["q", "x"], "y"),
    ],
    # Two vectors are combined before each is combined with the matrix.
    [
        plain("Add", ["u", "v"], "a"),
        plain("Neg", ["x"], "z"),
        reduced("ReduceMax", ["z", "last"], "m"),
        plain("Mul", ["m", "u"], "b"),
        plain("Add", ["z", "v"], "c"),
        plain("Add", ["c", "b"], "d"),
        plain("Sub", ["d", "a"], "y"),
    ],
]


@pytest.mark.parametrize("planner", ["lpz", "first_arrival"])
@pytest.mark.parametrize("nodes", CROSSED)
@pytest.mark.parametrize("size", [5, 16])
def test_axes_of_a_square_that_would_lie_alike(nodes: Any, planner: str, size: int) -> None:
    shapes = {"x": (size, size), "u": (size,), "v": (size,)}
    read = {name for node in nodes for name in node.input}
    inputs = {n: RNG.standard_normal(s).astype(np.float32) for n, s in shapes.items() if n in read}
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [info(name, onnx.TensorProto.FLOAT, array.shape) for name, array in inputs.items()],
        [info("y", onnx.TensorProto.FLOAT, (size, size))],
        [onnx.numpy_helper.from_array(a, n) for n, a in AXIS.items() if n in read],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    model.ir_version = 10
    wanted = HostSession(model, "model").run(inputs)["y"]
    result, report = compiled(model, "mini", layout_planner=planner)
    assert report["host_fallback"] == []
    assert np.abs(run(result, inputs)["y"] - wanted).max() < 1e-5


def test_genes_name_the_product_further_down() -> None:
    result, _ = compiled(CHAIN, "mini")
    graph = parse_graph(result.dumps["layout.layout.txt"])
    first, second = (node.name for node in graph.nodes if node.op == "MatMul")
    genes = {name: graph.values[name].gene for name in ("x", "r", "w", "s", "v", "y")}
    assert genes == {
        "x": (first, "A"),
        "r": (first, "A"),
        "w": (first, "BT"),
        "s": (second, "A"),
        "v": (second, "BT"),
        "y": ("", ""),
    }
    assert f"gene=[{first},A]" in result.dumps["layout.layout.txt"]


def test_an_unknown_planner_is_refused() -> None:
    with pytest.raises(PycompilerError) as caught:
        compiled(CHAIN, "mini", layout_planner="z")
    assert caught.value.code == "P0702"
    assert "'lpz', 'first_arrival', 'lpz:rows'" in caught.value.help


@pytest.mark.parametrize("axis", [0, 1])
def test_whole_blocks_stay_on_their_units(axis: int) -> None:
    shape = (24, 4) if axis == 0 else (4, 24)
    parts = [f"p{n}" for n in range(3)]
    shapes = {"x": shape}
    model = model_of([("Relu", ["x"], "r")], shapes, ["r"])
    split = model.graph.node.add(op_type="Split", input=["r"], output=parts, name="split")
    for name, number in (("axis", axis), ("num_outputs", 3)):
        split.attribute.add(name=name, i=number, type=2)
    join = model.graph.node.add(op_type="Concat", input=parts[::-1], output=["y"], name="join")
    join.attribute.add(name="axis", i=axis, type=2)
    model.graph.output[0].CopyFrom(model.graph.input[0])
    model.graph.output[0].name = "y"
    result, report = compiled(model)
    assert report["host_fallback"] == []
    x = RNG.standard_normal(shape).astype(np.float32)
    wanted = HostSession(model, "model").run({"x": x})["y"]
    assert np.array_equal(run(result, {"x": x})["y"], wanted)
    graph = parse_graph(result.dumps["layout.layout.txt"])
    layout = graph.values[next(n for n in graph.nodes if n.op == "Split").inputs[0]].layout
    assert layout is not None
    # The eight elements of a part stay together: some of their digits need no address.
    assert any(sub.level is not Level.ADDR for sub in layout.axes[axis])
