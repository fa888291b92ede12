"""Checks the files and the size of the wheel: ``python benches/wheel.py [WHEEL]``.

Without WHEEL, a wheel is built. Exit code 1 if the wheel has a file that no pattern allows, lacks a
file that users need, or is too large.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 4_550_000

ALLOWED = (
    r"emu2/(\w+/)?\w+\.py",
    r"emu2/explain/\w+\.toml",
    r"emu2/new/templates/(\w+/)+[\w.]+\.template",
    r"emu2/(py\.typed|_core\.pyi|_core\.abi3\.so|_core\.pyd)",
    r"emu2_pytest/(\w+\.py|py\.typed)",
    r"pycompiler/(\w+/)*(\w+\.py|py\.typed)",
    r"pycompiler/(\w+/)?\w+\.txt",
    r"pycompiler/presets/\w+\.json",
    r"pycompiler/dashboard/\w+\.(js|css|html)",
    r"pycompiler/mlsdk/codegen_tree/(\w+/)*[\w-]+(\.\w+)?",
    r"pycompiler/(app/gpfnapp\.fbs|errors/causes\.toml|pfvm/(nans|integer_reductions)\.toml)",
    r"emu2-[^/]+\.dist-info/(METADATA|WHEEL|RECORD|entry_points\.txt|sboms/[^/]+|licenses/LICENSE)",
)
"""Files that a wheel may hold."""

NEEDED = (
    "emu2/__init__.py",
    "emu2/_core.pyi",
    "emu2/bench/command.py",
    "emu2/cli.py",
    "emu2/explain/assembly.toml",
    "emu2/explain/running.toml",
    "emu2/explain/sanitizer.toml",
    "emu2/explain/spec.toml",
    "emu2/explain/words.toml",
    "emu2/new/templates/kernel/test_square.vsm.template",
    "emu2/py.typed",
    "emu2_pytest/__init__.py",
    "emu2_pytest/py.typed",
    "pycompiler/__init__.py",
    "pycompiler/cli.py",
    "pycompiler/dashboard/base.js",
    "pycompiler/dashboard/index.html",
    "pycompiler/errors/causes.toml",
    "pycompiler/mlsdk/importable/mlsdk/__init__.py",
    "pycompiler/mlsdk/importable/mlsdk/py.typed",
    "pycompiler/pfvm/nans.toml",
    "pycompiler/pfvm/integer_reductions.toml",
    "pycompiler/presets/O3.json",
    "pycompiler/py.typed",
)
"""Files that a wheel must hold besides the compiled part."""


def build(folder: Path) -> Path:
    """Build a wheel into `folder`, with cargo's usual target folder, and return its path.

    It is packed as tightly as pip can read: that saves 70 kB in 3 MB.
    """
    command = [sys.executable, "-m", "maturin", "build", "--profile", "wheel", "--out", str(folder)]
    command += ["--compression-level", "9"]
    subprocess.run([*command, "--quiet"], cwd=ROOT, check=True)
    return next(folder.glob("*.whl"))


def faults(names: list[str], size: int) -> list[str]:
    """Return a line for each fault of a wheel with these files and this size."""
    files = [name for name in names if not name.endswith("/")]
    lines = [
        f"{name} does not belong into the wheel"
        for name in files
        if not any(re.fullmatch(pattern, name) for pattern in ALLOWED)
    ]
    lines += [f"{name} is missing" for name in NEEDED if name not in files]
    if not any(re.fullmatch(r"emu2/_core\.(abi3\.so|pyd)", name) for name in files):
        lines.append("the compiled part is missing")
    if size > MOST_BYTES:
        lines.append(f"{size} bytes are more than {MOST_BYTES}")
    return lines


def main() -> int:
    """Print the size and the faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, nargs="?")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = given.wheel or build(Path(folder))
        size = wheel.stat().st_size
        found = faults(zipfile.ZipFile(wheel).namelist(), size)
    met = "met" if size <= MOST_BYTES else "not met"
    print(f"wheel  {size / 1e6:.2f} MB  target: at most {MOST_BYTES / 1e6:.2f} MB  {met}")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
