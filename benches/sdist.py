"""Makes the sdist, with all crates that its build needs: ``python benches/sdist.py [FOLDER]``.

``pip install`` of it needs Rust and maturin, and no network for crates. ``--check`` builds a wheel
from it with cargo offline and without the crates of this computer.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What the extension module is built from; the other members of the workspace stay out.
LEFT_OUT = ("benches", "emu2/capi")
CONFIG = """[source.crates-io]
replace-with = "vendored"

[source.vendored]
directory = "vendor"
"""


def stage(tree: Path) -> None:
    """Copy what git knows, without what only tests and benches need, and add the crates."""
    archive = tree.with_suffix(".tar")
    subprocess.run(["git", "archive", "--output", str(archive), "HEAD"], cwd=ROOT, check=True)
    with tarfile.open(archive) as packed:
        packed.extractall(tree, filter="data")
    workspace = tree / "Cargo.toml"
    text = workspace.read_text(encoding="utf-8")
    for member in LEFT_OUT:
        text = text.replace(f'"{member}", ', "")
    workspace.write_text(text, encoding="utf-8")
    for path in tree.rglob("Cargo.toml"):
        manifest = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(?ms)^\[dev-dependencies\]\n.*?(?=^\[|\Z)", "", manifest))
    cargo("vendor", "--quiet", "vendor", cwd=tree)
    (tree / ".cargo").mkdir()
    (tree / ".cargo/config.toml").write_text(CONFIG, encoding="utf-8")


def cargo(*words: str, cwd: Path) -> None:
    """Run cargo; what it says goes to stderr."""
    subprocess.run(["cargo", *words], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def maturin(*words: str, cwd: Path, **variables: str) -> None:
    """Run maturin."""
    command = [sys.executable, "-m", "maturin", *words]
    subprocess.run(command, cwd=cwd, check=True, env={**os.environ, **variables})


def build(folder: Path) -> Path:
    """Write the sdist into a folder, and return its path."""
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work) / "tree"
        stage(tree)
        maturin("sdist", "--out", str(folder), cwd=tree)
    return next(folder.glob("*.tar.gz"))


def check(sdist: Path) -> None:
    """Build a wheel from the sdist without a network and with an empty cargo."""
    with tempfile.TemporaryDirectory() as work:
        with tarfile.open(sdist) as packed:
            packed.extractall(work, filter="data")
        (tree,) = Path(work).glob("emu2-*")
        home = {"CARGO_HOME": f"{work}/cargo", "CARGO_NET_OFFLINE": "true"}
        maturin("build", "--release", "--out", f"{work}/wheel", cwd=tree, **home)
        (wheel,) = Path(f"{work}/wheel").glob("*.whl")
        print(f"{wheel.name} was built from it without a network")


def main() -> int:
    """Make the sdist, and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build/sdist")
    parser.add_argument("--check", action="store_true", help="build a wheel from it, offline")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    sdist = build(given.folder)
    print(f"{sdist}  {sdist.stat().st_size / 1e6:.1f} MB")
    if given.check:
        check(sdist)
    return 0


if __name__ == "__main__":
    sys.exit(main())
