"""Last slices that are shorter than the others, along the contracted axis of a product."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, random_inputs, run, sampled

from pycompiler.errors import PycompilerError
from pycompiler.layers.split_concat import SPLIT
from pycompiler.tolerance import SUM, SUMS

TERMS = ((47, 3), (61, 4), (95, 3))


# The modes take turns: the other half runs in `make test-long`.
@pytest.mark.parametrize(
    ("k", "count", "mode"),
    [
        *sampled([(*terms, "float") for terms in TERMS]),
        *sampled([(*terms, "mixed") for terms in TERMS], first=1),
    ],
)
def test_terms_in_a_shorter_slice(k: int, count: int, mode: str) -> None:
    """A product clears what lies behind the last term of its last slice."""
    shapes = {"x": (70, k), "w": (k, 24)}
    model = model_of([("Reciprocal", ["x"], "a"), ("MatMul", ["a", "w"], "y")], shapes, ["y"])
    made = {n: np.abs(v) + 0.5 for n, v in random_inputs(shapes, k).items()}
    cut = {"x": {"time_slice": f"1:{count}"}}
    result, _ = compiled(model, float_dtype=mode, overrides=cut)
    assert {len(n.outputs) for n in result.graph.nodes if n.op == SPLIT} == {count}
    found, wanted = run(result, made)["y"], (1 / made["x"]) @ made["w"]
    bound = SUMS[{"float": "Float", "mixed": "Half"}[mode], SUM]
    assert np.abs(found - wanted).max() <= (k + 1) * bound * 2 * np.abs(made["w"]).max()


def test_slices_that_their_layout_pads_to_the_whole() -> None:
    """The layout of a contracted axis of 8 elements is padded to 8 even in slices of 2."""
    shapes = {"x": (1, 8), "w": (8, 2)}
    model = model_of([("MatMul", ["x", "w"], "y")], shapes, ["y"])
    with pytest.raises(PycompilerError) as caught:
        compiled(model, overrides={"x": {"time_slice": "1:4"}})
    assert caught.value.code == "P0306"
    assert "in its layout, axis 1 has no 4 slices" in caught.value.message


@pytest.mark.parametrize("count", [2, 4])
def test_slices_of_heads_are_slices_of_columns(count: int) -> None:
    """A cut of heads goes through the views that cut the columns and join them again."""
    heads, width, rows = 8, 8, 10
    rng = np.random.default_rng(count)
    inner, outer = (
        (rng.standard_normal(shape) / 4).astype(np.float32)
        for shape in ((16, heads * width), (heads * width, 12))
    )
    shapes = {"cut": np.array([rows, heads, width]), "join": np.array([rows, heads * width])}
    nodes = [("MatMul", ["x", "a"], "p"), ("Reshape", ["p", "cut"], "h"), ("Relu", ["h"], "r")]
    nodes += [("Reshape", ["r", "join"], "j"), ("MatMul", ["j", "b"], "y")]
    model = model_of(nodes, {"x": (rows, 16)}, ["y"], {"a": inner, "b": outer, **shapes})
    overrides = {"h": {"time_slice": f"1:{count}"}}
    result, _ = compiled(model, time_slice="fit", overrides=overrides)
    sizes = {value.name: value.shape for value in result.graph.values.values()}
    assert {shape for name, shape in sizes.items() if name.startswith("p.t")} == {
        (rows, heads // count * width)
    }
    x = rng.standard_normal((rows, 16)).astype(np.float32)
    wanted = np.maximum(x @ inner, 0) @ outer
    np.testing.assert_allclose(run(result, {"x": x})["y"], wanted, rtol=1e-4, atol=1e-4)


def test_slices_of_padding_where_nothing_else_helps() -> None:
    """Only the batch of 3 can be cut: both axes of the products are rows and columns of ``x``.

    The second of two slices is half padding. Nothing more than an eighth was allowed.
    """
    text = """<ir_version: 10, opset_import: ["": 20]>
        g (float[3, 100, 8] x) => (float[3, 100, 100] y) {
            t = Transpose <perm = [0, 2, 1]> (x)  s = MatMul (x, t)  y = Relu (s) }"""
    model = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text))
    result, _ = compiled(model, strict=True)
    inputs = random_inputs({"x": (3, 100, 8)}, 5)
    x = inputs["x"]
    wanted = np.maximum(x @ x.transpose(0, 2, 1), 0)
    bound = 8 * SUMS["Float", SUM] * np.abs(x).max() ** 2
    assert np.abs(run(result, inputs)["y"] - wanted).max() <= bound
