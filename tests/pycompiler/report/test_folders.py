"""The folder of a compilation is complete or absent, and the user's files stay."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from compiling import context, report_of

from pycompiler.build import build
from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.report.codegen_dir import clear_failure, write_failure, write_folder

Tensors = dict[str, torch.Tensor]


def test_a_failed_compile_leaves_the_older_folder(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    shared, sample = context("emu2:mini"), {"x": torch.ones(4)}
    shared.compile(lambda d: {"out": d["x"] * 2.0}, sample, folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(PycompilerError, match="dynamic"):
        shared.compile(lambda d: {"out": torch.nonzero(d["x"])}, sample, folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    failed = report_of(folder.with_name("out.failed"))
    assert failed["status"] == "failed"
    assert failed["error"]["code"] == "P0103"
    assert failed["host_fallback"] == []
    shared.compile(lambda d: {"out": d["x"] * 3.0}, sample, folder)
    assert {file.name for file in folder.parent.iterdir()} == {"out"}
    assert (folder / "model.onnx").read_bytes() != before["model.onnx"]


def test_files_of_the_user_stay(tmp_path: Path) -> None:
    folder, sample = tmp_path / "out", {"x": torch.ones(4)}
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "checkpoint.pt").write_text("weights")
    (folder / "model.vsm").write_text("old")
    (tmp_path / "link").symlink_to(folder)
    context("pfvm:cpu").compile(lambda d: {"out": d["x"] * 2.0}, sample, tmp_path / "link")
    assert {entry.name for entry in folder.iterdir()} == {
        *("mine", "model.onnx", "report.json", "out.txt", "out.json")
    }
    assert (folder / "mine" / "checkpoint.pt").read_text() == "weights"
    assert (tmp_path / "link").is_symlink()


def test_the_current_folder_and_its_parents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for folder, name in ((".", "here"), ("..", tmp_path.name), ("../here/sub", "sub")):
        for text in (b"1", b"2"):
            write_folder(Path(folder), {"report.json": text})
        assert Path(folder, "report.json").read_text() == "2"
        assert Path.cwd().samefile(here)
        failed = (here / folder).resolve().with_name(f"{name}.failed")
        write_failure(Path(folder), "why")
        assert (failed / "report.json").read_text() == "why"
        clear_failure(Path(folder))
        assert not failed.exists()


def test_a_folder_with_files_of_the_user_stays_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir(mode=0o700)
    (folder / "notes.txt").write_text("mine")
    before = folder.stat()
    write_folder(folder, {"report.json": b"1", "model.vsm": b"1"})
    write_folder(folder, {"report.json": b"2"})
    assert {file.name for file in folder.iterdir()} == {"notes.txt", "report.json"}
    after = folder.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    replace, steps = Path.replace, 0

    def full(self: Path, target: Path) -> Path:
        nonlocal steps
        steps -= 1
        if steps == 0:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    # Two links to files, and the link that they go through, which is made twice.
    for count in range(1, 5):
        steps = count
        with pytest.raises(PycompilerError, match="No space left") as caught:
            write_folder(folder, {"report.json": b"3", "model.vsm": b"3"})
        assert caught.value.code == "P0003"
        assert {file.name for file in folder.iterdir()} == {"notes.txt", "report.json"}
        assert (folder / "report.json").read_text() == "2"
        assert not (folder / "report.json").is_symlink()
        assert {entry.name for entry in tmp_path.iterdir()} == {"out"}


def test_the_functions_own_exception_leaves_a_report(tmp_path: Path) -> None:
    def function(d: Tensors) -> Tensors:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        context().compile(function, {"x": torch.ones(2)}, tmp_path / "out")
    assert report_of(tmp_path / "out.failed")["error"]["type"] == "LookupError"
    assert {file.name for file in tmp_path.iterdir()} == {"out.failed"}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    model = export(lambda d: {"out": d["x"] + 1}, {"x": torch.ones(2)})
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "/", "nul\0"):
        with pytest.raises(PycompilerError) as caught:
            build(lambda: model, "pfvm:cpu", None, None, Path(folder))
        assert caught.value.code == "P0003"
        assert "Errno" not in caught.value.message
    assert (tmp_path / "file").read_text() == "mine"


def test_files_are_the_same_whatever_was_compiled_before(tmp_path: Path) -> None:
    shared, sample = context("emu2:mini"), {"x": torch.ones(4)}
    for name in ("one", "two"):
        shared.compile(lambda d: {"out": d["x"] * 2.0}, sample, tmp_path / name)
    for file in ("model.vsm", "model.app", "l3ir.txt"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    onnx.checker.check_model(onnx.load(tmp_path / "one" / "model.onnx"))
