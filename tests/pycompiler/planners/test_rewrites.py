"""Each rewrite of the graph alone keeps the values of drawn graphs that have its pattern."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, run, sampled, tried
from gradient_models import gradient_model, wanted_gradient
from net import Net

from pycompiler.errors import PycompilerError
from pycompiler.graph.draft import Edit
from pycompiler.graph.graph import MNGraph, MNNode, MNValue, TensorType
from pycompiler.graph.rewrite import Facts, FlowRewrite, Pattern, Rewrite, rewritten
from pycompiler.graph.verify import STRUCTURE
from pycompiler.layers.switch.layer import SWITCH
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pfvm.session import HostSession
from pycompiler.planners import saved_halves, saved_signs
from pycompiler.planners.rewrites import REWRITES
from pycompiler.rewriting.document import PAGE, page

#: What one rewrite of a chain of operators may round, beside the reference: two roundings.
ULPS = 2.0**-22
Data = Mapping[str, np.ndarray]
Drawn = tuple[onnx.ModelProto, Data]


@dataclass(frozen=True)
class Case:
    """How graphs with the pattern of a rewrite are drawn.

    The rewrites ``beside`` run too, because they make the pattern. Results differ from those
    without the rewrite by at most ``error``, as a fraction of the largest element.
    """

    draw: Callable[[random.Random], Drawn]
    beside: tuple[str, ...] = ()
    error: float = 0.0
    machine: str = "mini"
    float_dtype: str = "float"


def _data(net: Net, *, whole: bool = False) -> Data:
    """Draw the inputs; ``whole`` numbers have exact sums, in whatever order they are added."""
    draw = net.draw
    return {
        name: (draw.integers(-3, 4, shape) if whole else draw.standard_normal(shape)).astype("f")
        for name, shape in net.inputs.items()
    }


def _shape(rng: random.Random) -> tuple[int, ...]:
    return (rng.randrange(2, 9), rng.choice([5, 16, 33, 64, 100]))


def _cropped(rng: random.Random) -> Drawn:
    rows, columns = rng.randrange(5, 40), rng.randrange(9, 90)
    net = Net(rng, rows, columns)
    kept = net.cut("x", 0, columns - rng.randrange(1, columns // 4), 1)
    if rng.random() < 0.5:
        kept = net.cut(kept, 0, rows - 1, 0)
    return net.model([net.put("Neg", kept)]), _data(net)


def _root(rng: random.Random) -> Drawn:
    net = Net(rng, *_shape(rng))
    positive = net.put("Add", net.put("Abs", "x"), net.number(0.1))
    return net.model([net.put("Reciprocal", net.put("Sqrt", positive))]), _data(net)


def _mean(rng: random.Random) -> Drawn:
    net = Net(rng, *_shape(rng))
    factor = net.array(np.array(1 / rng.choice([3, 7, 49, 197])), np.float64)
    wide = net.put("Mul", net.put("Cast", "x", to=onnx.TensorProto.DOUBLE), factor)
    return net.model([net.put("Cast", wide, to=onnx.TensorProto.FLOAT)]), _data(net)


def _variance(rng: random.Random) -> Drawn:
    channels, sizes = rng.choice([16, 32, 48]), [rng.randrange(2, 9) for _ in range(2)]
    net = Net(rng, rng.randrange(1, 5), channels, *sizes)
    made = net.put("Conv", "x", net.weights(16, channels, 1, 1), kernel_shape=[1, 1])
    count = net.number(1 / (net.inputs["x"][0] * prod(sizes)))
    total = net.put("ReduceSum", made, net.ints(0, 2, 3), keepdims=1)
    apart = net.put("Sub", made, net.put("Mul", total, count))
    squares = net.put("Mul", apart, apart)
    total = net.put("ReduceSum", squares, net.ints(0, 2, 3), keepdims=1)
    return net.model([net.put("Sqrt", total)]), _data(net)


def _convolutions(rng: random.Random) -> Drawn:
    channels = rng.choice([16, 32])
    net = Net(rng, 2, channels, 16, rng.choice([16, 24]))
    net_weights = [net.array(net.draw.integers(-1, 2, (channels, channels, 1, 1))) for _ in "ab"]
    made = net.put("Relu", net.put("Conv", "x", net_weights[0], kernel_shape=[1, 1]))
    return net.model([net.put("Conv", made, net_weights[1], kernel_shape=[1, 1])]), _data(
        net, whole=True
    )


def _factors(rng: random.Random) -> Drawn:
    terms, columns = rng.choice([32, 48, 64]), rng.choice([16, 40])
    net = Net(rng, rng.choice([64, 96]), terms)
    weights = net.array(net.draw.integers(-2, 3, (terms, columns)))
    made = net.put("Neg", "x") if rng.random() < 0.5 else net.put("Relu", "x")
    return net.model([net.put("MatMul", made, weights)]), _data(net, whole=True)


def _short(rng: random.Random) -> Drawn:
    shapes = {"a": (rng.choice([33, 64]), 48), "b": (48, rng.choice([40, 64]))}
    draw = np.random.default_rng(rng.randrange(2**32))
    model = model_of([("MatMul", ["a", "b"], "y")], shapes, ["y"], elem=onnx.TensorProto.FLOAT16)
    return model, {n: draw.standard_normal(s).astype(np.float16) for n, s in shapes.items()}


def _signs(rng: random.Random) -> Drawn:
    terms = 32
    rows = 2 * prod(load_target("mini").pe_shape) // terms * rng.randrange(1, 4)
    net = Net(rng, rows, terms)
    weights = [net.array(net.draw.integers(-1, 2, (terms, terms))) for _ in "abc"]
    p = net.put("Relu", net.put("MatMul", "x", weights[0]))
    q = net.put("Abs", net.put("MatMul", p, weights[1]))
    for _ in range(rng.randrange(1, 4)):
        q = net.put("Neg", q)
    zero = net.array(np.zeros((), np.float32))
    masked = net.put("Where", net.put("Greater", p, zero), q, zero)
    return net.model([net.put("Add", net.put("MatMul", p, weights[2]), masked)]), _data(
        net, whole=True
    )


def _late_factor(rng: random.Random) -> Drawn:
    net = Net(rng, 2, 16, 16, 16)
    weights = [net.array(net.draw.standard_normal((16, 16, 3, 3)) / 12) for _ in "ab"]
    facts = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    made = net.put("Relu", net.put("Conv", "x", weights[0], **facts))
    apart = net.put("Sub", made, net.number(rng.random()))
    other = net.put("Conv", net.put("Tanh", apart), weights[1], **facts)
    return net.model([net.put("Mul", other, apart)]), _data(net)


def _elementwise(rng: random.Random) -> Drawn:
    net = Net(rng, *_shape(rng))
    value = "x"
    for _ in range(rng.randrange(2, 6)):
        op = rng.choice(["Add", "Sub", "Mul", "Neg", "Relu", "Min", "Max"])
        other = rng.choice([net.number(rng.uniform(-2, 2)), net.weights(net.inputs["x"][1])])
        value = net.put(op, value, *([] if op in ("Neg", "Relu") else [other]))
    return net.model([value]), _data(net)


def _products(rng: random.Random) -> Drawn:
    net = Net(rng, rng.randrange(7, 12), _shape(rng)[1])
    product = net.put("Mul", "x", net.input(*net.inputs["x"]))
    return net.model([net.put("ReduceSum", product, net.ints(1), keepdims=0)]), _data(
        net, whole=True
    )


def _copies(rng: random.Random) -> Drawn:
    net = Net(rng, 4, 6500 + rng.randrange(9))
    pads = net.ints(1, rng.randrange(1, 4), rng.randrange(1, 3), 1)
    return net.model([net.put("Pad", "x", pads)]), _data(net)


def _stencil(rng: random.Random) -> Drawn:
    rows, columns = rng.randrange(9, 40), rng.randrange(9, 40)
    net = Net(rng, rows, columns)
    shifted = [net.cut("x", start, rows - 2 + start, 0) for start in (0, 1, 2)]
    total = net.put("Add", net.put("Add", *shifted[:2]), shifted[2])
    if rng.random() < 0.5:
        total = net.put("Pad", total, net.ints(1, 0, 1, 0))
    return net.model([total]), _data(net)


CASES = {
    "tile_stencils": Case(_stencil, machine="mncore2"),
    "crop_slices": Case(_cropped),
    "reciprocal_root": Case(_root, error=ULPS),
    "mean_in_singles": Case(_mean, error=2.0**-24),
    "part_variances": Case(_variance, error=2.0**-9, float_dtype="mixed"),
    "store_halves": Case(_convolutions, error=2.0**-9, float_dtype="mixed"),
    "round_factors": Case(_factors, float_dtype="mixed"),
    "round_results": Case(_short, error=2.0**-9, float_dtype="mixed"),
    "signs_of_halves": Case(_signs, ("round_factors",), float_dtype="mixed"),
    "keep_factors_as_halves": Case(
        _late_factor, ("store_halves",), error=2.0**-9, float_dtype="mixed"
    ),
    "fuse_elementwise": Case(_elementwise, error=ULPS),
    "sum_products": Case(_products),
    "join_recuts": Case(_copies),
}


def test_every_rewrite_has_a_case() -> None:
    assert {row.name for row in REWRITES if not row.needed} == set(CASES)
    assert {row.name for row in REWRITES if not row.rounding and not row.needed} == {
        *("tile_stencils", "crop_slices", "round_factors", "join_recuts")
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(tried(2, 30)))
@pytest.mark.parametrize("name", CASES)
def test_alone(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fires, and results are those without it and near those of another library."""
    case, seed = CASES[name], random.randrange(10**6)
    print(f"{seed=} {number=}")
    for module in (saved_signs, saved_halves):
        monkeypatch.setattr(module, "_FULL", 0.0)
    model, data = case.draw(random.Random(seed))
    results = []
    for kept in (case.beside, (*case.beside, name)):
        skipped = ",".join(sorted(set(CASES) - set(kept)))
        options = {"float_dtype": case.float_dtype, "compare_float": False}
        result, report = compiled(model, case.machine, skip_rewrites=skipped, **options)
        fired = {one for row in report["passes"] for one in row.get("rewrites", {})}
        assert (name in fired) == (name in kept)
        assert fired <= {*kept, *NEEDED}
        results.append(run(result, data, case.machine))
    plain, found = results
    with np.errstate(all="ignore"):
        wanted = HostSession(model, "model").run(data)
    for key, value in found.items():
        if case.error == 0:
            assert value.tobytes() == plain[key].tobytes()
        scale = float(np.abs(plain[key].astype(np.float64)).max())
        apart = np.abs(value.astype(np.float64) - plain[key].astype(np.float64)).max()
        assert apart <= case.error * scale
        # Products in half: the relative error of each factor is 2^-10.
        bound = 2.0**-6 if case.float_dtype == "mixed" else 2.0**-20
        assert np.abs(value.astype(np.float64) - wanted[key]).max() <= bound * scale


#: Rewrites that code needs.
NEEDED = "part_sums", "sum_in_dram", "cross_in_dram", "round_depthwise"


@pytest.mark.parametrize("emit", ["concat", "l1merge"])
def test_cross_in_dram(emit: str) -> None:
    """What crosses L2Bs goes through PDMs and DRAMs: the elements are those of numpy."""
    x = np.random.default_rng(3).standard_normal((56, 330, 9)).astype(np.float32)
    nodes = [("Softmax", ["x"], "s"), ("Transpose", ["s"], "t"), ("Softmax", ["t"], "y")]
    model = model_of(nodes, {"x": x.shape}, ["s", "t", "y"])
    result, report = compiled(model, "mncore2", emit=emit)
    assert any("cross_in_dram" in row.get("rewrites", {}) for row in report["passes"])
    switches = [row["dram_words"] for row in report["nodes"] if row["op"] == SWITCH]
    assert any(words["read"] == words["written"] > 0 for words in switches)
    found = run(result, {"x": x}, "mncore2")
    assert np.array_equal(found["t"], found["s"].transpose(2, 1, 0))


@pytest.mark.parametrize("rows", [24, 40])
def test_sum_in_dram(rows: int) -> None:
    """The sums of a product over groups go through the DRAMs: they are those of numpy."""
    draw = np.random.default_rng(rows)
    shapes = {"x": (rows, 256), "v": (256, 1024), "w": (1024, 256)}
    data = {n: draw.integers(-2, 3, shape).astype(np.float32) for n, shape in shapes.items()}
    fixed = {n: data[n] for n in ("v", "w")}
    nodes = [("MatMul", ["x", "v"], "h"), ("Relu", ["h"], "r"), ("MatMul", ["r", "w"], "y")]
    model = model_of(nodes, {"x": shapes["x"]}, ["y"], fixed)
    result, report = compiled(model, "mncore2")
    assert any("sum_in_dram" in row.get("rewrites", {}) for row in report["passes"])
    found = run(result, {"x": data["x"]}, "mncore2")["y"]
    assert np.array_equal(found, np.maximum(data["x"] @ data["v"], 0) @ data["w"])


@pytest.mark.parametrize("outs", sampled([16, 23, 32], every=3))
def test_part_sums(outs: int) -> None:
    """It cannot be left out: results are those of a formula."""
    case = (32, 16, outs, (8, 8), (3, 3), 1, 1, 1)
    model, shapes = gradient_model(case)
    draw = np.random.default_rng(outs)
    data = {n: draw.integers(-2, 3, shape).astype(np.float32) for n, shape in shapes.items()}
    result, report = compiled(model, "mncore2", float_dtype="mixed")
    assert any("part_sums" in row.get("rewrites", {}) for row in report["passes"])
    found = run(result, data, "mncore2")["y"]
    assert np.array_equal(found, wanted_gradient(data["x"], data["g"], case).astype(np.float32))
    with pytest.raises(PycompilerError) as caught:
        parse_options({"skip_rewrites": "part_sums"})
    assert caught.value.code == "P0702"


# -- the driver ------------------------------------------------------------------------------


def _chain(length: int) -> MNGraph:
    names = [f"v{number}" for number in range(length + 1)]
    nodes = tuple(
        MNNode(f"n{number}", "Neg", (one,), (other,), segment=0)
        for number, (one, other) in enumerate(pairwise(names))
    )
    values = {name: MNValue(name, TensorType("float", (4,))) for name in names}
    return MNGraph(
        "g", "mini", inputs=("v0",), outputs=(("y", names[-1]),), nodes=nodes, values=values
    )


FACTS = Facts(load_target("mini"))
NEGS = Pattern(frozenset({"Neg"}), (Pattern(frozenset({"Neg"})),))


def _twice(nodes: object, part: object) -> Edit | None:
    """Leave both out: -(-x) is x; the result keeps its name."""
    last, first = nodes  # type: ignore[misc]
    copy = MNNode(last.name, "Identity", first.inputs, last.outputs, segment=0)
    return Edit(gone={first.name}, instead={last.name: copy})


@pytest.mark.parametrize("length", [1, 2, 5, 64])
def test_a_pattern_is_rewritten_until_nothing_matches(length: int) -> None:
    told: list[int] = []
    rows = (Rewrite("negs", "", NEGS, _twice),)
    graph = _chain(length)
    found = rewritten(graph, rows, FACTS, STRUCTURE, lambda row, count, made: told.append(count))
    assert sum(node.op == "Neg" for node in found.nodes) == length % 2
    assert told == ([length // 2] if length > 1 else [])
    assert found is graph or length > 1


def test_values_that_stay_and_operators_apart_match_nothing() -> None:
    graph, rows = _chain(2), (Rewrite("negs", "", NEGS, _twice),)
    for facts in ({"exact": ("v1",)}, {"apart": ("Neg",)}, {"skipped": ("negs",)}):
        assert rewritten(graph, rows, Facts(FACTS.target, **facts), STRUCTURE) is graph  # type: ignore[arg-type]


def test_a_rewrite_that_never_ends_is_named() -> None:
    one = Pattern(frozenset({"Neg"}))
    rows = (Rewrite("again", "", one, lambda nodes, part: Edit(instead={nodes[0].name: nodes[0]})),)
    with pytest.raises(PycompilerError) as caught:
        rewritten(_chain(3), rows, FACTS, STRUCTURE)
    assert caught.value.code == "P0204"
    assert "again" in caught.value.message


def test_a_rewrite_that_breaks_the_graph_is_found() -> None:
    rows = (FlowRewrite("broken", "", lambda graph, facts: [Edit(gone={"n0"})]),)
    with pytest.raises(PycompilerError) as caught:
        rewritten(_chain(3), rows, FACTS, STRUCTURE)
    assert caught.value.code == "P0204"


def test_the_page_lists_all() -> None:
    assert PAGE.read_text() == page(), "stale: run `make manual`"
