"""The wheel holds the right files, and works from any folder, even the checkout's root.

`make test-long` builds a wheel, which takes minutes: cargo compiles the bindings again. `make test`
takes the files that pyproject.toml chooses, and the compiled part that the tests import.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

import pytest

import emu2._core

ROOT = Path(__file__).parents[2]
RUN = """
import emu2
spec = emu2.Spec.load("mini")
emu2.Machine(spec).run(emu2.assemble("nop", spec))
print(emu2.__file__)
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheel", ROOT / "benches" / "wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this tree, built once for all processes of the test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = list(folder.glob("*.whl"))
        return built[0] if built else script.build(folder)


def test_no_level_of_the_bindings_slows_the_kernels() -> None:
    """With LTO, the level of the module's crate is that of everything in it."""
    profile = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]["wheel"]
    assert "emu2-python" not in profile["package"]
    assert "opt-level" not in profile


def chosen() -> list[str]:
    """Return the files of the packages that pyproject.toml does not exclude."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]
    paths = (one if isinstance(one, str) else one["path"] for one in settings["exclude"])
    excluded = [path.replace("**", "*") for path in paths]
    files = (
        path.relative_to(ROOT).as_posix()
        for package in settings["python-packages"]
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    )
    return [f for f in files if not any(fnmatchcase(f, pattern) for pattern in excluded)]


@pytest.fixture(scope="module", params=["chosen", pytest.param("wheel", marks=pytest.mark.long)])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that an install puts the packages into."""
    folder: Path = tmp_path_factory.mktemp("site")
    if request.param == "wheel":
        zipfile.ZipFile(request.getfixturevalue("wheel")).extractall(folder)
        return folder
    compiled = Path(str(emu2._core.__file__))
    for file in chosen():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, folder / file)
    (folder / "emu2" / compiled.name).symlink_to(compiled)
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python part of a checkout without compiled parts."""
    folder = tmp_path_factory.mktemp("checkout")
    unbuilt = shutil.ignore_patterns("*.so", "src", "tests", "fuzz", "python", "__pycache__")
    shutil.copytree(ROOT / "emu2", folder / "emu2", ignore=unbuilt)
    return folder


def python(code: str, cwd: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_the_chosen_files_are_those_of_a_wheel(script: ModuleType) -> None:
    assert script.faults([*chosen(), "emu2/_core.abi3.so"], 1) == []


@pytest.mark.long
def test_the_wheel_holds_what_it_should(script: ModuleType, wheel: Path) -> None:
    assert script.faults(zipfile.ZipFile(wheel).namelist(), wheel.stat().st_size) == []


@pytest.mark.parametrize(
    "stray",
    [
        "emu2/target/criterion/report/index.html",
        "emu2/src/lib.rs",
        "emu2/Cargo.toml",
        "emu2/tests/naive/tree.toml",
        "emu2/tests/naive/mod.rs",
        "emu2/fuzz/Cargo.toml",
        "emu2/asm_fuzz.proptest-regressions",
        "pycompiler/packing/src/lib.rs",
        "pycompiler/packing/Cargo.toml",
        "pycompiler/choosing/src/lib.rs",
        "pycompiler/switches/src/lib.rs",
        "tests/conftest.py",
        "benches/guard.py",
    ],
)
def test_a_stray_file_is_noticed(script: ModuleType, stray: str) -> None:
    good = [*script.NEEDED, "emu2/_core.abi3.so"]
    assert script.faults(good, 1) == []
    assert script.faults([*good, stray], 1) == [f"{stray} does not belong into the wheel"]


def test_a_missing_file_and_too_many_bytes_are_noticed(script: ModuleType) -> None:
    lines = script.faults([], script.MOST_BYTES + 1)
    assert len(lines) == len(script.NEEDED) + 2


def test_it_works_from_the_root_of_a_checkout(
    installed: Path, checkout: Path, tmp_path: Path
) -> None:
    for folder, package in ((tmp_path, installed), (checkout, checkout)):
        done = python(RUN, folder, installed)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.strip() == str(package / "emu2" / "__init__.py")


def test_another_version_in_the_checkout_is_one_line(
    installed: Path, checkout: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(checkout, other)
    with (other / "emu2" / "_core.pyi").open("a") as interface:
        interface.write("def new() -> None: ...\n")
    done = python("import emu2", other, installed)
    assert done.returncode == 1
    assert "are of different versions: run `pip install .` in" in done.stderr.splitlines()[-1]


def test_a_checkout_that_is_not_built_is_one_line(checkout: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import emu2"],
        cwd=checkout,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == f"ImportError: emu2 is not built: run `pip install .` in {checkout}"
