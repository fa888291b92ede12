"""Which axis the time-slice planner cuts first: the one that the fewest values share."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, random_inputs, run, sampled

from pycompiler.graph.layout import Level
from pycompiler.graph.text import parse_graph
from pycompiler.pfvm.session import HostSession
from pycompiler.planners.time_slices import cuts, planner
from pycompiler.planners.time_slices.product_tiles import best_tiles

BATCH = CHANNELS = 512
#: Matrices that take more of LM1 than the next one leaves.
MATRICES = {"w": (96, 256), "v": (256, 96)}
LAYERS = 8


def network(chain: tuple[int, int]) -> onnx.ModelProto:
    """Return a long chain on a vector of the shape ``chain``, and an Add of it to a large matrix.

    The matrix does not fit LM. All values of the chain have the vector's axis.
    """
    names = ["v", *(f"v{layer}" for layer in range(LAYERS))]
    nodes = [
        ("Relu" if layer % 2 else "Neg", [names[layer]], names[layer + 1])
        for layer in range(LAYERS)
    ]
    nodes += [("Add", ["x", names[-1]], "y"), ("Mul", ["y", "x"], "z")]
    return model_of(nodes, {"x": (BATCH, CHANNELS), "v": chain}, ["z"])


@pytest.mark.parametrize(("chain", "cut"), sampled([((BATCH, 1), 1), ((1, CHANNELS), 0)]))
def test_the_axis_that_the_fewest_values_share_is_cut(chain: tuple[int, int], cut: int) -> None:
    """A cut of the chain's axis would cut every value of the chain into small slices.

    Without the rank of classes by their members, the planner takes that axis: a node's values have
    more long words along it, because the vector counts too.
    """
    model = network(chain)
    result, _ = compiled(model, time_slice="fit")
    graph = parse_graph(result.dumps["layout.time_slice.txt"])
    sliced = {
        (name, axis)
        for name, value in graph.values.items()
        if value.layout is not None
        for axis, subs in enumerate(value.layout.axes)
        if any(sub.level is Level.TIME for sub in subs)
    }
    assert {axis for _, axis in sliced} == {cut}
    assert {name for name, _ in sliced} >= {"x", "z"}
    assert not {name for name, _ in sliced if name.startswith("v")}
    inputs = random_inputs({"x": (BATCH, CHANNELS), "v": chain}, seed=1)
    wanted = HostSession(model, "model").run(inputs)["z"]
    np.testing.assert_allclose(run(result, inputs)["z"], wanted, rtol=1e-5)


def test_a_product_cuts_what_many_values_share_only_if_it_must(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cut of the batch changes a whole network: ResNet-50 at batch 16 took twice the cycles."""
    names = ["x", *(f"v{number}" for number in range(LAYERS))]
    nodes = [("Softmax", [one], other) for one, other in pairwise(names)]
    nodes += [("MatMul", [names[-1], "w"], "y")]
    model = model_of(nodes, {"x": (64, 96)}, ["y"], {"w": np.ones((96, 1500), np.float32)})
    offers: list[set[tuple[str, int]]] = []

    def noted(node: Any, graph: Any, target: Any, choices: Any, fraction: float) -> Any:
        offers.append({axis for _, cut, _ in choices for axis in cut.axes})
        return best_tiles(node, graph, target, choices, fraction)

    monkeypatch.setattr(cuts, "best_tiles", noted)
    compiled(model, time_slice="fit")
    columns = [offer for offer in offers if any(name == "w" for name, _ in offer)]
    assert all(number == 1 for _, number in columns[0])


def test_sizes_that_layouts_undo_are_not_asked_for_again() -> None:
    """The layouts of a matrix in DRAM pad some slices to the whole axis, or to illegal lengths.

    The search asked for the same sizes round after round, and ended with P0305.
    """
    width, hidden, rows = 171, 684, (3, 31)
    rng = np.random.default_rng(2)
    inner = (rng.standard_normal((width, hidden)) / width**0.5).astype(np.float32)
    outer = (rng.standard_normal((hidden, width)) / hidden**0.5).astype(np.float32)
    constants = {"a": inner, "b": outer, "c": np.ones(hidden, np.float32) / 8}
    nodes = [("MatMul", ["x", "a"], "h"), ("Add", ["h", "c"], "i"), ("Relu", ["i"], "r")]
    nodes += [("MatMul", ["r", "b"], "m"), ("Add", ["x", "m"], "y")]
    model = model_of(nodes, {"x": (*rows, width)}, ["y"], constants)
    options = {"layout_planner": "first_arrival", "emit": "concat", "float_dtype": "mixed"}
    result, _ = compiled(model, strict=True, **options)
    x = rng.standard_normal((*rows, width)).astype(np.float32)
    wanted = x + np.maximum(x @ inner + constants["c"], 0) @ outer
    np.testing.assert_allclose(run(result, {"x": x})["y"], wanted, atol=0.05)


@pytest.mark.long
def test_wide_values_are_cut_for_speed() -> None:
    """The scores of 499 tokens fill an LM; operators on them leave no room for anything else."""
    text = """<ir_version: 10, opset_import: ["": 20]>
        g (float[4, 12, 499, 10] x) => (float[4, 12, 499, 10] y) {
            t = Transpose <perm = [0, 1, 3, 2]> (x)  s = MatMul (x, t)
            e = Exp (s)  y = MatMul (e, x) }"""
    model = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text))
    options = {"float_dtype": "mixed", "strict": True}
    sliced, whole = (compiled(model, "mncore2", time_slice=m, **options) for m in ("auto", "fit"))
    assert sliced[1]["cycles"] < whole[1]["cycles"] / 2
    inputs = random_inputs({"x": (4, 12, 499, 10)}, seed=1)
    found, wanted = (run(one[0], inputs, "mncore2")["y"] for one in (sliced, whole))
    assert np.abs(found - wanted).max() <= 5e-3 * np.abs(wanted).max()


@pytest.mark.long
def test_cuts_of_matrices_are_tried_only_where_they_may_gain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To try a cut takes as long as to plan the layouts of the whole graph."""
    rng = np.random.default_rng(1)
    weights = {n: rng.standard_normal(s).astype(np.float32) for n, s in MATRICES.items()}
    nodes = [("MatMul", ["x", "w"], "a"), ("Relu", ["a"], "b"), ("MatMul", ["b", "v"], "y")]
    model = model_of(nodes, {"x": (64, 96)}, ["y"], weights)
    asked: list[bool] = []
    may_gain = planner._Search._may_gain

    def noted(cuts: Any, found: Any, classes: Any) -> bool:
        asked.append(may_gain(cuts, found, classes))
        return asked[-1]

    monkeypatch.setattr(planner._Search, "_may_gain", noted)
    for worth in (0.0, 1.1):
        monkeypatch.setattr(planner, "_WORTH", worth)
        asked.clear()
        compiled(model)
        assert asked
        assert set(asked) == {worth == 0.0}
