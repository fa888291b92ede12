"""Runs the tests with every clone of the kernels and several numbers of threads.

``python tests/matrix.py`` (or ``make test-matrix``) runs the emulator's Rust tests (conformance,
properties, fuzz) and its Python tests with every level of the host and 1, 2 and 8 threads. Each
round first proves that it has the wanted level and number of threads. Exit code 1 if a round fails;
the failed rounds are named at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THREADS = (1, 2, 8)
SETTINGS = "from emu2 import _core; print(_core.level(), _core.threads())"


def printed(code: str, environment: dict[str, str]) -> str:
    """Return the output of Python."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", nargs="+", help="only these (default: all that the host has)")
    parser.add_argument("--threads", nargs="+", type=int, default=THREADS)
    parser.add_argument("--rust", nargs="*", help="further arguments of cargo test")
    parser.add_argument("--python", nargs="*", help="arguments of pytest (default: tests/emu2)")
    given = parser.parse_args()
    there = printed("from emu2 import _core; print(*_core.levels())", dict(os.environ)).split()
    levels = given.levels or there
    missing = [level for level in levels if level not in there]
    if missing:
        print(f"this host has no {', '.join(missing)}; it has {', '.join(there)}", file=sys.stderr)
        return 1
    searches = ["annealing", "choosing", "packing", "placing", "switches"]
    crates = ["emu2", "sorting", *searches, "emu2-python"]
    packages = [word for crate in crates for word in ("--package", crate)]
    cargo = ["cargo", "test", "--release", *packages, *(given.rust or [])]
    pytest = [sys.executable, "-m", "pytest", *(given.python or ["tests/emu2"])]
    failed = []
    for level in levels:
        for threads in given.threads:
            name = f"{level}, {threads} thread{'s' if threads > 1 else ''}"
            variables = {"EMU2_LEVEL": level, "RAYON_NUM_THREADS": str(threads)}
            environment = {**os.environ, **variables}
            if printed(SETTINGS, environment) != f"{level} {threads}":
                failed.append(f"{name}: the setting does not hold")
                continue
            for tool, command in (("cargo test", cargo), ("pytest", pytest)):
                start = time.monotonic()
                code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
                said = "passed" if code == 0 else f"failed with {code}"
                print(f"== {name}: {tool} {said}, {time.monotonic() - start:.0f} s", flush=True)
                if code != 0:
                    failed.append(f"{name}: {tool}")
    print("failed: " + "; ".join(failed) if failed else "all rounds passed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
