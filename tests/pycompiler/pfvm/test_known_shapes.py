"""Static shapes that onnx's inference leaves open, although constants and results decide them."""

from __future__ import annotations

import onnx.parser
import pytest

from pycompiler.pfvm.host_groups import open_values
from pycompiler.pfvm.known_shapes import known_types
from pycompiler.pfvm.prepare import prepare

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
#: By name: a model, a value of it, its shape.
KNOWN = {
    "a MaxUnpool with a constant shape": (
        """g (float[1, 1, 1, 2] x, int64[1, 1, 1, 2] i) => (float[1, 1, 2, 3] y)
        <int64[4] shape = {1, 1, 2, 3}> {
            a = MaxUnpool <kernel_shape = [2, 2]> (x, i, shape)  y = Relu(a) }""",
        "a",
        (1, 1, 2, 3),
    ),
    "one name for one size, from a result": (
        """g (int64 n, float c) => (float[10] y)
        <int64 zero = {0}, int64 one = {1}, float half = {0.5}> {
            r = Range(zero, n, one)  f = Cast<to = 1>(r)  g = Mul(half, f)
            h = Cos(g)  k = Add(g, h)  l = Mul(k, c)  y = Cast<to = 1>(l) }""",
        "r",
        (10,),
    ),
    "ends of a Range that are lists of one number": (
        """g (float[6] x) => (float[6] y) <int64[1] n = {6}, int64 zero = {0}, int64 one = {1}> {
            r = Range(zero, n, one)  f = Cast<to = 1>(r)  y = Add(f, x) }""",
        "r",
        (6,),
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known(name: str) -> None:
    text, value, shape = KNOWN[name]
    model = onnx.parser.parse_model(HEAD + text)
    before = model.SerializeToString()
    made = prepare(model)
    assert known_types(made.graph)[value][1] == shape
    assert not open_values(made)
    assert model.SerializeToString() == before


def test_sizes_that_nothing_decides_stay_open() -> None:
    text = """g (int64 n, float[4] x) => (float[4] y) <int64 zero = {0}, int64 one = {1}> {
        r = Range(zero, n, one)  f = Cast<to = 1>(r)  s = ReduceSum(f)  y = Add(s, x) }"""
    assert open_values(prepare(onnx.parser.parse_model(HEAD + text))) == {"r", "f"}
