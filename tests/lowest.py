"""Tests the lower ends of the ranges in pyproject.toml: ``python tests/lowest.py [TEST ...]``.

It makes an environment in ``build/lowest``, installs emu2 with the extras ``compiler``, ``tools``,
``cluster`` and ``demo``, each package in the first versions that its range allows, and runs a part
of the tests there, or those that are named. It downloads PyTorch, so `make test` does not run it.
``--constraints`` only prints the versions.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build/lowest"
EXTRAS = ("compiler", "tools", "cluster", "demo")
#: What runs the tests, in any version.
RUNNERS = ("expecttest", "hypothesis", "pytest", "pytest-benchmark", "pytest-xdist")
TESTS = (
    *("tests/emu2/test_api.py", "tests/emu2/test_lsp.py", "tests/emu2/test_debug_command.py"),
    *("tests/pycompiler/frontend/test_frontend.py", "tests/pycompiler/mlsdk"),
    *("tests/pycompiler/app", "tests/pycompiler/runtime", "tests/pycompiler/test_compatibility.py"),
    *("tests/pycompiler/pfvm", "tests/pycompiler/torch_backend/test_backend.py"),
)


def lowest() -> list[str]:
    """Return a constraint for each package: the first series of versions in its range."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["optional-dependencies"][extra] for extra in EXTRAS]
    wanted = [*project["dependencies"], *(one for group in groups for one in group)]
    ranges = (re.fullmatch(r"([\w-]+)>=([\d.]+),<([\d.]+)", one) for one in wanted)
    return [f"{match[1]}=={match[2]}.*" for match in ranges if match]


def main() -> int:
    """Install, and run the tests."""
    if sys.argv[1:] == ["--constraints"]:
        print("\n".join(lowest()))
        return 0
    venv.create(FOLDER, with_pip=True, clear=True)
    python = str(FOLDER / "bin/python")
    constraints = FOLDER / "constraints.txt"
    constraints.write_text("\n".join(lowest()) + "\n", encoding="utf-8")
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", str(constraints)]
    subprocess.run(
        [*install, "--editable", f".[{','.join(EXTRAS)}]", *RUNNERS], cwd=ROOT, check=True
    )
    tests = sys.argv[1:] or TESTS
    return subprocess.run(
        [python, "-m", "pytest", "--numprocesses", "auto", *tests], cwd=ROOT
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
