"""Files that never end, never begin or have the wrong content: one diagnostic, no traceback."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from compiling import model_of

from pycompiler import cli
from pycompiler.build import build, load_function
from pycompiler.errors import PycompilerError

SECONDS = 120  # a command that hangs is ended then


def hung(*_: object) -> None:
    raise TimeoutError("the command hangs")


def command(*arguments: str | bytes) -> int:
    """Run the command in this process, in the current folder; return its exit code."""
    before, argv = signal.signal(signal.SIGALRM, hung), sys.argv
    sys.argv = ["pycompiler", *map(os.fsdecode, arguments)]
    signal.alarm(SECONDS)
    try:
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        sys.argv = argv
    code = stopped.value.code
    return code if isinstance(code, int) else 0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("place")
    model = model_of([("Relu", ["x"], "y")], {"x": (4,)}, ["y"])
    onnx.save(model, place / "model.onnx")
    np.savez(place / "in.npz", x=np.ones(4, np.float32))
    os.mkfifo(place / "pipe")
    (place / "loop").symlink_to("loop")
    with (place / "huge.onnx").open("wb") as file:
        file.truncate(1 << 42)
    header = io.BytesIO()
    np.lib.format.write_array_header_2_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)}
    )
    with zipfile.ZipFile(place / "bomb.npz", "w") as bomb:
        bomb.writestr("x.npy", header.getvalue())
    outside = model_of([("Add", ["x", "w"], "y")], {"x": (4,)}, ["y"], {"w": np.ones(4, "f4")})
    for name, location in (("pipe", "pipe"), ("outside", "../outside.bin"), ("zero", "/dev/zero")):
        tensor = outside.graph.initializer[0]
        tensor.ClearField("raw_data")
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        (place / f"data_{name}.onnx").write_bytes(outside.SerializeToString())
    (place.parent / "outside.bin").write_bytes(bytes(16))
    assert command("compile", str(place / "model.onnx"), "-o", str(place / "out")) == 0
    return place


RUN = ("run", "out", "-i")
SPEC = ("compile", "model.onnx", "-o", "other", "-O")


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("P0001", ("compile", "/dev/zero", "-o", "other")),
        ("P0001", ("compile", "pipe", "-o", "other")),
        ("P0001", ("compile", "loop", "-o", "other")),
        ("P0001", ("compile", "out", "-o", "other")),
        ("P0001", ("compile", "huge.onnx", "-o", "other")),
        ("P0002", ("compile", "data_pipe.onnx", "-o", "other")),
        ("P0002", ("compile", "data_outside.onnx", "-o", "other")),
        ("P0002", ("compile", "data_zero.onnx", "-o", "other")),
        ("P0003", ("compile", "model.onnx", "-o", "pipe")),
        ("P0003", ("compile", "model.onnx", "-o", "loop")),
        ("P0003", ("compile", "model.onnx", "-o", "/dev/full")),
        ("P0003", ("compile", "model.onnx", "-o", "other", "-O", "out_onnx=/dev/full")),
        ("P0001", (*SPEC, "layout_spec=/dev/zero")),
        ("P0001", (*SPEC, "layout_spec=pipe")),
        ("P0001", (*RUN, "/dev/zero")),
        ("P0001", (*RUN, "pipe")),
        ("P0001", (*RUN, "huge.onnx")),
        ("P0603", (*RUN, "bomb.npz")),
        ("P0003", (*RUN, "in.npz", "-o", "/dev/full")),
        ("P0003", (*RUN, "in.npz", "-o", "pipe")),
        ("P0003", (*RUN, "in.npz", "-o", ".")),
        ("P0010", (*RUN, "in.npz", "-o", "out")),
        ("P0004", ("run", "loop")),
        ("P0004", ("run", "pipe")),
        ("P0004", ("run", "/dev/zero")),
        ("P0001", ("dump", "/dev/zero")),
        ("P0001", ("dump", "pipe")),
        ("P0001", ("dump", "loop")),
        ("P0001", ("dump", "huge.onnx")),
        ("P0001", ("dump", b"\xff\xfe.app")),
        ("P0001", ("compile", b"\xff.onnx", "-o", "other")),
        ("P0601", ("compile", "model.onnx", "-o", "other", "--device", b"\xff")),
        ("P0702", ("compile", "model.onnx", "-o", "other", "-O", b"float_dtype=\xff")),
        ("P0701", ("compile", "model.onnx", "-o", "other", "-O", b"\xff=1")),
    ],
)
def test_one_diagnostic(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    code: str,
    arguments: tuple[str | bytes, ...],
) -> None:
    monkeypatch.chdir(place)
    exit_code = command(*arguments)
    said = capfd.readouterr().err
    assert said.startswith(f"error[{code}]: "), said
    assert exit_code == 1
    assert said.count("error[") == 1
    assert "Traceback" not in said
    assert "Errno" not in said
    assert not (place / "other").exists()
    assert [path.name for path in place.glob(".*")] == []


def test_any_name_works(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert command("compile", "model.onnx", "-o", b"\xff\xfe") == 0
    assert command("compile", "model.onnx", "-o", "x", "-O", b"out_onnx=\xff.onnx") == 0
    report = (place / "x" / "report.json").read_text()
    assert "\\udcff.onnx" in report


@pytest.mark.parametrize(
    ("location", "lies", "found"),
    [
        ("w.bin", "out/w.bin", True),
        ("w.bin", "w.bin", False),  # the current folder is not the model's
        ("../w.bin", "w.bin", False),
    ],
)
def test_external_data_lies_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str, lies: str, found: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    weights = np.arange(4, dtype=np.float32)
    model = model_of([("Add", ["x", "w"], "y")], {"x": (4,)}, ["y"], {"w": weights})
    build(lambda: model, "pfvm:cpu", None, {}, tmp_path / "out")
    model = onnx.load(tmp_path / "out" / "model.onnx")
    (tensor,) = model.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (tmp_path / "out" / "model.onnx").write_bytes(model.SerializeToString())
    Path(lies).write_bytes(weights.tobytes())
    if found:
        (y,) = load_function(tmp_path / "out", None).run({"x": weights}).values()
        assert np.array_equal(y.values(), weights + weights)
    else:
        with pytest.raises(PycompilerError) as caught:
            load_function(tmp_path / "out", None)
        assert caught.value.code == "P0002"
    with pytest.raises(PycompilerError, match="another file") as caught:  # no file, no folder
        build(lambda: model, "pfvm:cpu", None, {}, tmp_path / "other")
    assert caught.value.code == "P0108"


def test_stdout_that_takes_nothing(place: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pycompiler.command", "dump", "out", "--code"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=place,
            timeout=SECONDS,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error[P0003]: cannot write `standard output`: No space left")
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
