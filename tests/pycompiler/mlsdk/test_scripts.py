"""``python -m pycompiler.mlsdk``: scripts for MLSDK run unmodified."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest
from compiling import LONG, SCRIPTS, without_progress
from forked import SECONDS, Forks

from pycompiler.mlsdk.__main__ import main

MODULE = "pycompiler.mlsdk"


class Start(Protocol):
    """Runs a script with arguments; ``variables`` are added to its environment."""

    def __call__(
        self, *arguments: str | Path, **variables: str
    ) -> subprocess.CompletedProcess[str]: ...


def start_anew(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k != "MLSDK_DEVICE"}
    return subprocess.run(
        [sys.executable, "-m", MODULE, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=inherited | variables,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture
def start(forks: Forks) -> Start:
    def found(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return forks.module(MODULE, *arguments, **{"MLSDK_DEVICE": None, **variables})

    return found


@pytest.mark.parametrize("device", [None, "pfvm:cpu"])
def test_add(tmp_path: Path, start: Start, device: str | None) -> None:
    variables = {"ADD_OUT": str(tmp_path / "a" / "b")}
    if device:
        variables["MLSDK_DEVICE"] = device
    # Without a device, in a new interpreter.
    done = (start if device else start_anew)(SCRIPTS / "add.py", **variables)
    assert done.returncode == 0, done.stderr
    assert "2., 2., 2., 2." in done.stdout
    assert without_progress(done.stderr) == ""
    report = json.loads((tmp_path / "a" / "b" / "report.json").read_text())
    assert report["status"] == "ok"
    assert report["host_fallback"] == []
    assert (report["steps"] == 0) == (device == "pfvm:cpu")
    assert report["cache"]["app"] == ("off" if device == "pfvm:cpu" else "miss")
    assert (tmp_path / "a" / "b_cache").exists() == (device != "pfvm:cpu")


@pytest.mark.parametrize("device", ["emu2", "mncore2:auto", "pfvm:cpu"])
def test_the_device_as_an_argument(tmp_path: Path, start: Start, device: str) -> None:
    done = start(Path(__file__).parent / "scripts" / "add_device.py", device, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{device} agrees True\n"


SCRIPT_CASES = {
    # name: (source, exit code, in stdout, in stderr)
    "own exception": ("def f():\n    raise KeyError('mine')\nf()\n", 1, "", "KeyError: 'mine'"),
    "exit code": ("import sys\nprint('bye')\nsys.exit(7)\n", 7, "bye\n", ""),
    "exit text": ("raise SystemExit('enough')\n", 1, "", "enough\n"),
    "our diagnostic": (
        "import mlsdk\nmlsdk.MNDevice('tpu')\n",
        1,
        "",
        "error[P0601]: there is no device `tpu`\n  --> SCRIPT:2\n  help: use emu2",
    ),
    "own exception while traced": (
        "import mlsdk, torch\n"
        "def f(d):\n"
        "    raise ValueError('in forward')\n"
        "mlsdk.Context(mlsdk.MNDevice('pfvm:cpu')).compile(f, {'x': torch.ones(2)}, OUT)\n",
        1,
        "",
        "in f\n    raise ValueError('in forward')\nValueError: in forward",
    ),
    "syntax error": ("def f(:\n", 1, "", "SyntaxError"),
    "name and file": (
        "import sys\nprint(__name__, __file__ == sys.argv[0], sys.argv[1:])\n",
        0,
        "__main__ True ['a', '-b']\n",
        "",
    ),
    "annotations are values": (
        "from mlsdk import TensorProxy\nclass A:\n    x: TensorProxy\n"
        "print(A.__annotations__['x'] is TensorProxy, TensorProxy.__module__)\n",
        0,
        "True pycompiler.runtime.proxy\n",
        "",
    ),
    "a wrong argument": (
        "from mlsdk import storage\ndef f():\n    storage.path(3)\nf()\n",
        1,
        "",
        "error[P0704]: `path` cannot be 3\n  --> SCRIPT:3\n",
    ),
    "as under python": (
        "import os, sys\nprint(os.path.isabs(__file__), __spec__, __package__, __cached__,"
        " __loader__.name, sys.path[0] == os.path.dirname(os.path.realpath(__file__)))\n",
        0,
        "True None None None __main__ True\n",
        "",
    ),
    "classes of the script": (
        "import pickle\nclass A:\n    pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n",
        0,
        "True\n",
        "",
    ),
    "a target alone": (
        "from mlsdk import path, storage\n"
        "print(storage.path(target='file://a/b'), path('c', target='d'))\n",
        0,
        "a/b c\n",
        "",
    ),
    "no path at all": (
        "import mlsdk\nmlsdk.path()\n",
        1,
        "",
        "error[P0704]: `path` cannot be None",
    ),
    "unknown submodule": ("import mlsdk.nothing\n", 1, "", "ModuleNotFoundError"),
}


@pytest.mark.parametrize("case", SCRIPT_CASES)
def test_outcomes(tmp_path: Path, start: Start, case: str) -> None:
    source, code, stdout, stderr = SCRIPT_CASES[case]
    script = tmp_path / "script.py"
    script.write_text(source.replace("OUT", repr(str(tmp_path / "out"))))
    # In `make test-long` one case runs in a new interpreter, to show that a fork ends the same way.
    done = (start_anew if LONG and case == "exit code" else start)(script, "a", "-b")
    assert done.returncode == code, done.stderr
    assert done.stdout == stdout
    assert stderr.replace("SCRIPT", str(script)) in done.stderr
    ours = "error[" in done.stderr
    assert not (ours and "Traceback" in done.stderr)
    assert "pycompiler/mlsdk/script.py" not in done.stderr


SPAWNING = """
import multiprocessing
from mlsdk import MNDevice, storage
import fx2onnx

class Job:
    device = "pfvm:cpu"

def work(job):
    return __name__, MNDevice(job.device).name

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(__file__, pool.map(work, [Job()]))
"""


def test_processes_that_a_script_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script.py").write_text(SPAWNING)
    monkeypatch.chdir(tmp_path)
    done = start_anew("script.py")
    assert done.stderr == ""
    assert done.stdout == f"{tmp_path}/script.py [('__mp_main__', 'pfvm:cpu')]\n"


@pytest.mark.parametrize(
    ("arguments", "code", "diagnostic"),
    [
        ([], 2, "P0007"),
        (["--wat"], 2, "P0007"),
        (["missing.py"], 1, "P0001"),
        (["."], 1, "P0001"),
        (["binary.py"], 1, "P0005"),
    ],
)
def test_wrong_command_lines(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    diagnostic: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mlsdk", *arguments])
    Path("binary.py").write_bytes(b"x = '\xff\xfe'\n")
    assert main() == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("error[") == 1
    assert f"error[{diagnostic}]" in shown.err


def test_an_empty_script_and_help(tmp_path: Path, start: Start) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("")
    assert start(empty).returncode == 0
    done = start("--help")
    assert done.returncode == 0
    assert "SCRIPT" in done.stdout
