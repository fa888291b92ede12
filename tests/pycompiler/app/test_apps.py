"""GPFNApp files: written apps are read back, damage is refused, the dump names everything."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, tried
from hypothesis import given, settings
from hypothesis import strategies as st

import pycompiler.app as app_package
from pycompiler.app import App, AppValue, DeviceSegment, HostSegment, Port, read_app, write_app
from pycompiler.app.dump import dump_app
from pycompiler.app.generated import gpfnapp_generated
from pycompiler.app.verify import verify_app
from pycompiler.emit.line_table import LineTable, Owner, Run
from pycompiler.emit.relocation import Relocation
from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target

text = st.text(max_size=8)
arrays = st.sampled_from(
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(3, dtype=np.int64),
        np.array([True, False]),
        np.zeros((0, 2), dtype=np.float64),
    ]
)
ELEMS = {"float32": "float", "int64": "int64", "bool": "bool", "float64": "double"}


@st.composite
def line_tables(draw: st.DrawFn) -> LineTable:
    owners = draw(st.lists(st.builds(Owner, text, text, st.none() | text, st.none() | text)))
    runs, line, cycle = list[Run](), 0, 0
    for _ in range(draw(st.integers(0, 4)) if owners else 0):
        nodes = draw(st.lists(st.integers(0, len(owners) - 1), min_size=1, unique=True))
        runs.append(Run(line, cycle, tuple(nodes)))
        line, cycle = line + draw(st.integers(1, 99)), cycle + draw(st.integers(0, 1 << 31))
    return LineTable(tuple(owners), tuple(runs))


@st.composite
def apps(draw: st.DrawFn) -> App:
    constants = draw(st.dictionaries(text.map(lambda t: "c" + t), arrays, max_size=3))
    values = {
        name: AppValue(name, ELEMS[str(array.dtype)], array.shape, "Float", None)
        for name, array in constants.items()
    }
    for name in draw(st.lists(text, unique=True, max_size=3)):
        layout = draw(st.sampled_from([None, "((4:1))"]))
        place = (draw(st.integers(0, 1 << 40)), 64) if layout else (0, 0)
        shape = tuple(draw(st.lists(st.integers(0, 1 << 33), max_size=3)))
        values.setdefault(name, AppValue(name, "float", shape, "Float", layout, *place))
    ports = st.lists(st.builds(Port, text, text), max_size=2).map(tuple)
    some = st.lists(text, max_size=2).map(tuple)
    count = st.integers(0, 1 << 30)
    places = st.lists(st.builds(Relocation, count, text, count), max_size=3).map(tuple)
    device = st.builds(DeviceSegment, some, some, text, places, count, count, line_tables())
    host = st.builds(HostSegment, some, some, st.binary(max_size=20))
    segments = draw(st.lists(st.one_of(device, host), max_size=3).map(tuple))
    registered = tuple(Port(draw(text), name) for name in constants if draw(st.booleans()))
    return App(
        draw(text),
        draw(text),
        draw(ports),
        draw(ports),
        values,
        constants,
        segments,
        draw(count),
        registered,
    )


def plain(app: App) -> dict[str, object]:
    facts = asdict(app)
    facts["constants"] = {k: (v.dtype, v.shape, v.tobytes()) for k, v in app.constants.items()}
    return facts


@given(apps())
@settings(max_examples=tried(30))
def test_round_trip(app: App) -> None:
    assert plain(read_app(write_app(app), "app")) == plain(app)


def some_app() -> App:
    nodes = [("Mul", ["x", "k"], "p"), ("Sin", ["p"], "s"), ("Add", ["s", "x"], "r")]
    model = model_of(nodes, {"x": (4, 6)}, ["r"], {"k": np.ones(6, dtype=np.float32)})
    with pytest.warns(UserWarning, match="Sin"):
        return compiled(model)[0].app


def test_a_compiled_app_reads_back() -> None:
    app = some_app()
    assert plain(read_app(write_app(app), "app")) == plain(app)


def test_dump_names_everything() -> None:
    app = some_app()
    shown = dump_app(app)
    for name in ("inputs:", "x: float[4,6]", "k: float[6]", "constants:", "1 host", "2 device"):
        assert name in shown
    assert "fvmul" not in shown
    assert "fvmul" in dump_app(app, code=True)


def test_dump_tells_registered_values_from_constants() -> None:
    values = {n: AppValue(n, "float", (2,), "Float", "((2:1))", 64, 64) for n in ("v", "k")}
    constants = {name: np.ones(2, dtype=np.float32) for name in values}
    shown = dump_app(App("p", "mini", (), (), values, constants, (), 64, (Port("net.w", "v"),)))
    before, _, after = shown.partition("constants:\n")
    assert "registered:\n  net.w = v: float[2]" in before
    assert after.startswith("  k: float[2]")


@pytest.mark.parametrize(
    "data", [b"", b"GPFN", b"\x00" * 64, b"not an app at all, but long enough"]
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(PycompilerError) as caught:
        read_app(data, "model.app")
    assert caught.value.code == "P0501"


@given(st.data())
def test_damage_is_a_diagnostic(data: st.DataObject) -> None:
    good = bytearray(write_app(some_plain_app()))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(8, len(good) - 1))] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(good)))
    for damaged in {bytes(good), bytes(good[:cut])} - {write_app(some_plain_app())}:
        with pytest.raises(PycompilerError) as caught:
            read_app(damaged, "model.app")
        assert caught.value.code == "P0501"


def some_plain_app() -> App:
    values = {"x": AppValue("x", "float", (2,), "Float", "((2:1))", 64, 64)}
    segment = DeviceSegment(("x",), ("x",), "nop\n", (Relocation(0, "x", 1),), 1, 4)
    constants = {"x": np.ones(2, dtype=np.float32)}
    return App("p", "mini", (Port("x", "x"),), (), values, constants, (segment,), 64)


def test_another_format_is_refused() -> None:
    root = gpfnapp_generated.AppT.InitFromObj(
        gpfnapp_generated.App.GetRootAs(write_app(some_plain_app()), 0)
    )
    root.format = 99
    builder = flatbuffers.Builder(0)
    builder.Finish(root.Pack(builder), b"GPFN")
    data = bytes(builder.Output())
    with pytest.raises(PycompilerError) as caught:
        read_app(data + hashlib.sha256(data).digest(), "model.app")
    assert caught.value.code == "P0502"
    assert caught.value.fields["found"] == 99


@pytest.mark.skipif(shutil.which("flatc") is None, reason="flatc is not installed")
def test_the_generated_code_is_that_of_the_schema(tmp_path: Path) -> None:
    folder = Path(app_package.__file__).parent
    version = subprocess.run(["flatc", "--version"], capture_output=True, text=True, check=True)
    if "2.0.8" not in version.stdout:
        pytest.skip("the committed code is that of flatc 2.0.8")
    script = str(folder / "regenerate.sh")
    subprocess.run(["sh", script, str(tmp_path)], check=True, capture_output=True)
    name = "gpfnapp_generated.py"
    assert (tmp_path / name).read_text() == (folder / "generated" / name).read_text()


class Counted(dict[str, np.ndarray]):
    """Constants that count how often someone looks at all of them."""

    passes = 0

    def items(self) -> Any:
        self.passes += 1
        return super().items()


def test_apps_of_many_segments_are_verified_in_time_of_their_number() -> None:
    """Each segment of the host looked at all constants, once."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 20]> g (int64[2] a) => (int64[2] b)
        { b = Identity (a) }"""
    )
    segment = HostSegment(("a",), ("b",), model.SerializeToString())
    values = {name: AppValue(name, "int64", (2,), "Long", None) for name in "ab"}
    constants = Counted(a=np.zeros(2, np.int64))
    app = App("", "mini", (), (Port("y", "b"),), values, constants, (segment,) * 40, 0)
    verify_app(app, load_target("mini"), "model.app")
    assert constants.passes == 1
