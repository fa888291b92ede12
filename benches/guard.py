"""Compares the instruction counts of five kernels with the record: ``make guard``.

callgrind counts the instructions of a region of 32 steps on the full chip, for every level that
valgrind knows (it has no AVX-512, so v4 cannot be counted). The counts do not depend on the clock
or on the load of the host. Exit code 1 if a count differs from the record by more than 5 %, up or
down. ``--bless`` writes the counts to the record.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).with_suffix(".toml")
LEVELS = ("baseline", "v3")
TOLERANCE = 0.05

Counts = dict[str, dict[str, int]]
"""Instructions by level and kernel."""


def fail(message: str, remedy: str) -> None:
    """Exit with one diagnostic."""
    sys.exit(f"error: {message}\n  help: {remedy}")


def build() -> Path:
    """Build the bench and return its path."""
    command = ["cargo", "bench", "--package", "emu2-benches", "--bench", "guard", "--no-run"]
    # Incremental builds produce different code.
    environment = {**os.environ, "CARGO_INCREMENTAL": "0"}
    done = subprocess.run(
        [*command, "--message-format=json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        fail("the bench does not build", "see what cargo says above")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    made = [m["executable"] for m in messages if m.get("target", {}).get("name") == "guard"]
    return Path(made[-1])


def count(bench: Path, kernel: str, level: str) -> int:
    """Return the instructions of a kernel."""
    command = [
        "valgrind",
        "--tool=callgrind",
        "--toggle-collect=*guard*counted*",
        "--callgrind-out-file=/dev/null",
        str(bench),
        kernel,
    ]
    environment = {**os.environ, "EMU2_LEVEL": level, "RAYON_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode != 0 or found is None or int(found[1]) == 0:
        fail(f"callgrind counts nothing for {kernel} at {level}", done.stderr.strip()[-500:])
    assert found is not None
    return int(found[1])


def changes(recorded: Counts, counted: Counts) -> list[str]:
    """Return a line for every count that differs from the record by more than the tolerance."""
    lines = []
    for level, kernels in counted.items():
        for kernel, now in kernels.items():
            before = recorded.get(level, {}).get(kernel)
            if before is None:
                lines.append(f"{level} {kernel}: {now} instructions, none on record")
            elif abs(now / before - 1) > TOLERANCE:
                lines.append(f"{level} {kernel}: {now} instructions, {now / before - 1:+.1%}")
    return lines


def record(counted: Counts, compiler: str, target: str) -> str:
    """Return the text of the record."""
    lines = [
        "# Instructions of benches/guard.py; `make guard BLESS=1` writes this file.",
        f'compiler = "{compiler}"',
        f'target = "{target}"',
    ]
    for level, kernels in counted.items():
        lines += ["", f"[counts.{level}]", *(f"{name} = {n}" for name, n in kernels.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Count, then compare with the record or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bless", action="store_true", help="write the counts to the record")
    parser.add_argument("--built", type=Path, help="a bench that was built before")
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        fail("valgrind is not installed", "install it, with `apt-get install valgrind` for example")
    bench = given.built or build()
    kernels = subprocess.run([bench], capture_output=True, text=True, check=True).stdout.split()
    version = ["rustc", "--version"]
    compiler = subprocess.run(version, cwd=ROOT, capture_output=True, text=True, check=True)
    compiler_name = compiler.stdout.strip()
    target = f"{platform.system()} {platform.machine()}"
    counted: Counts = {}
    for level in LEVELS:
        for kernel in kernels:
            now = counted.setdefault(level, {})[kernel] = count(bench, kernel, level)
            print(f"{level:9} {kernel:11} {now:12,}", flush=True)
    if given.bless:
        RECORD.write_text(record(counted, compiler_name, target))
        return 0
    on_record = tomllib.loads(RECORD.read_text())
    found = changes(on_record["counts"], counted)
    print("\n".join(found) if found else f"all within {TOLERANCE:.0%} of the record")
    for name, now in (("compiler", compiler_name), ("target", target)):
        if found and now != on_record[name]:
            print(f"the record is of {on_record[name]}, this is {now}: that may be all")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
