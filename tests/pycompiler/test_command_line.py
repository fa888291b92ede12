"""``pycompiler compile``, ``run`` and ``dump``, and the demo."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from compiling import LONG, model_of, random_inputs, without_progress

from pycompiler import cli
from pycompiler.console import TRACEBACK_VARIABLE
from pycompiler.demo import __main__ as demo
from pycompiler.demo import digits
from pycompiler.report import progress
from pycompiler.report.report import Report

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Capture) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    nodes = [("Mul", ["x", "y"], "p"), ("Relu", ["p"], "r")]
    onnx.save(model_of(nodes, {"x": (6, 5), "y": (5,)}, ["r"]), "model.onnx")
    return Command(monkeypatch, capfd)


class Command:
    """Runs the command in this process and keeps its output."""

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


def test_models_in_onnx_need_no_torch(command: Command) -> None:
    """Torch takes longer to load than all else together."""
    np.savez("in.npz", **random_inputs({"x": (6, 5), "y": (5,)}, 4))
    code = """
import sys
sys.modules["torch"] = None  # an import raises
import pycompiler.command as command
for line in ("compile model.onnx -o out", "run out -i in.npz"):
    sys.argv[1:] = [*line.split(), "--device", "emu2:mini"]
    try:
        command.main()
    except SystemExit as end:
        assert not end.code, line
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


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
    command.refused("P0139", "compile", "dynamic.onnx", "-o", "out")
    assert "  --> dynamic.onnx\n" in command.err
    assert command.err.splitlines()[2].endswith("pycompiler compile dynamic.onnx -o out --dim n=1")
    assert not Path("out").exists()
    command.refused("P0004", "run", "out", "-i", "in.npz")
    command.refused("P0004", "run", "model.onnx", "-i", "in.npz")
    assert "it is no folder" in command.err
    command.refused("P0001", "dump", "out")
    Path("out.app").write_text("not an app")
    command.refused("P0501", "dump", "out.app")


@pytest.mark.parametrize(
    "words",
    [
        ("compile", "-o", "out"),
        ("partition", "-o", "pieces.onnx"),
        ("sweep", "--set", "lm_words=1x", "--jobs", "1", "--executor", "threads"),
        ("memory",),
    ],
)
def test_sizes(command: Command, words: tuple[str, ...]) -> None:
    graph = "g (float[n, m] a) => (float[n, m] b) { b = Neg(a) }"
    text = f'<ir_version: 8, opset_import: ["": 18]> {graph}'
    onnx.save(onnx.parser.parse_model(text), "open.onnx")
    call = (words[0], "open.onnx", *words[1:])
    command.refused("P0139", *call)
    assert command.err.splitlines()[2].endswith(f"pycompiler {' '.join(call)} --dim n=1 --dim m=16")
    assert command(*call, "--dim", "n=2", "--dim", "m=8") == 0
    assert command(*call, "--shape", "a=2x8") == 0
    command.refused("P0704", *call, "--dim", "k=2")


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
    command.refused("P0006", *run, "cut.npz")
    for file in ("object.npz", "part.npz", "shape.npz", "more.npz", "double.npz", "date.npz"):
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


def test_a_network(command: Command) -> None:
    shapes = {"w": (12, 20), "b": (20,), "v": (20, 10)}
    constants = random_inputs(shapes, 1, scale=0.1)
    nodes = [
        ("MatMul", ["x", "w"], "h"),
        ("Add", ["h", "b"], "a"),
        ("Relu", ["a"], "r"),
        ("MatMul", ["r", "v"], "l"),
        ("Softmax", ["l"], "y"),
    ]
    onnx.save(model_of(nodes, {"x": (5, 12)}, ["y"], constants), "net.onnx")
    device = ("--device", "emu2:mini")
    lowered = ("-O", "out_onnx=deep/lowered.onnx")
    assert command("compile", "net.onnx", "-o", "net", *device, *lowered, "-O", "strict=true") == 0
    facts = json.loads(Path("net/report.json").read_text())
    for column in ("node", "op", "layout", "location", "steps", "DRAM words", "utilisation"):
        assert column in command.out
    products = [row for row in facts["nodes"] if row["op"] == "MatMul"]
    assert len(products) == 2
    for row in facts["nodes"]:
        assert row["utilisation"] <= 1
        if row["busy_steps"]:
            # Instructions of a node also stand in steps that count for others.
            share = min(1, max(row["busy_steps"].values()) / (row["steps"] or 1))
            assert row["utilisation"] == pytest.approx(share, abs=1e-4)
    # A slot holds one instruction per step.
    for slot in {slot for row in facts["nodes"] for slot in row["busy_steps"]}:
        assert sum(row["busy_steps"].get(slot, 0) for row in facts["nodes"]) <= facts["steps"]
    assert all(row["busy_steps"]["mau"] > 0 for row in products)
    assert sum(row["steps"] for row in facts["nodes"]) == facts["steps"]
    x = random_inputs({"x": (5, 12)}, 2)["x"]
    np.savez("in.npz", x=x)
    hidden = np.maximum(x @ constants["w"] + constants["b"], 0) @ constants["v"]
    powers = np.exp(hidden - hidden.max(-1, keepdims=True))
    wanted = powers / powers.sum(-1, keepdims=True)
    # The lowered model on the host: an error here comes from the graph, not from the device.
    written = {node.op_type for node in onnx.load("deep/lowered.onnx").graph.node}
    assert "Softmax" not in written
    on_host = ("--device", "pfvm:cpu")
    assert command("compile", "deep/lowered.onnx", "-o", "host", *on_host) == 0
    for folder, where in (("net", device), ("host", on_host)):
        assert command("run", folder, "-i", "in.npz", "-o", "out.npz", *where) == 0
        assert np.allclose(np.load("out.npz")["y"], wanted, rtol=1e-4, atol=1e-5)
    assert command("dump", "net") == 0
    assert "y: float[5,10] Float" in command.out
    Path("file").write_text("")
    command.refused("P0003", "compile", "net.onnx", "-o", "o", *device, "-O", "out_onnx=file/x")


class Terminal(io.StringIO):
    """A stream that says it is a terminal, or not."""

    def __init__(self, *, terminal: bool):
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def test_long_compiles_show_their_passes_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal, delay, shown in ((True, 0.0, True), (True, 60.0, False), (False, 0.0, False)):
        monkeypatch.setattr(progress, "_DELAY", delay)
        monkeypatch.setattr(sys, "stderr", Terminal(terminal=terminal))
        report = Report("mini", {})
        report.expect(2)
        seen: list[tuple[str, int, int]] = []
        with progress.progress_bar(report, shown=True):
            own = report.listener
            assert (own is not None) == terminal
            for name in ("export", "layout"):
                with report.running(name):
                    time.sleep(0.3 if shown else 0.0)
        assert report.listener is None
        text = sys.stderr.getvalue()  # type: ignore[attr-defined]
        assert ("layout" in text) == shown
        assert text == "" or shown
        report.listener = lambda *facts, seen=seen: seen.append(facts)
        for _ in range(2):
            with report.running("more"):
                pass
        assert seen == [("more", 2, 3), ("more", 3, 4)]


def test_our_bugs_exit_with_3(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("pycompiler.build.compile_cheapest", broken)
    assert command("compile", "model.onnx", "-o", "out") == 3
    assert command.err.startswith("error[P0901]: internal error: ZeroDivisionError: oops")
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    assert command("compile", "model.onnx", "-o", "out") == 3
    assert "Traceback" in command.err


def test_a_host_without_memory_is_no_bug(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        np.zeros(1 << 50)

    monkeypatch.setattr("pycompiler.build.compile_cheapest", broken)
    assert command("compile", "model.onnx", "-o", "out") == 1
    assert command.err.startswith("error[P0902]: this process may not use as much memory")


def test_demo(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    modes = ("float", "mixed") if LONG else ("mixed",)
    networks = ("mlp", "cnn") if LONG else ("mlp",)
    monkeypatch.setattr(demo, "BOUNDS", modes)
    monkeypatch.setattr(digits, "_NETWORKS", digits._NETWORKS[: len(networks)])
    monkeypatch.setattr(sys, "argv", ["demo", "--out", "demo_out"])
    assert demo.main() == 0
    out, err = command.capfd.readouterr()
    assert without_progress(err) == ""
    assert "relu(x * y + z) on (512, 1024)" in out
    accuracies = re.findall(r"accuracy: ([\d.]+) % on emu2, ([\d.]+) % on torch", out)
    assert len(accuracies) == len(networks) * len(modes)
    for emulated, wanted in accuracies:
        assert float(wanted) > 95
        assert abs(float(emulated) - float(wanted)) < 1
    for network, float_dtype in product(networks, modes):
        folder = tmp_path / f"demo_out/digits_{network}_{float_dtype}"
        report = json.loads((folder / "report.json").read_text())
        assert report["host_fallback"] == []
        assert f"{report['cycles']} cycles" in out
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


@pytest.mark.parametrize(("package", "begun"), [("pycompiler", "exp"), ("emu2", "exp")])
def test_modules_are_commands_and_complete_words(package: str, begun: str) -> None:
    line = f"{package} {begun}"
    asked = {f"_{package.upper()}_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", package],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "plain,explain\n"), done.stderr


@pytest.mark.parametrize("name", ["compil", "dashbord", "xplain"])
def test_unknown_commands_are_answered_with_the_name_that_may_be_meant(
    name: str, command: Command
) -> None:
    meant = {"compil": "compile", "dashbord": "dashboard", "xplain": "explain"}[name]
    assert command(name) == 2
    assert f"No such command '{name}'. Did you mean '{meant}'?" in command.err
