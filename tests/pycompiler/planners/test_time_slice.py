"""Time slices: values that exceed LM, the planner's decisions for them, and overrides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from compiling import LONG, Node, Shape, compiled, model_of, random_inputs, run, sampled

from pycompiler.errors import HostFallbackWarning, PycompilerError
from pycompiler.graph.graph import MNGraph
from pycompiler.graph.layout import Level
from pycompiler.graph.text import parse_graph, print_graph
from pycompiler.layers.split_concat import CONCAT, SPLIT
from pycompiler.layout_passes import LayoutPlans
from pycompiler.machine import load_target
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession
from pycompiler.pipeline import Compiled
from pycompiler.tolerance import FUNCTION, SUM, SUMS, bound

TARGET = load_target("mini")
#: The number of floats that fill one LM of every PE.
FULL = 2 * prod(TARGET.pe_shape) * TARGET.words("lm0")

Reference = Callable[[Mapping[str, torch.Tensor]], torch.Tensor]


def check(
    model: onnx.ModelProto,
    shapes: Mapping[str, Shape],
    want: Reference,
    seed: int,
    atol: float = 0.0,
    **options: Any,
) -> tuple[Compiled, dict[str, Any]]:
    """Compile, run, and compare with torch in double precision."""
    result, report = compiled(model, **options)
    assert report["host_fallback"] == []
    inputs = random_inputs(shapes, seed)
    found = run(result, inputs)["y"]
    wide = want({name: torch.from_numpy(array).double() for name, array in inputs.items()})
    rtol = bound("Float", FUNCTION, len(model.graph.node))
    np.testing.assert_allclose(found, wide.reshape(found.shape).numpy(), rtol, atol + 1e-37)
    return result, report


def slices_of(graph: MNGraph) -> int:
    return max((len({*n.inputs, *n.outputs}) - 1 for n in graph.nodes if n.op == SPLIT), default=1)


def rng_of(request: pytest.FixtureRequest) -> tuple[np.random.Generator, int]:
    seed = int(np.random.SeedSequence().entropy) % (1 << 32)  # type: ignore[arg-type]
    print(f"{request.node.name}: seed {seed}")
    return np.random.default_rng(seed), seed


def sum_bound(terms: int, *shapes: Shape, seed: int) -> float:
    """The bound of a sum of products of random inputs of these shapes."""
    inputs = random_inputs({str(n): shape for n, shape in enumerate(shapes)}, seed)
    largest = prod(float(np.abs(array).max()) for array in inputs.values())
    return terms * SUMS["Float", SUM] * largest


# -- elementwise -----------------------------------------------------------------------------


def test_random_chains(request: pytest.FixtureRequest) -> None:
    rng, seed = rng_of(request)
    for _ in range(2 if LONG else 1):
        size = int(rng.integers(FULL + 1, 2 * FULL))
        columns = int(rng.integers(1, 80))
        shape = (-(-size // columns), columns)
        model = model_of(
            [("Mul", ["x", "row"], "a"), ("Add", ["a", "column"], "b"), ("Abs", ["b"], "y")],
            {"x": shape, "row": (columns,), "column": (shape[0], 1)},
            ["y"],
        )
        shapes = {"x": shape, "row": (columns,), "column": (shape[0], 1)}
        print(shapes)

        def want(v: Mapping[str, torch.Tensor]) -> torch.Tensor:
            return (v["x"] * v["row"] + v["column"]).abs()

        # With opposite signs, the error of a sum depends on its larger term.
        result, _ = check(model, shapes, want, seed, atol=1e-2)
        assert slices_of(result.graph) > 1


@pytest.mark.long
def test_schedulers_give_the_same() -> None:
    shapes = {"x": (FULL + 5,), "z": (FULL + 5,)}
    nodes: list[Node] = [("Mul", ["x", "z"], "a"), ("Exp", ["z"], "b"), ("Max", ["a", "b"], "y")]
    model = model_of(nodes, shapes, ["y"])
    inputs = random_inputs(shapes, 5, 0.1)
    plans = LayoutPlans()
    schedulers = ("spill_opt", "always_from_dram", "reuse_consecutive")
    made = (compiled(model, plans=plans, scheduler=one)[0] for one in schedulers)
    first, *others = (run(one, inputs)["y"] for one in made)
    assert all(np.array_equal(other, first) for other in others)


def test_a_chain_reads_and_writes_each_element_once() -> None:
    nodes: list[Node] = [("Mul", ["x", "x"], "a"), ("Exp", ["x"], "b"), ("Add", ["a", "b"], "y")]
    _, report = compiled(model_of(nodes, {"x": (2 * FULL,)}, ["y"]))
    assert report["dram_words"] == {"read": FULL, "written": FULL}


def test_transfers_run_beside_the_operators() -> None:
    """The next slice is read while the current one is computed, so there are no long stalls."""
    nodes: list[Node] = [("Mul", ["x", "x"], "a"), ("Add", ["a", "x"], "y")]
    model = model_of(nodes, {"x": (FULL,)}, ["y"])
    _, report = compiled(model, fuse_elementwise=False)
    _, whole = compiled(model, time_slice="off", fuse_elementwise=False)
    stalls, before = (facts["cycles"] - TARGET.cycles * facts["steps"] for facts in (report, whole))
    assert stalls < before / 2


# -- reductions ------------------------------------------------------------------------------


def softmax(shape: Shape, axis: int) -> onnx.ModelProto:
    made = onnx.helper.make_node("Softmax", ["x"], ["y"], name="softmax", axis=axis)
    x, y = (onnx.helper.make_tensor_value_info(n, 1, shape) for n in "xy")
    graph = onnx.helper.make_graph([made], "g", [x], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    model.ir_version = 10
    return optimise(model)


@pytest.mark.parametrize(
    ("shape", "axis"),
    sampled([((700, 100), 1), ((130, 5, 80), 1), ((3, 17000), 1), ((20000, 3), 0)], 4, first=2),
)
def test_softmax(shape: Shape, axis: int) -> None:
    """Slices of rows, or slices of the reduced axis: three phases, the last of which is joined."""
    result, _ = check(softmax(shape, axis), {"x": shape}, lambda v: v["x"].softmax(axis), 7, 1e-6)
    assert slices_of(result.graph) > 1


@pytest.mark.parametrize("op", sampled(["ReduceSum", "ReduceMax", "ReduceMin"], every=3))
def test_reductions_over_everything(op: str, request: pytest.FixtureRequest) -> None:
    rng, seed = rng_of(request)
    shape = (int(rng.integers(300, 500)), int(rng.integers(FULL // 300, 2 * FULL // 300)))
    print(shape)
    reduce = {
        "ReduceSum": lambda v: v["x"].sum(),
        "ReduceMax": lambda v: v["x"].max(),
        "ReduceMin": lambda v: v["x"].min(),
    }[op]
    error = 0.0 if op != "ReduceSum" else sum_bound(prod(shape), shape, seed=seed)
    result, _ = check(
        model_of([(op, ["x"], "y")], {"x": shape}, ["y"]), {"x": shape}, reduce, seed, error
    )
    joins = {n.op for n in result.graph.nodes if ".join" in n.name} & {"Add", "Max", "Min"}
    assert not [n for n in result.graph.nodes if n.op == "MNCoreUpload" and n.outputs != ("y",)]
    assert joins == {{"ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}[op]}


def test_a_last_slice_of_one_element() -> None:
    """Its values have the layouts of whole slices; broadcast operands have no digits there."""
    shapes = {"x": (4, 9), "column": (4, 1), "row": (9,), "one": (1, 1)}
    nodes: list[Node] = [
        ("Mul", ["x", "column"], "a"),
        ("Add", ["row", "a"], "b"),
        ("Max", ["b", "one"], "c"),
        ("ReduceSum", ["c", "axes"], "d"),
        ("Add", ["d", "one"], "y"),
    ]

    def want(v: Mapping[str, torch.Tensor]) -> torch.Tensor:
        most = torch.maximum(v["x"] * v["column"] + v["row"], v["one"])
        return most.sum(1, keepdim=True) + v["one"]

    error = sum_bound(9, shapes["x"], shapes["column"], seed=23)
    model = model_of(nodes, shapes, ["y"], {"axes": np.array([1])})
    for options in ({}, {"scheduler": "always_from_dram"}):
        cut = {"x": {"time_slice": "1:5"}}
        result, _ = check(model, shapes, want, 23, error, overrides=cut, **options)
        assert slices_of(result.graph) == 5


@pytest.mark.long
def test_slices_that_fewer_units_share() -> None:
    """Half of a table's 4 * 625 rows lie on half the units, so a slice needs as much LM as all.

    A table that the device makes is compared with the index, place by place.
    """
    shapes = {"table": (2500, 16), "index": (8,)}
    types = {"table": onnx.TensorProto.FLOAT, "index": onnx.TensorProto.INT64}
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Neg", ["table"], ["made"], name="neg"),
            onnx.helper.make_node("Gather", ["made", "index"], ["y"], name="gather"),
        ],
        "g",
        [info(name, types[name], shape) for name, shape in shapes.items()],
        [info("y", onnx.TensorProto.FLOAT, (8, 16))],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    model.ir_version = 10
    result, report = compiled(model)
    assert report["host_fallback"] == []
    assert slices_of(result.graph) > 2
    inputs = random_inputs(shapes, 29)
    inputs["index"] = np.array([0, 2499, 1250, 1249, 7, 7, -1, 1999])
    assert np.array_equal(run(result, inputs)["y"], -inputs["table"][inputs["index"]])


# -- products --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "k", "n"), sampled([(64, 1024, 64), (1024, 64, 48), (40, 48, 2000), (150, 320, 72)], 4)
)
def test_products(m: int, k: int, n: int) -> None:
    shapes = {"x": (m, k), "w": (k, n)}
    error = sum_bound(k, *shapes.values(), seed=11)
    model = model_of([("MatMul", ["x", "w"], "y")], shapes, ["y"])
    result, _ = check(model, shapes, lambda v: v["x"] @ v["w"], 11, error)
    assert slices_of(result.graph) > 1


@pytest.mark.parametrize(
    ("left", "right", "most"),
    sampled([((24, 30, 120), (24, 120, 28), 17_500), ((150, 800), (800, 100), 95_000)], 2),
)
def test_slices_of_products_are_few_steps(left: Shape, right: Shape, most: int) -> None:
    """Slices that move the fewest words took 19,828 and 116,492 cycles.

    The sum of the slices before left LM at each join, and some slices used few units.
    """
    shapes = {"x": left, "w": right}
    error = sum_bound(left[-1], *shapes.values(), seed=12)
    model = model_of([("MatMul", ["x", "w"], "y")], shapes, ["y"])
    _, report = check(model, shapes, lambda v: v["x"] @ v["w"], 12, error, strict=True)
    assert report["cycles"] < most


def test_a_perceptron_over_a_large_batch() -> None:
    """The batch is cut through all layers; weights stay."""
    batch, sizes = 3000, (24, 32, 10)
    rng = np.random.default_rng(3)
    weights = {f"w{n}": rng.standard_normal(sizes[n : n + 2], np.float32) / 4 for n in range(2)}
    nodes: list[Node] = [
        ("MatMul", ["x", "w0"], "a"),
        ("Relu", ["a"], "b"),
        ("MatMul", ["b", "w1"], "y"),
    ]
    w = [torch.from_numpy(weights[f"w{n}"]).double() for n in range(2)]
    model = model_of(nodes, {"x": (batch, sizes[0])}, ["y"], weights)
    result, _ = check(
        model,
        {"x": (batch, sizes[0])},
        lambda v: (v["x"] @ w[0]).relu() @ w[1],
        13,
        sizes[1] * sum_bound(sizes[0], (batch, sizes[0]), seed=13),
    )
    assert slices_of(result.graph) > 1
    assert not [n for n in result.graph.nodes if n.op == "MNCoreUpload" and "a.t" in n.inputs[0]]


# -- what the user sees ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "width", "hidden", "mode", "most"),
    sampled(
        [(32, 96, 384, "float", 12), (48, 64, 1024, "float", 16), (64, 128, 512, "mixed", 8)], 3
    ),
)
def test_cuts_begin_where_a_node_needs_too_much(
    rows: int, width: int, hidden: int, mode: str, most: int
) -> None:
    """The layouts of these values cannot even be switched without slices."""
    rng = np.random.default_rng(3)
    constants = {
        name: (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        for name, shape in (("u", (width, hidden)), ("d", (hidden, width)))
    }
    nodes = [("MatMul", ["x", "u"], "a"), ("Relu", ["a"], "r")]
    nodes += [("MatMul", ["r", "d"], "m"), ("Add", ["m", "x"], "y")]
    shapes = {"x": (1, rows, width)}
    model = model_of(nodes, shapes, ["y"], constants)
    result, report = compiled(model, float_dtype=mode)
    assert report["host_fallback"] == []
    assert max(row["slices"] for row in report["nodes"]) <= most
    inputs = random_inputs(shapes, 4)
    wanted = HostSession(model, "model").run(inputs)["y"]
    error = np.abs(run(result, inputs)["y"] - wanted).max() / np.abs(wanted).max()
    assert error <= (0.02 if mode == "mixed" else 1e-5)


def test_the_dump_shows_whole_values_with_time_digits() -> None:
    model = model_of([("Exp", ["x"], "y")], {"x": (2 * FULL,)}, ["y"])
    result, _ = compiled(model)
    text = result.dumps["layout.time_slice.txt"]
    graph = parse_graph(text)
    assert print_graph(graph) == text
    (node,) = graph.nodes
    for name in (*node.inputs, *node.outputs):
        layout = graph.values[name].layout
        assert layout is not None
        assert layout.axes[0][0].level is Level.TIME
        assert layout.slices == slices_of(result.graph)
        assert graph.values[name].shape == (2 * FULL,)
    assert {n.op for n in result.graph.nodes} >= {SPLIT, CONCAT}


def test_slices_of_a_node_share_a_row_of_the_report() -> None:
    model = model_of([("Exp", ["x"], "a"), ("ReduceSum", ["a"], "y")], {"x": (2 * FULL,)}, ["y"])
    result, report = compiled(model)
    rows = {row["op"]: row for row in report["nodes"]}
    count = slices_of(result.graph)
    assert rows["Exp"]["slices"] == rows["ReduceSum"]["slices"] == count
    assert rows["Add"]["slices"] == count - 1
    assert sum(row["steps"] for row in report["nodes"]) == report["steps"]
    for direction, words in report["dram_words"].items():
        assert sum(row["dram_words"][direction] for row in report["nodes"]) == words


def test_overrides_say_where_to_cut() -> None:
    shape = (96, 64)
    model = model_of([("Mul", ["x", "x"], "y")], {"x": shape}, ["y"])
    for override in (
        {"time_slice": "0:3"},
        {"time_slice": "1:4, 0:2"},
        {"layout": "((6_Time:1, 16:1), (2:16, 4_PE:1, 4_MAB:1, 2_W:1))"},
    ):
        result, _ = check(
            model, {"x": shape}, lambda v: v["x"] * v["x"], 17, overrides={"y": override}
        )
        assert slices_of(result.graph) == {"0:3": 3, "1:4, 0:2": 8}.get(
            override.get("time_slice", ""), 6
        )


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ({"time_slice": "2:3"}, "no axis 2"),
        ({"time_slice": "0"}, "is not axis:count"),
        ({"time_slice": "0:97"}, "has no 97 slices"),
        ({"layout": "((16:1, 6_Time:1), (64:16))"}, "not its uppermost"),
    ],
)
def test_overrides_that_cannot_be_followed(override: Mapping[str, str], reason: str) -> None:
    model = model_of([("Mul", ["x", "x"], "y")], {"x": (96, 64)}, ["y"])
    with pytest.raises(PycompilerError) as caught:
        compiled(model, overrides={"x": dict(override)})
    assert caught.value.code == "P0306"
    assert reason in caught.value.message


def test_a_product_of_a_shorter_slice() -> None:
    """Slices of 5 are padded to 8, so the last slice of a sum has 2 elements."""
    shapes = {"x": (4, 10, 3), "w": (3, 8)}
    axes = {"axes": np.array([1])}
    model = model_of(
        [("MatMul", ["x", "w"], "a"), ("ReduceSum", ["a", "axes"], "y")], shapes, ["y"], axes
    )
    error = 30 * sum_bound(3, *shapes.values(), seed=31)
    for count in (2, 5):
        cut = {"x": {"time_slice": f"1:{count}"}}
        result, _ = check(
            model,
            shapes,
            lambda v: (v["x"] @ v["w"]).sum(1, keepdim=True),
            31,
            error,
            overrides=cut,
        )
        assert slices_of(result.graph) == count


@pytest.mark.parametrize("op", ["Gather", "GatherElements"])
def test_what_cannot_be_cut_runs_on_the_host(op: str) -> None:
    """Elements that come from all over an axis need the whole axis.

    To compare each place with all others would take more elements than a value may have.
    """
    order = np.random.default_rng(3).permutation(FULL + 1)
    model = model_of([(op, ["x", "i"], "y")], {"x": (FULL + 1,)}, ["y"], {"i": order})
    with pytest.warns(HostFallbackWarning):
        result, report = compiled(model)
    (row,) = report["host_fallback"]
    assert row["reason"] in ("its tensors do not fit local memory", f"no layer for {op}")
    x = np.arange(FULL + 1, dtype=np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})["y"], x[order])
    wishes = [{"strict": True}, *([{"time_slice": "off"}] if op == "Gather" else [])]
    for wish in wishes:
        with pytest.raises(PycompilerError) as caught:
            compiled(model, **wish)
        assert caught.value.code == ("P0301" if op == "Gather" else "P0303")


def test_two_nodes_that_are_as_much_too_large() -> None:
    """A cut for one of them helps, although the other is then as much too large as before."""
    shapes = {"a": (5, 1024), "v": (1024, 64), "b": (5, 1024), "w": (1024, 64)}
    model = model_of([("MatMul", ["a", "v"], "p"), ("MatMul", ["b", "w"], "q")], shapes, ["p", "q"])
    given = random_inputs(shapes, 6, scale=0.01)
    result, _ = compiled(model)
    found = run(result, given)
    for name, one, other in (("p", "a", "v"), ("q", "b", "w")):
        wanted = given[one].astype(np.float64) @ given[other]
        terms = np.abs(given[one]).astype(np.float64) @ np.abs(given[other])
        assert (np.abs(found[name] - wanted) <= terms * 2.0**-20).all()
