"""The vendor's easy examples, as scripts of our own with the same calls, in one process."""

from __future__ import annotations

import inspect
import re
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
from compiling import SCRIPTS, without_progress
from forked import Forks
from perfetto import read_trace

from pycompiler import mlsdk
from pycompiler.mlsdk.script import run_script


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of the scripts; restores the state that a script changes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", sys.argv[:])
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    return tmp_path


PRINTED = {
    "add_trace": "sum [2.0]\n",
    "add_automap": "total [4.0]\n",
    "io_spec_constraints": "result [3.0]\n",
    "infer_multi": "[4.0]\n[8.0]\n",
    "infer": "tensor(",
    "explicit_data_transfer_api": "tensor(",
}


@pytest.mark.parametrize("device", ["emu2:mini", "pfvm:cpu"])
@pytest.mark.parametrize("name", PRINTED)
def test_example(
    name: str,
    device: str,
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MLSDK_DEVICE", device)
    code = run_script(str(SCRIPTS / f"{name}.py"), [])
    out, err = capfd.readouterr()
    assert (code, without_progress(err)) == (0, "")
    assert out.startswith(PRINTED[name])
    for report in temporary.rglob("report.json"):
        assert '"host_fallback": []' in report.read_text()
    if name == "add_trace":
        slices = read_trace((temporary / "add_trace.pb").read_bytes())
        tracks = {track for track, *_ in slices}
        assert tracks == ({"host"} if device == "pfvm:cpu" else {"host", "device"})


def test_an_argument_selects_the_device(temporary: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = str(SCRIPTS / "io_spec_constraints.py")
    assert run_script(script, ["--device", "tpu"]) == 1
    assert "error[P0601]" in capfd.readouterr().err


def test_a_folder_of_another_process(
    temporary: Path, forks: Forks, capfd: pytest.CaptureFixture[str]
) -> None:
    """On the whole chip, from files only."""
    code = f"import tempfile; tempfile.tempdir = {str(temporary)!r}\n"
    code += "from pycompiler.mlsdk.script import run_script\n"
    code += f"raise SystemExit(run_script({str(SCRIPTS / 'add_two_tensors.py')!r}, []))"
    done = forks.text(code)
    assert done.returncode == 0, done.stderr
    (temporary / "add_two_tensors" / "model.onnx").unlink()
    assert run_script(str(SCRIPTS / "load_codegen_dir.py"), []) == 0
    assert capfd.readouterr().out == "loaded [2.0]\n"
    assert run_script(str(SCRIPTS / "add.py"), []) == 0
    assert "2., 2., 2., 2." in capfd.readouterr().out


def test_names_come_from_fx2onnx_too(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fx2onnx", raising=False)
    script = temporary / "names.py"
    script.write_text(
        "from fx2onnx import set_tensor_name\nimport mlsdk\n"
        "assert set_tensor_name is mlsdk.set_tensor_name\n"
    )
    assert run_script(str(script), []) == 0
    sys.modules.pop("fx2onnx")


PAGE = Path(__file__).parents[3] / "docs" / "mlsdk.md"


def test_the_page_names_every_symbol() -> None:
    text = PAGE.read_text()
    members = [
        name
        for owner in (mlsdk.Context, mlsdk.CompiledFunction, mlsdk.IOSpec)
        for name in vars(owner)
        if not name.startswith("_")
    ]
    named = [*mlsdk.__all__, *members, *inspect.signature(mlsdk.Context.compile).parameters]
    known = {"self", "device", "function", "codegen_dir", "inputs", "shape", "dtype", "layout"}
    missing = {name for name in named if not re.search(rf"\b{name}\b", text)}
    assert missing - known - {"device_dtype"} == set()
