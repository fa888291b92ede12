"""Constants outside of models: the same graphs, small messages, and keys that know the data."""

from __future__ import annotations

import mmap
import os
import pickle
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from compiling import context, model_of, tried

from pycompiler.build import build, load_function, load_model
from pycompiler.cache import cache_key
from pycompiler.errors import PycompilerError
from pycompiler.files import pieces
from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.graph.text import print_graph
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pfvm import held
from pycompiler.pfvm.held import (
    Array,
    array_of,
    data_held,
    from_proto,
    hold,
    holding,
    is_held,
    to_proto,
    whole,
)
from pycompiler.pfvm.optimise import optimise

TARGET = load_target("mini")
#: More elements than stay in a model.
LARGE = (96, 60)


def _model(rng: random.Random) -> onnx.ModelProto:
    """Return products, a lookup and a convolution whose weights rewrites cut, scale and repeat."""
    draw = np.random.default_rng(rng.randrange(2**32))

    def made(*shape: int) -> np.ndarray:
        return draw.standard_normal(shape).astype(np.float32)

    constants = {"w": made(*LARGE), "b": made(60), "u": made(60, 96), "table": made(90, 96)}
    constants |= {"k": made(16, 24, 4, 4), "bn": made(16) ** 2 + 1, "z": made(16), "rows": made(16)}
    constants |= {"scale": made(*LARGE), "at": draw.integers(0, 90, 7)}
    nodes = [
        ("Gather", ["table", "at"], "x1"),
        ("Add", ["x1", "x"], "x2"),
        ("Mul", ["w", "scale"], "folded"),
        (rng.choice(["MatMul", "Gemm"]), ["x2", "folded"], "h"),
        ("Add", ["h", "b"], "h1"),
        ("MatMul", ["h1", "u"], "y"),
        ("Conv", ["p", "k"], "c"),
        ("BatchNormalization", ["c", "bn", "z", "rows", "bn"], "d"),
        ("Identity", ["folded"], "f"),
    ]
    return model_of(nodes, {"x": (7, 96), "p": (1, 24, 9, 9)}, ["y", "d", "f"], constants)


@pytest.mark.parametrize("seed", range(tried(4)))
def test_the_graph_is_that_of_the_whole_model(seed: int) -> None:
    model = _model(random.Random(seed))
    large = optimise(model)
    wanted = import_onnx(large, TARGET)
    with holding():
        before = model.SerializeToString()
        light = hold(model)
        assert model.SerializeToString() == before
        assert light.ByteSize() * 8 < model.ByteSize()
        small = optimise(light)
        assert small.ByteSize() * 8 < large.ByteSize()
        found = import_onnx(small, TARGET)
        assert whole(light) == model
        onnx.checker.check_model(whole(small))
    assert print_graph(found.graph) == print_graph(wanted.graph)
    assert found.constants.keys() == wanted.constants.keys()
    for name, array in found.constants.items():
        assert array.tobytes() == wanted.constants[name].tobytes()


@pytest.mark.parametrize(
    "kind",
    ["FLOAT16", "BFLOAT16", "DOUBLE", "INT64", "BOOL", "UINT8", "INT4", "COMPLEX64", "STRING"],
)
def test_data_of_every_type_comes_back(kind: str) -> None:
    elem, count = onnx.TensorProto.DataType.Value(kind), 5000
    numbers = [str(n).encode() if kind == "STRING" else n % 2 for n in range(count)]
    tensor = onnx.helper.make_tensor("w", elem, [count], numbers)
    result = onnx.helper.make_tensor_value_info("y", elem, [count])
    node = onnx.helper.make_node("Identity", ["w"], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], [result], [tensor]))
    with holding():
        (found,) = whole(to_proto(from_proto(hold(model)))).graph.initializer
    assert found.data_type == elem
    wanted = onnx.numpy_helper.to_array(tensor)
    assert np.array_equal(onnx.numpy_helper.to_array(found), wanted)


def test_one_model_is_built_for_two_devices(tmp_path: Path) -> None:
    model = model_of(
        [("MatMul", ["x", "w"], "y")], {"x": (3, 96)}, ["y"], {"w": np.ones(LARGE, "f")}
    )
    results = []
    for number, device in enumerate(("pfvm:cpu", "emu2:mini")):
        board = context(device)._board
        function = build(lambda: model, device, board, {}, tmp_path / f"{number}")
        results.append(function.run({"x": np.ones((3, 96), np.float32)})["y"].values())
    assert np.array_equal(*results)


def test_functions_have_their_data_inside(tmp_path: Path) -> None:
    """A Slice of a long axis becomes a function with a long list of places; onnx refused it."""
    x = np.arange(5001, dtype=np.float32)
    ends = {name: np.array([value]) for name, value in (("start", 1), ("end", 5000))}
    model = model_of([("Slice", ["x", *ends], "y")], {"x": x.shape}, ["y"], ends)
    board = context("emu2:mini")._board
    function = build(lambda: model, "emu2:mini", board, {}, tmp_path / "out")
    assert np.array_equal(function.run({"x": x})["y"].values(), x[1:-1])


def _with_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[onnx.ModelProto, Array]:
    """Compile a product for the host with its weight beside the model; return both."""
    monkeypatch.setattr(held, "INSIDE", 1000)
    weight = np.random.default_rng(0).standard_normal(LARGE).astype(np.float32)
    model = model_of([("MatMul", ["x", "w"], "y")], {"x": (3, 96)}, ["y"], {"w": weight})
    build(lambda: model, "pfvm:cpu", None, {}, tmp_path / "out")
    return model, weight


def test_much_data_lies_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the folder finds it: the host, onnx, and a compile, which maps it."""
    model, weight = _with_product(tmp_path, monkeypatch)
    file, data = tmp_path / "out/model.onnx", tmp_path / "out/model.onnx.data"
    assert file.stat().st_size < 1000
    assert data.stat().st_size % mmap.PAGESIZE == 0
    onnx.checker.check_model(str(file))
    (found,) = onnx.load(file).graph.initializer
    assert np.array_equal(onnx.numpy_helper.to_array(found), weight)
    given = {"x": np.ones((3, 96), np.float32)}
    wanted = load_function(tmp_path / "out", None).run(given)["y"].values()
    assert np.allclose(wanted, given["x"] @ weight, rtol=1e-4, atol=1e-4)
    lowered = tmp_path / "lowered.onnx"
    options = {"out_onnx": str(lowered)}
    with holding():
        (tensor,) = load_model(file).graph.initializer
        assert is_held(tensor)
        owner = array_of(tensor)
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        assert isinstance(owner.base, memoryview)
        assert isinstance(owner.base.obj, mmap.mmap)
    board = context("emu2:mini")._board
    build(lambda: load_model(file), "emu2:mini", board, options, tmp_path / "two")
    for place in (tmp_path / "two/model.onnx", lowered):
        assert place.with_name(f"{place.name}.data").is_file()
        again = build(lambda: load_model(place), "pfvm:cpu", None, {}, tmp_path / "three")  # noqa: B023
        assert np.array_equal(again.run(given)["y"].values(), wanted)
    monkeypatch.undo()
    build(lambda: model, "pfvm:cpu", None, {}, tmp_path / "out")
    assert not data.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("offset", "-4"), ("offset", "4096"), ("offset", "x"), ("length", "9")),
        *(("length", "999999"), ("location", "../outside"), ("location", "pipe")),
        *(("location", "link"), ("location", "/dev/zero"), ("location", "")),
    ],
)
def test_places_beside_the_model_are_checked(
    key: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_product(tmp_path, monkeypatch)
    file, data = tmp_path / "out/model.onnx", tmp_path / "out/model.onnx.data"
    (tmp_path / "outside").write_bytes(data.read_bytes())
    (tmp_path / "out/link").symlink_to(tmp_path / "outside")
    os.mkfifo(tmp_path / "out/pipe")
    model = onnx.load(file, load_external_data=False)
    (tensor,) = model.graph.initializer
    next(one for one in tensor.external_data if one.key == key).value = value
    file.write_bytes(model.SerializeToString())
    with pytest.raises(PycompilerError) as caught:
        load_function(tmp_path / "out", None)
    assert caught.value.code in ("P0002", "P0108")


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 0, 1), (0, 2, 1), (2, 1, 0)])
def test_arrays_of_any_order_are_written_row_by_row(axes: tuple[int, ...]) -> None:
    draw = np.random.default_rng(0)
    for shape in ((3, 300, 5), (290, 1, 131), (1, 2, 0)):
        array = draw.integers(0, 1 << 30, shape, np.int32).transpose(axes)
        written = b"".join(pieces([b"x", array, array[:1], b""]))
        assert written == b"x" + array.tobytes() + array[:1].tobytes()
    flat = draw.integers(0, 9, 40, np.int32)[::3]
    assert b"".join(pieces([flat, np.array(7)])) == flat.tobytes() + np.array(7).tobytes()


def test_a_model_goes_to_another_process() -> None:
    model = _model(random.Random(0))
    with holding():
        light = hold(model)
        message, data = pickle.dumps(light), data_held(light)
    assert not any(map(is_held, light.graph.initializer))
    with holding(data):
        assert whole(pickle.loads(message)) == model


def test_a_key_of_the_cache_knows_the_data() -> None:
    model, options = _model(random.Random(0)), parse_options(None)

    def key(change: float) -> str:
        with holding():
            own = onnx.ModelProto()
            own.CopyFrom(model)
            tensor = next(one for one in own.graph.initializer if one.name == "u")
            data = onnx.numpy_helper.to_array(tensor).copy()
            data[-1, -1] += change
            tensor.CopyFrom(onnx.numpy_helper.from_array(data, "u"))
            return cache_key(hold(own), TARGET, options)

    assert key(0) == key(0) != key(1)


@pytest.mark.parametrize("device", ["emu2:mini", "pfvm:cpu"])
def test_training_on_changes_no_compiled_function(device: str, tmp_path: Path) -> None:
    module = torch.nn.Linear(96, 60)
    function = context(device).compile(
        lambda given: {
            "y": module(given["x"]),
            "w": module.weight,
            "sorted": torch.sort(module.weight, dim=0, stable=True).values,
        },
        {"x": torch.ones(2, 96)},
        tmp_path / "out",
    )
    given = {"x": torch.randn(2, 96)}
    before = {name: one.cpu().clone() for name, one in function(given).items()}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(7)
    after = {name: one.cpu() for name, one in function(given).items()}
    assert all(torch.equal(before[name], after[name]) for name in before)
