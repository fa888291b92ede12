"""Partitions: the pieces of drawn and chosen graphs, their results, their costs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from math import inf
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from compiling import model_of, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import random_model

import pycompiler
from pycompiler.errors import PycompilerError
from pycompiler.graph.stages import stages
from pycompiler.model_commands import commands
from pycompiler.partitioning import Costs, Partition, Row, SupportTable, Unit

ALL = SupportTable(
    [Row(op) for op in ("Add", "Mul", "Sub", "Relu", "Neg", "Identity")], "the test chip"
)


def cut(model: onnx.ModelProto, support: object = ALL, **arguments: object) -> Partition:
    """Return a partition that keeps all pieces and compiles none."""
    facts = {"threshold": inf, "simulate": False, **arguments}
    return pycompiler.partition(model, "emu2:mini", support=support, **facts)


def results(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, dict(inputs))


def check(found: Partition, model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> None:
    """Compare the model of functions with the whole model, and look for a cycle."""
    onnx.checker.check_model(found.model, full_check=True)
    known = {value.name for value in model.graph.input}
    for before, piece in zip([None, *found.pieces], found.pieces, strict=False):
        assert set(piece.inputs) <= known, "a piece reads what a later piece makes"
        assert before is None or before.on_device is not piece.on_device
        known |= set(piece.outputs)
        onnx.checker.check_model(found.piece_model(piece), full_check=True)
    numbers = [number for piece in found.pieces for number in piece.numbers]
    assert sorted(numbers) == list(range(len(found.source.nodes)))
    for mine, own in zip(results(found.model, inputs), results(model, inputs), strict=True):
        assert mine.dtype == own.dtype
        np.testing.assert_allclose(mine, own, rtol=1e-5, atol=1e-6)


class Drawn:
    """Takes units by lot, as some chip might."""

    def __init__(self, rng: random.Random):
        self.rng, self.share = rng, rng.random()

    def reason(self, unit: Unit) -> str | None:
        return None if self.rng.random() < self.share else "the lot fell on the host"


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(60))
def test_drawn_graphs_and_tables(seed: int) -> None:
    rng = random.Random(seed)
    model, inputs = random_model(rng)
    found = cut(model, Drawn(rng))
    check(found, model, inputs)
    sides = {n: p.on_device for p in found.pieces for unit in p.units for n in unit.numbers}
    runs = [longest(n, sides, found) for n in sides]
    assert sum(piece.on_device for piece in found.pieces) == max(runs, default=0)


def longest(number: int, sides: Mapping[int, bool], found: Partition) -> int:
    """Return the most runs on the device along a way that ends at a node: no order has fewer."""
    most = 0
    for other in found.source.before(number):
        new_run = sides[number] and not sides[other]
        most = max(most, longest(other, sides, found) + new_run)
    return max(most, int(sides[number]))


# d: on the device, h: on the host; after the colon, the units that it reads
@pytest.mark.parametrize(
    ("graph", "wanted"),
    [
        ("d h:0 d:1", [0, 1, 2]),
        ("d h:0 d:0,1", [0, 1, 2]),  # a diamond with the host in one branch
        ("d h:0 d:0 d:1,2", [0, 1, 0, 2]),  # the other branch joins the first piece
        ("d d:0 h:0 d:2", [0, 0, 1, 2]),  # a side branch
        ("h d:0 d", [0, 1, 1]),  # work that waits for nothing joins the only piece
        ("d h h:0", [0, 1, 1]),
        ("h d h:1", [1, 0, 1]),
        ("d d", [0, 0]),
        ("", []),
        ("d h:0 d:1 h d:3", [0, 1, 2, 1, 2]),
    ],
)
def test_stages(graph: str, wanted: list[int]) -> None:
    parts = [text.partition(":") for text in graph.split()]
    before = [[int(n) for n in reads.split(",") if n] for _, _, reads in parts]
    found = stages([side == "d" for side, _, _ in parts], before)
    assert found == wanted


IF = """<ir_version: 10, opset_import: ["": 20]> g (float[3] x, bool c) => (float[3] y)
<float[1] k = {2.0}> {
    a = Add(x, k)
    b = If (c) <
        then_branch = t () => (float[3] p) { p = Sin(a) },
        else_branch = e () => (float[3] q) { q = Mul(a, k) }
    >
    y = Relu(b)
}"""
FUNCTION = """<ir_version: 10, opset_import: ["": 20, "own": 1]>
g (float[3] x) => (float[3] y) { y = own.twice(x) }
<domain: "own", opset_import: ["": 20]> twice (a) => (b) { c = Add(a, a) b = Sin(c) }"""
SPLIT = """<ir_version: 10, opset_import: ["": 20]> g (float[6] x) => (float[3] y, float[6] x2)
{ a, b = Split <num_outputs = 2> (x) c = Relu(b) d = Add(a, c) y = Neg(d) x2 = Identity(x) }"""
GIVEN = """<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] k, float[2] y)
<float[2] k = {1.0, 2.0}> { y = Add(x, k) }"""
EMPTY = """<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y)
{ y = Identity(x) }"""
MISSING = """<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y)
{ a = Neg(x) high = Constant <value_float = 0.5> () y = Clip(a, , high) }"""


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        (IF, "dhd"),
        (FUNCTION, "dh"),
        (SPLIT, "hd"),
        (GIVEN, "d"),
        (EMPTY, "d"),
        (MISSING, "dh"),
    ],
)
def test_chosen_models(text: str, sides: str) -> None:
    model = onnx.parser.parse_model(text)
    found = cut(model)
    assert "".join("d" if piece.on_device else "h" for piece in found.pieces) == sides
    rng = np.random.default_rng(1)
    inputs = {}
    for value in model.graph.input:
        shape = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        is_bool = value.type.tensor_type.elem_type == onnx.TensorProto.BOOL
        inputs[value.name] = (
            np.array(True).reshape(shape) if is_bool else rng.standard_normal(shape).astype("f4")
        )
    check(found, model, inputs)


def test_constants_lie_in_the_pieces() -> None:
    weight = np.arange(4, dtype=np.float32)
    nodes = [("Add", ["x", "w"], "a"), ("Sin", ["a"], "s"), ("Mul", ["s", "w"], "y")]
    found = cut(model_of(nodes, {"x": (4,)}, ["y"], {"w": weight}))
    assert not found.model.graph.initializer
    for function in found.model.functions:
        ops = [node.op_type for node in function.node]
        assert ("Constant" in ops) == (function.domain == "pycompiler.device")
    assert [piece.inputs for piece in found.pieces] == [("x",), ("a",), ("s",)]


@pytest.mark.parametrize(
    ("row", "op", "elem", "reason"),
    [
        (Row("Neg"), "Sin", "float", "the test chip has no Sin"),
        (Row("Neg", frozenset({"float"})), "Neg", "double", "takes float on the test chip"),
        (Row("Elu", attributes=frozenset()), "Elu", "float", "has no attribute `alpha`"),
        (Row("Neg", check=lambda unit: "not today"), "Neg", "float", "not today"),
        (Row("Neg"), "Neg", "float", None),
    ],
)
def test_reasons_of_tables(row: Row, op: str, elem: str, reason: str | None) -> None:
    node = f"{op} <alpha = 2.0>" if op == "Elu" else op
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 20]> g ({elem}[2] x) => ({elem}[2] y)'
        f"{{ y = {node} (x) }}"
    )
    found = cut(model, SupportTable([row], "the test chip"))
    (shown,) = found.reasons.values() or [None]
    assert (shown is None) == (reason is None)
    assert reason is None or reason in shown


def test_the_compiler_gives_its_own_reasons() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 24]> g (float[2, 3] a) => (int32[2, 3] c) {
            s = Sin(a) c = Cast <to = 6, round_mode = "up"> (s) }"""
    )
    found = cut(model, None)
    assert sorted(found.reasons.values()) == [
        "Cast has no attribute `round_mode` on the device",
        "no layer for Sin",
    ]


def test_pieces_that_do_not_pay_are_dropped() -> None:
    """A large product pays, a sum of eight numbers does not; every reason says both times."""
    weight = np.ones((256, 256), np.float32)
    nodes = [
        ("MatMul", ["x", "w"], "p"),
        ("Sin", ["p"], "s"),
        ("ReduceMax", ["s"], "m"),
        ("Cos", ["m"], "c"),
        ("Add", ["c", "c"], "y"),
    ]
    model = model_of(nodes, {"x": (256, 256)}, ["y"], {"w": weight})
    costs = Costs(host_multiply_adds=1e7, launch=1e-3)
    found = cut(model, None, threshold=1.0, costs=costs)
    assert [piece.name for piece in found.pieces] == ["device_0", "host_0"]
    assert [unit.name for unit in found.pieces[0].units] == ["MatMul"]
    (cost,) = (found.costs[piece.numbers] for piece in found.pieces if piece.on_device)
    assert cost.bytes_moved == 2 * 256 * 256 * 4
    assert cost.host == pytest.approx(256**3 / 1e7)
    assert cost.transfer == pytest.approx(cost.bytes_moved / 1.2e10 + 1e-3)
    assert any("the device gains" in r or "on the host" in r for r in found.reasons.values())
    kept = cut(model, None, threshold=inf, costs=costs)
    assert sum(piece.on_device for piece in kept.pieces) == 3
    none = cut(model, None, threshold=0.0, costs=costs)
    assert not any(piece.on_device for piece in none.pieces)
    assert found.note == kept.note == ""
    assert "times what the device gains, and the threshold is 0. threshold=inf" in none.note
    assert repr(none).endswith(none.note)
    sines = cut(model_of([("Sin", ["x"], "y")], {"x": (4,)}, ["y"]), None, threshold=1.0)
    assert sines.note.endswith("the device takes or compiles none, see the reasons")


MODEL = '<ir_version: 10, opset_import: ["": 20]> g (float[4] x) => (float[4] y) { y = Neg (x) }'


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"device": "pfvm:cpu"}, "P0801"),
        ({"device": "nothing"}, "P0601"),
        ({"threshold": -1}, "P0704"),
        ({"threshold": float("nan")}, "P0704"),
        ({"threshold": "much"}, "P0704"),
        ({"options": {"flaot": 1}}, "P0701"),
        ({"support": lambda unit: None}, "P0704"),
        ({"patterns": [lambda: None]}, "P0704"),
        ({"model": b"bytes"}, "P0704"),
        ({"model": "missing.onnx"}, "P0001"),
    ],
)
def test_mistakes(arguments: dict[str, object], code: str) -> None:
    facts = {"model": onnx.parser.parse_model(MODEL), "device": "emu2:mini", **arguments}
    with pytest.raises(PycompilerError) as caught:
        pycompiler.partition(**facts)
    assert caught.value.code == code


def test_a_path_is_a_model_too(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    for name in (path, str(path)):
        found = pycompiler.partition(name, "emu2:mini", threshold=inf)
        assert repr(found) == "Partition(device_0: 1 nodes)"


def test_a_dynamic_shape_is_refused() -> None:
    model = onnx.parser.parse_model(MODEL.replace("float[4]", "float[N]"))
    with pytest.raises(PycompilerError) as caught:
        cut(model)
    assert caught.value.code == "P0139"
    (name,) = (info.name for info in model.graph.input)
    for sizes in ({"dims": {"N": 4}}, {"shapes": {name: (4,)}}):
        assert repr(cut(model, **sizes)) == "Partition(device_0: 1 nodes)"


def test_sizes_that_values_decide_are_a_piece_of_the_host() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[3, 4] x) => (float[3, 4] y) <float zero = {0}> {
            r = Relu(x)  m = Greater(r, zero)  k = NonZero(m)  f = Cast<to = 1>(k)
            s = ReduceSum<keepdims = 0>(f)  n = Neg(r)  y = Mul(n, s) }"""
    model = onnx.parser.parse_model(text)
    found = cut(model)
    assert [piece.on_device for piece in found.pieces].count(True) >= 1
    check(found, model, {"x": np.random.default_rng(3).standard_normal((3, 4), np.float32)})


def test_the_command(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "model.onnx"
    nodes = [("Relu", ["x"], "r"), ("Sin", ["r"], "s"), ("Add", ["s", "x"], "y")]
    model = model_of(nodes, {"x": (3, 5)}, ["y"])
    onnx.save(model, path)
    out, app = tmp_path / "out.onnx", tmp_path / "model.app"
    x = np.random.default_rng(3).standard_normal((3, 5)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    words = ["partition", str(path), "--device", "emu2:mini", "--threshold", "inf"]
    done = CliRunner().invoke(commands, [*words, "-o", str(out), "--app", str(app)])
    assert done.exit_code == 0, done.output
    for word in ("device_0", "host_0", "device_1", "no layer for Sin", f"wrote {app}"):
        assert word in done.output
    (wanted,) = results(model, {"x": x})
    np.testing.assert_array_equal(results(onnx.load(out), {"x": x})[0], wanted)
    words = ["run", str(app), "-i", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")]
    done = CliRunner().invoke(commands, [*words, "--device", "emu2:mini"])
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], wanted, rtol=1e-6)
    done = CliRunner().invoke(commands, ["partition", str(path), "--estimate"])
    assert "all nodes stay on the host: " in done.output
    assert "(--threshold inf) keeps every piece" in done.output
    done = CliRunner().invoke(commands, ["partition", "--support"])
    assert done.exit_code == 0
    assert "MatMul" in done.output


@pytest.mark.parametrize("kind", ["a model", "a path", "a text"])
def test_open_sizes_are_arguments(kind: str, tmp_path: Path) -> None:
    """Also by numbers of numpy, and for the path of a file."""
    model = model_of([("Add", ["x", "m"], "y")], {"x": (2, 3), "m": (1, 3)}, ["y"])
    for info, name in zip(model.graph.input, ("batch", "rows"), strict=True):
        info.type.tensor_type.shape.dim[0].dim_param = name
    path = tmp_path / "open.onnx"
    onnx.save(model, path)
    asked = {"a model": model, "a path": path, "a text": str(path)}[kind]
    with pytest.raises(PycompilerError, match=r"P0139.*dims=\{'batch': 1, 'rows': 1\}"):
        pycompiler.partition(asked, "emu2:mini", simulate=False)
    sizes = {"dims": {"batch": np.int64(2)}, "shapes": {"m": (1, np.int32(3))}}
    found = pycompiler.partition(asked, "emu2:mini", simulate=False, **sizes)
    shapes = [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in found.model.graph.input]
    assert shapes == [[2, 3], [1, 3]]
