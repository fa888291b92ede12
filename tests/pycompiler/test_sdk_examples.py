"""The vendor's easy examples, as scripts of our own with the same calls, in one process."""

from __future__ import annotations

import builtins
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
from compiling import SCRIPTS
from perfetto import read_trace

from pycompiler.mlsdk.script import run_script


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of the scripts; what running a script changes is put back."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", sys.argv[:])
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    assert builtins.print is print
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
    assert (code, err) == (0, "")
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
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """On the whole chip, from files only."""
    code = f"import tempfile; tempfile.tempdir = {str(temporary)!r}\n"
    code += "from pycompiler.mlsdk.script import run_script\n"
    code += f"raise SystemExit(run_script({str(SCRIPTS / 'add_two_tensors.py')!r}, []))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    (temporary / "add_two_tensors" / "model.onnx").unlink()
    assert run_script(str(SCRIPTS / "load_codegen_dir.py"), []) == 0
    assert capfd.readouterr().out == "loaded [2.0]\n"
    assert run_script(str(SCRIPTS / "add.py"), []) == 0
    assert "2., 2., 2., 2." in capfd.readouterr().out
