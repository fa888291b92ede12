"""`python -m pycompiler.mlsdk install` and `uninstall`: what they write, remove and leave alone."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from pycompiler.mlsdk import install as packages
from pycompiler.mlsdk.__main__ import main

ROOT = Path(__file__).parents[3]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def found(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mlsdk", *map(str, arguments)])
        return (main(), *capsys.readouterr())

    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_it_removes_what_it_wrote(tmp_path: Path, run: Run) -> None:
    (tmp_path / "other.py").write_text("")
    code, out, err = run("install", "--target", tmp_path)
    assert (code, err) == (0, "")
    assert out == f"wrote {tmp_path / 'fx2onnx'}\nwrote {tmp_path / 'mlsdk'}\n"
    first = files(tmp_path)
    assert run("install", "--target", tmp_path)[0] == 0  # again, over its own files
    assert files(tmp_path) == first
    (tmp_path / "mlsdk" / "__pycache__").mkdir()
    (tmp_path / "mlsdk" / "__pycache__" / "storage.pyc").write_text("")
    code, out, err = run("uninstall", "--target", tmp_path)
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"removed {tmp_path / n}" for n in ("fx2onnx", "mlsdk")]
    assert [path.name for path in tmp_path.iterdir()] == ["other.py"]
    assert run("uninstall", "--target", tmp_path) == (0, f"nothing to remove in {tmp_path}\n", "")


def foreign_package(site: Path) -> None:
    (site / "mlsdk").mkdir()
    (site / "mlsdk" / "__init__.py").write_text("theirs = True\n")


def foreign_module(site: Path) -> None:
    (site / "fx2onnx.py").write_text("theirs = True\n")


def changed_file(site: Path) -> None:
    packages.install(site)
    (site / "mlsdk" / "storage.py").write_text("mine = True\n")


def new_file(site: Path) -> None:
    packages.install(site)
    (site / "mlsdk" / "mine.py").write_text("mine = True\n")


def damaged_record(site: Path) -> None:
    packages.install(site)
    (site / "mlsdk" / packages.RECORD).write_text("[")


def link(site: Path) -> None:
    packages.install(site / "elsewhere")
    (site / "mlsdk").symlink_to(site / "elsewhere" / "mlsdk")


@pytest.mark.parametrize(
    "prepare", [foreign_package, foreign_module, changed_file, new_file, damaged_record, link]
)
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_it_leaves_what_others_wrote(
    tmp_path: Path, run: Run, prepare: Callable[[Path], None], command: str
) -> None:
    prepare(tmp_path)
    before = files(tmp_path)
    code, out, err = run(command, "--target", tmp_path)
    assert (code, out) == (1, "")
    assert err.count("error[P0011]") == 1
    assert files(tmp_path) == before


def test_a_package_elsewhere_in_the_environment(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hide ours, or ours would hide it."""
    theirs, site = tmp_path / "theirs", tmp_path / "site"
    theirs.mkdir()
    foreign_package(theirs)
    monkeypatch.setattr(packages, "site_packages", lambda: site)
    monkeypatch.setattr(sys, "path", [*sys.path, str(theirs)])
    code, _, err = run("install")
    assert (code, site.exists()) == (1, False)
    assert f"`{theirs / 'mlsdk' / '__init__.py'}` was not written by" in err


def test_a_folder_that_cannot_be_written(tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = run("install", "--target", tmp_path / "file" / "site")
    assert (code, err.count("error[")) == (1, 1)
    assert "error[P0003]" in err


@pytest.mark.parametrize("arguments", [["--target"], ["there"], ["--target", "a", "b"]])
def test_wrong_arguments(run: Run, arguments: list[str]) -> None:
    code, out, err = run("install", *arguments)
    assert (code, out) == (2, "")
    assert "error[P0007]: unknown arguments" in err


def test_a_virtual_environment(tmp_path: Path) -> None:
    """The packages go into the environment of the Python that runs the command."""
    folder = tmp_path / "env"
    venv.create(folder, system_site_packages=False)
    code = (
        f"import sys; sys.path += {[str(ROOT), *sys.path]!r}\n"
        "from pycompiler.mlsdk.install import install, uninstall\n"
        "print(*install()); print(*uninstall())"
    )
    done = subprocess.run(
        [folder / "bin" / "python", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    wrote, removed = done.stdout.splitlines()
    assert wrote == removed
    assert len(wrote.split()) == len(packages.PACKAGES)
    assert all(Path(place).is_relative_to(folder) for place in wrote.split())


def test_no_wheel_has_these_names() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    ours = settings["tool"]["maturin"]["python-packages"]
    assert not {*packages.PACKAGES} & {*ours}
    assert [name for name in packages.PACKAGES if (ROOT / name).exists()] == []
