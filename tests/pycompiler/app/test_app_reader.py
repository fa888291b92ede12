"""The reader of apps without the compiler: the same bits, and one diagnostic for every damage."""

from __future__ import annotations

import io
import random
import runpy
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from compiling import model_of, tried
from hostile.apps import damaged_app, sealed
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import random_model

import emu2
import pycompiler
from emu2._core import run_app
from emu2.cli import cli
from pycompiler.app import App, AppValue, read_app, write_app
from pycompiler.app.verify import verify_app
from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.model_commands import commands
from pycompiler.runtime.app_file import load_app
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction

STORED = Path(__file__).parents[2] / "data" / "apps"


def read_by_rust(app: App, inputs: Mapping[str, np.ndarray], folder: Path) -> dict:
    (folder / "model.app").write_bytes(write_app(app))
    np.savez(folder / "in.npz", **inputs)
    made = run_app(folder / "model.app", folder / "in.npz")
    return dict(np.load(io.BytesIO(made)))


def read_by_python(app: App, inputs: Mapping[str, np.ndarray], machine: str) -> dict:
    function = DeviceFunction(app, Board(load_target(machine)))
    return {name: held.values() for name, held in function.run(inputs).items()}


def same(app: App, inputs: Mapping[str, np.ndarray], folder: Path, machine: str = "mini") -> None:
    mine, others = read_by_rust(app, inputs, folder), read_by_python(app, inputs, machine)
    assert list(mine) == list(others)
    for name, array in mine.items():
        assert (array.dtype, array.shape) == (others[name].dtype, others[name].shape)
        assert array.tobytes() == others[name].tobytes()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(4))
def test_drawn_graphs_give_the_same_bits(tmp_path_factory, seed: int) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(seed)
    model, inputs = random_model(rng)
    options = {"float_dtype": rng.choice(["float", "mixed"])}
    found = pycompiler.partition(model, "emu2:mini", threshold=inf, options=options)
    if all(piece.on_device for piece in found.pieces):
        same(found.app(), inputs, tmp_path_factory.mktemp("app"))


ARRAYS = np.array([[0, 1, 2], [3, 100, 127]])


@pytest.mark.parametrize(
    ("elem", "dtype", "op"),
    [
        ("float", "f4", "Neg"),
        ("float16", "f2", "Neg"),
        ("int8", "i1", "Abs"),
        ("uint8", "u1", "Identity"),
        ("int16", "i2", "Neg"),
        ("int32", "i4", "Neg"),
        ("uint32", "u4", "BitwiseNot"),
        ("int64", "i8", "Neg"),
        ("bool", "?", "Not"),
    ],
)
def test_element_types(elem: str, dtype: str, op: str, tmp_path: Path) -> None:
    text = f'<ir_version: 10, opset_import: ["": 20]> g ({elem}[2, 3] x) => ({elem}[2, 3] y)'
    model = onnx.parser.parse_model(f"{text} {{ a = {op} (x) y = Transpose <perm = [0, 1]> (a) }}")
    app = pycompiler.partition(model, "emu2:mini", threshold=inf).app()
    x = ARRAYS.astype(dtype)
    if dtype in ("f2", "f4"):
        x = np.array([[0, -0.0, 1e-7], [65504, np.inf, -3e-5]], dtype)
    same(app, {"x": x}, tmp_path)


def test_the_whole_machine_and_copies_between_pieces(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
    nodes = [("MatMul", ["x", "w"], "a"), ("Add", ["a", "k"], "y"), ("Identity", ["a"], "z")]
    constants = {"w": weight, "k": np.ones(6, np.float32)}
    model = model_of(nodes, {"x": (5, 6)}, ["y", "z"], constants)
    app = pycompiler.partition(model, "emu2", threshold=inf).app()
    x = np.random.default_rng(1).standard_normal((5, 6)).astype(np.float32)
    same(app, {"x": x}, tmp_path, "mncore2")


@pytest.mark.parametrize("name", ["format4", "format4_places", "format5", "format5_places"])
def test_stored_files_keep_loading(name: str) -> None:
    """If a change breaks a file that an earlier version wrote, the format needs a new number."""
    path = STORED / f"{name}.app"
    verify_app(read_app(path.read_bytes(), name), load_target("mini"), name)
    arrays = np.load(STORED / f"{name}.npz")
    (made,) = load_app(path).run({"x": arrays["x"]}).values()
    assert made.values().tobytes() == arrays["y"].tobytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body[:-64],
        lambda body: body[:-1],
        lambda body: body + bytes(128),
        lambda body: body + bytes(8),
        lambda body: bytes(8) + body,
    ],
)
def test_the_data_behind_the_tables_is_that_of_the_constants(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    data = (STORED / "format5_places.app").read_bytes()
    assert read_app(data, "app").constants
    path = tmp_path / "damaged.app"
    path.write_bytes(sealed(change(data[:-32])))
    refused("M0001", path, STORED / "format5_places.npz")
    with pytest.raises(PycompilerError) as caught:
        read_app(path.read_bytes(), "app")
    assert caught.value.code == "P0501"


def test_data_begins_at_a_multiple_of_a_cache_line() -> None:
    """Readers may map the file."""
    constants = {"a": np.arange(5, dtype=np.int8), "b": np.zeros((0, 3)), "c": np.ones((3, 40))}
    constants["c"] = constants["c"].T  # row-major in the file
    elems = {"a": "int8", "b": "double", "c": "double"}
    values = {n: AppValue(n, elems[n], array.shape, "Long") for n, array in constants.items()}
    values["a"] = replace(values["a"], dtype="Int")
    data = write_app(App("p", "mini", (), (), values, constants, (), 0))
    assert data[: -32 - 3 * 40 * 8].endswith(bytes(range(5)) + bytes(59))
    assert data[-32 - 3 * 40 * 8 : -32] == constants["c"].tobytes()
    assert (len(data) - 32) % 64 == 0
    for name, array in read_app(data, "app").constants.items():
        assert np.array_equal(array, constants[name])


def stored(tmp_path: Path) -> tuple[bytes, Path]:
    arrays = np.load(STORED / "format4_places.npz")
    np.savez(tmp_path / "x.npz", x=arrays["x"])
    return (STORED / "format4_places.app").read_bytes(), tmp_path / "x.npz"


def test_the_command(tmp_path: Path) -> None:
    _, inputs = stored(tmp_path)
    path, out = str(STORED / "format4_places.app"), tmp_path / "out.npz"
    done = CliRunner().invoke(cli, ["app", "run", path, "-i", str(inputs), "-o", str(out)])
    assert done.exit_code == 0, done.output
    wanted = np.load(STORED / "format4_places.npz")["y"]
    assert np.load(out)["y"].tobytes() == wanted.tobytes()
    done = CliRunner().invoke(cli, ["app", "run", path, "-i", str(inputs)])
    assert done.output.startswith("y: float32 (5, 4)\n")


def test_a_plain_compile_as_one_file(tmp_path: Path) -> None:
    """The app in the folder has no places. With them, it runs without the compiler."""
    nodes = [("Neg", ["x"], "a"), ("Identity", ["w"], "v"), ("Add", ["a", "v"], "y")]
    model = model_of(nodes, {"x": (3, 4), "w": (4,)}, ["y", "v"])
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    draw = np.random.default_rng(2)
    x, w = (draw.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (4,)))
    np.savez(tmp_path / "in.npz", x=x, w=w)
    folder, app = tmp_path / "out", tmp_path / "net.app"

    def run(*command: str | Path) -> None:
        done = CliRunner().invoke(commands, [str(word) for word in command])
        assert done.exit_code == 0, done.output

    run("compile", tmp_path / "net.onnx", "-o", folder, "--device", "emu2:mini")
    refused("M0003", folder / "model.app", tmp_path / "in.npz")
    run("app", folder, "-o", app)
    made = np.load(io.BytesIO(run_app(app, tmp_path / "in.npz")))
    np.testing.assert_array_equal(made["y"], w - x)
    np.testing.assert_array_equal(made["v"], w)
    run("app", app, "-o", tmp_path / "again.app")
    assert (tmp_path / "again.app").read_bytes() == app.read_bytes()
    other = CliRunner().invoke(commands, ["app", str(app), "-o", "x.app", "--device", "emu2"])
    assert isinstance(other.exception, PycompilerError)
    assert other.exception.code == "P0503"


@pytest.mark.parametrize("seed", range(tried(40)))
def test_damage_gives_one_diagnostic(seed: int, tmp_path: Path) -> None:
    """A panic would be no EmulatorError. Damage may also leave a file that runs."""
    good, inputs = stored(tmp_path)
    path = tmp_path / "bad.app"
    path.write_bytes(damaged_app(good, random.Random(seed)))
    codes = []
    try:
        np.load(io.BytesIO(run_app(path, inputs)))
    except emu2.EmulatorError as problem:
        codes.append(problem.code[0])
    assert set(codes) <= set("MSRA")


def refused(code: str, path: Path, inputs: Path | None) -> str:
    with pytest.raises(emu2.EmulatorError) as caught:
        run_app(path, inputs)
    assert caught.value.code == code
    return str(caught.value)


def test_other_apps_are_refused(tmp_path: Path) -> None:
    good, inputs = stored(tmp_path)
    path = tmp_path / "other.app"
    for data in (b"", b"GPFN", b"\0" * 100, good[:-1], good[:50]):
        path.write_bytes(data)
        refused("M0001", path, inputs)
    said = refused("M0003", STORED / "format4.app", inputs)
    assert "does not say where the elements of" in said
    nodes = [("Neg", ["x"], "a"), ("Sin", ["a"], "y")]
    model = model_of(nodes, {"x": (5, 6)}, ["y"])
    path.write_bytes(write_app(pycompiler.partition(model, "emu2:mini", threshold=inf).app()))
    assert "segment 1 runs on the host: Sin" in refused("M0003", path, inputs)
    at = good.index(b"mini")
    path.write_bytes(sealed(good[:at] + b"none" + good[at + 4 : -32]))
    refused("S0011", path, inputs)
    refused("F0001", tmp_path / "missing.app", inputs)


def npz(**members: bytes) -> bytes:
    """Return the same bytes at any time: they name tests, which all processes must know alike."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, data)
    return file.getvalue()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


X = np.ones((5, 6), np.float32)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "M0005"),
        (b"PK\x05\x06" + bytes(18), "M0004"),  # an empty file: `x` is missing
        (npz(x=npy(X), z=npy(X)), "M0004"),
        (npz(x=npy(X.astype("f8"))), "M0004"),
        (npz(x=npy(np.ascontiguousarray(X.T))), "M0004"),
        (npz(x=npy(np.asfortranarray(X))), "M0005"),
        (npz(x=npy(X.astype(">f4"))), "M0005"),
        (npz(x=npy(X)[:-1]), "M0005"),
        (npz(x=npy(X) + b"more"), "M0005"),
        (npz(x=b"\x93NUMPY"), "M0005"),
        (npz(x=b"\x93NUMPY\x02\x00\xff\xff\xff\xff"), "M0005"),
        (npz(x=b"\x93NUMPY\x01\x00\x02\x00{}"), "M0005"),
        (npz(x=npy(X).replace(b"(5, 6)", b"(5, -)")), "M0005"),
        (npz(x=npy(np.zeros(2, [("a", "f4")]))), "M0005"),
        (npz(x=npy(X))[:60], "M0005"),
    ],
)
def test_wrong_inputs(data: bytes, code: str, tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(data)
    refused(code, STORED / "format4_places.app", path)


def test_compressed_inputs(tmp_path: Path) -> None:
    arrays = np.load(STORED / "format4_places.npz")
    np.savez_compressed(tmp_path / "x.npz", x=arrays["x"])
    made = np.load(io.BytesIO(run_app(STORED / "format4_places.app", tmp_path / "x.npz")))
    assert made["y"].tobytes() == arrays["y"].tobytes()


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[3] / "examples" / "run_app.py"
    assert len(path.read_text().splitlines()) <= 40
    runpy.run_path(str(path))
    assert "largest difference from numpy" in capsys.readouterr().out
