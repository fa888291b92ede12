"""An installed SDK, and programs that are built against it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

TREE = Path(__file__).parents[2]
SOURCES = TREE / "tests" / "data" / "sdk"
SECONDS = 120
"""A program that hangs is stopped after this time."""
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")


def run(
    *command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it printed."""
    path = os.pathsep.join(filter(None, (str(TREE), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, **(env or {})}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def done(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command that must succeed, and return its output."""
    result = run(*command, cwd=cwd, env=env)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


def libraries() -> Path:
    """Return the folder of the C interface's libraries, as `make rust` has built them.

    Naming Python's part and a test lets cargo pick the same features, without building that part.
    """
    command = ["cargo", "test", "--release", "--no-run", "--message-format", "json"]
    command += ["--package", "emu2-capi", "--package", "emu2-python", "--test", "abi"]
    told = subprocess.run(command, cwd=TREE, check=True, stdout=subprocess.PIPE).stdout
    made = (json.loads(line) for line in told.splitlines())
    library = next(one for one in made if one.get("target", {}).get("name") == "emu2_capi")
    return Path(library["filenames"][0]).parent


@cache
def staged() -> Path:
    """Return the tree of the SDK, built from the sources unless EMU2_SDK_TREE names one."""
    given = os.environ.get("EMU2_SDK_TREE")
    if given is not None:
        return Path(given)
    tree = Path(mkdtemp(prefix="emu2-sdk-")) / "tree"
    script = TREE / "emu2" / "capi" / "sdk" / "stage.py"
    environment = {**os.environ, "PYTHONPATH": str(TREE)}
    command = [sys.executable, script, tree, "--libraries", libraries()]
    subprocess.run(command, check=True, env=environment)
    return tree


@cache
def root() -> Path:
    """Return an installed SDK, once for all tests."""
    installed = Path(mkdtemp(prefix="emu2-sdk-")) / "root"
    command = (sys.executable, "-m", "emu2.cli", "sdk", "install", installed)
    done(*command, env={"EMU2_SDK_TREE": str(staged())})
    return installed


@cache
def kernels() -> Path:
    """Return a folder with the kernels of the programs, packed."""
    built = root() / "kernels" / "_build"
    built.mkdir(parents=True)
    for source in SOURCES.glob("*.vsm"):
        done(root() / "bin" / "assemble3", source, "--output-file", built / source.stem, "--loader")
    return built


def folder_of(path: Path) -> Path:
    """Make a folder of a program, with the kernels."""
    (path / "_build").mkdir(parents=True)
    for kernel in kernels().iterdir():
        shutil.copy(kernel, path / "_build")
    return path


LINKS = {
    "archive and libraries": (
        "g++",
        "{emu} {lib} {o} {archive} -o {out} -lrt -lm -fopenmp -lgpfn3 -lmnc2",
    ),
    "libraries": ("g++", "{o} -o {out} {emu} {lib} -lmnc2 -lgpfn3 -lstdc++ -lrt -lm -fopenmp"),
    "libraries by gcc": ("gcc", "{o} -o {out} {emu} {lib} -lmnc2 -lgpfn3 -lstdc++ -lpthread -lm"),
    "libraries in order of the reference": (
        "g++",
        "{o} -o {out} {lib} -lmnc2 -lgpfn3 -lstdc++ -lrt -lm -fopenmp",
    ),
    "one library": ("gcc", "{o} -o {out} {lib} -lmnc2"),
    "archive": ("gcc", "{o} -o {out} {archive} -lrt -lm -lpthread -lstdc++ -fopenmp"),
}
"""The link lines of public build files."""


def build(folder: Path, name: str, how: str, *flags: str, compiler: str = "gcc") -> Path:
    """Compile and link a program of the tests."""
    sdk = root()
    source = SOURCES / f"{name}.c"
    done(compiler, *flags, f"-I{sdk}/include", f"-I{SOURCES}", "-c", source, "-o", folder / "o.o")
    driver, line = LINKS[how]
    if compiler.startswith("clang"):
        driver = "clang" if driver == "gcc" else "clang++"
        line = line.replace("-fopenmp", "")
    words = line.format(
        emu=f"-L{sdk}/lib/emu-lib",
        lib=f"-L{sdk}/lib",
        archive=f"{sdk}/lib/libmnc2.a",
        o=folder / "o.o",
        out=folder / name,
    ).split()
    done(driver, *words)
    return folder / name


def passes(program: Path, backend: str = "lib/emu-lib", **variables: str) -> None:
    """Run a program, which says that it passed."""
    variables = {"LD_LIBRARY_PATH": f"{root()}/{backend}", "MNC2_EMU_CONFIG": "x", **variables}
    result = run(program, cwd=program.parent, env=variables)
    assert (result.returncode, result.stdout) == (0, "PASS\n"), result.stdout + result.stderr
