"""``pycompiler compile``, ``run`` and ``dump``, and the demo."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from compiling import model_of, random_inputs

from pycompiler import cli, demo
from pycompiler.console import TRACEBACK_VARIABLE

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Capture) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    nodes = [("Mul", ["x", "y"], "p"), ("Relu", ["p"], "r")]
    onnx.save(model_of(nodes, {"x": (6, 5), "y": (5,)}, ["r"]), "model.onnx")
    return Command(monkeypatch, capfd)


class Command:
    """Runs the command in this process; keeps what it printed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: Capture):
        self.monkeypatch, self.capfd = monkeypatch, capfd
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        self.monkeypatch.setattr(sys, "argv", ["pycompiler", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        self.out, self.err = self.capfd.readouterr()
        code = stopped.value.code
        return code if isinstance(code, int) else 0

    def refused(self, diagnostic: str, *arguments: str) -> None:
        assert self(*arguments) == 1
        assert self.out == ""
        assert self.err.startswith(f"error[{diagnostic}]: ")
        assert self.err.count("error[") == 1
        assert "Traceback" not in self.err


@pytest.mark.parametrize("device", ["emu2", "emu2:mini", "pfvm:cpu"])
def test_compile_run_dump(command: Command, device: str) -> None:
    assert command("compile", "model.onnx", "-o", "out", "--device", device) == 0
    assert "files in out" in command.out
    assert command.err == ""
    inputs = random_inputs({"x": (6, 5), "y": (5,)}, 4)
    np.savez("in.npz", **inputs)
    assert command("run", "out", "-i", "in.npz", "-o", "out.npz", "--device", device) == 0
    wanted = np.maximum(inputs["x"] * inputs["y"], 0)
    assert np.allclose(np.load("out.npz")["r"], wanted, rtol=1e-6)
    assert command("run", "out", "-i", "in.npz", "--device", device) == 0
    assert command.out.startswith("r: float32 (6, 5)\n")
    if device != "pfvm:cpu":
        assert command("dump", "out") == 0
        assert "r: float[6,5] Float" in command.out
        assert command("dump", "out/model.app", "--code") == 0
        assert "fvmul" in command.out


def test_options(command: Command) -> None:
    assert command("compile", "model.onnx", "-o", "out", "-O", "strict=true") == 0
    assert json.loads(Path("out/report.json").read_text())["options"] == {"strict": True}
    assert command("compile", "model.onnx", "-o", "out", "-O", "float_dtype=mixed") == 0
    command.refused("P0702", "compile", "model.onnx", "-o", "out", "-O", "float_dtype=x")
    command.refused("P0701", "compile", "model.onnx", "-o", "out", "-O", "speed=3")
    assert command("compile", "model.onnx", "-o", "out", "-O", "strict") == 2
    assert command("compile", "model.onnx") == 2
    assert command("frobnicate") == 2


def test_bad_files(command: Command) -> None:
    Path("empty.onnx").write_bytes(b"")
    Path("text.onnx").write_text("hello, this is no model\n")
    Path("folder.onnx").mkdir()
    command.refused("P0001", "compile", "missing.onnx", "-o", "out")
    command.refused("P0001", "compile", "folder.onnx", "-o", "out")
    command.refused("P0002", "compile", "empty.onnx", "-o", "out")
    command.refused("P0002", "compile", "text.onnx", "-o", "out")
    command.refused("P0601", "compile", "model.onnx", "-o", "out", "--device", "tpu")
    dynamic = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[n] a) => (float[n] b) { b = Neg(a) }'
    )
    onnx.save(dynamic, "dynamic.onnx")
    command.refused("P0103", "compile", "dynamic.onnx", "-o", "out")
    assert "  --> dynamic.onnx\n" in command.err
    assert not Path("out").exists()
    command.refused("P0004", "run", "out", "-i", "in.npz")
    command.refused("P0004", "run", "model.onnx", "-i", "in.npz")
    assert "it is no folder" in command.err
    command.refused("P0001", "dump", "out")
    Path("out.app").write_text("not an app")
    command.refused("P0501", "dump", "out.app")


def test_bad_inputs(command: Command) -> None:
    assert command("compile", "model.onnx", "-o", "out", "--device", "emu2:mini") == 0
    good = random_inputs({"x": (6, 5), "y": (5,)}, 4)
    Path("text.npz").write_text("hello")
    np.save("one.npy", good["x"])
    np.savez("part.npz", x=good["x"])
    np.savez("shape.npz", **{**good, "y": good["x"]})
    np.savez("more.npz", **good, z=good["y"])
    np.savez("double.npz", **{**good, "y": good["y"].astype(np.float64)})
    np.savez("date.npz", **{**good, "y": np.array(["2020-01-01"], dtype="datetime64[D]")})
    np.savez("object.npz", **{**good, "y": np.array([{}], dtype=object)})
    whole = Path("more.npz").read_bytes()
    Path("cut.npz").write_bytes(whole[: len(whole) // 2])
    run = ("run", "out", "--device", "emu2:mini", "-i")
    command.refused("P0001", *run, "missing.npz")
    command.refused("P0006", *run, "text.npz")
    command.refused("P0006", *run, "one.npy")
    for file in ("cut.npz", "object.npz"):
        command.refused("P0006", *run, file)
    for file in ("part.npz", "shape.npz", "more.npz", "double.npz", "date.npz"):
        command.refused("P0603", *run, file)
    command.refused("P0603", "run", "out", "--device", "emu2:mini")
    np.savez("good.npz", **good)
    command.refused("P0503", "run", "out", "-i", "good.npz")
    np.savez("big.npz", **{name: array.astype(">f4") for name, array in good.items()})
    assert command(*run, "big.npz") == 0
    big_endian = command.out
    assert command(*run, "good.npz") == 0
    assert command.out == big_endian
    command.refused("P0003", *run, "good.npz", "-o", "no/such/folder/out.npz")


def test_host_fallback_is_one_warning(command: Command) -> None:
    onnx.save(model_of([("Sin", ["x"], "y")], {"x": (4,)}, ["y"]), "sin.onnx")
    assert command("compile", "sin.onnx", "-o", "out") == 0
    assert command.err.count("warning: ") == 1
    assert "Sin" in command.err
    command.refused("P0303", "compile", "sin.onnx", "-o", "out", "-O", "strict=true")


def test_our_bugs_exit_with_3(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("pycompiler.build.compile_onnx", broken)
    assert command("compile", "model.onnx", "-o", "out") == 3
    assert command.err.startswith("error[P0901]: internal error: ZeroDivisionError: oops")
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    assert command("compile", "model.onnx", "-o", "out") == 3
    assert "Traceback" in command.err


def test_demo(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["demo", "--out", "demo_out"])
    assert demo.main() == 0
    out, err = command.capfd.readouterr()
    assert err == ""
    assert "relu(x * y + z) on (512, 1024)" in out
    assert out.count("largest difference from PyTorch") == 2
    for case in ("add", "relu_mul_add"):
        folder = tmp_path / "demo_out" / case
        line = "run model.vsm --strict --load-memory-file model.input.json -d out.txt"
        command_line = [sys.executable, "-m", "emu2.cli", *line.split()]
        subprocess.run(command_line, cwd=folder, check=True, timeout=60)
        dump = (folder / "out.txt").read_text().splitlines()
        bits = [re.search(r"\((0x[0-9a-f]{8}, 0x[0-9a-f]{8})\)", line) for line in dump]
        assert len(bits) == 4
        assert all(found is not None and found.group(1) in out for found in bits)
        report = json.loads((folder / "codegen" / "report.json").read_text())
        assert report["host_fallback"] == []
