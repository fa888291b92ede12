"""Times the C interface: ``python benches/host_programs.py``, a part of ``make bench``.

A launch should cost at most 10 microseconds beside the kernel's own time (the kernel here is one
idle step), copies should have 0.8 of the speed of memcpy, and a long kernel should make as many
steps a second from C as from Python. EMU2_SDK_TREE names a staged tree of
the SDK; without it, one is built. The exit code is 0 even if a target is not met.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import emu2

TREE = Path(__file__).parents[1]
LAUNCH, COPY, STEPS = 10.0, 0.8, 0.9
LINES = 2000
KERNEL = "dvadd $lm0v $ln0v $lr0v\nfvmul $lm0v $ln0v $ls0v\n" * (LINES // 2)
"""A kernel of as many steps as lines."""
ROUNDS = 20
TURNS = 3


def staged(folder: Path) -> Path:
    """Return a staged tree."""
    given = os.environ.get("EMU2_SDK_TREE")
    if given is not None:
        return Path(given)
    script = TREE / "emu2" / "capi" / "sdk" / "stage.py"
    subprocess.run([sys.executable, script, folder / "tree"], check=True)
    return folder / "tree"


def main() -> None:
    """Build the program, run it, and print its table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sdk, program = staged(folder), folder / "bench"
        source = Path(__file__).with_suffix(".c")
        flags = ("-O2", f"-I{sdk}/include", f"-L{sdk}/lib", f"-Wl,-rpath,{sdk}/lib", "-lmnc2")
        subprocess.run(["cc", source, "-o", program, *flags], check=True)
        kernel = folder / "kernel.vsm"
        kernel.write_text(KERNEL)
        # In turns, because the speed of a computer that does other work changes.
        runs = [(run_of_python(), rows_of(program, kernel)) for _ in range(TURNS)]
    for what in runs[0][1]:
        is_time = what == "run" or what.endswith("launch")
        value = f"{(min if is_time else max)(rows[what] for _, rows in runs):g}"
        if what == "run":
            ours, theirs = LINES / float(value), LINES / min(seconds for seconds, _ in runs)
            show("steps/s in C", f"{ours / theirs:.2f}", "of Python", STEPS, at_most=False)
            print(
                f"{'':<18} {ours / 1e3:.0f} thousand steps a second, {theirs / 1e3:.0f} in Python"
            )
        elif what.endswith("launch"):
            show(what, value, "us", LAUNCH, at_most=True)
        else:
            show(what, value, "of memcpy", COPY, at_most=False)


def rows_of(program: Path, kernel: Path) -> dict[str, float]:
    """Return what the program in C measures, by name."""
    text = subprocess.run([program, kernel], check=True, capture_output=True, text=True).stdout
    rows = (row.rsplit(" ", 1) for row in text.splitlines())
    return {what: float(value) for what, value in rows}


def run_of_python() -> float:
    """Return the seconds of one run of the kernel from Python."""
    device = emu2.Device()
    kernel = device.load_kernel(KERNEL.encode(), filename="kernel.vsm")
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        device.exec(kernel)
        best = min(best, time.perf_counter() - begin)
    return best


def show(what: str, value: str, unit: str, bound: float, *, at_most: bool) -> None:
    """Print a row of the table."""
    met = float(value) <= bound if at_most else float(value) >= bound
    target = f"{'at most' if at_most else 'at least'} {bound:g}"
    print(f"{what:<18} {value:>6} {unit:<10} {target:<13} {'met' if met else 'not met'}")


if __name__ == "__main__":
    main()
