"""Times the C interface: ``python benches/host_programs.py``, a part of ``make bench``.

A launch should cost at most 10 microseconds beside the kernel's own time (the kernel here is one
idle step), and copies should have 0.8 of the speed of memcpy. EMU2_SDK_TREE names a staged tree of
the SDK; without it, one is built. The exit code is 0 even if a target is not met.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).parents[1]
LAUNCH, COPY = 10.0, 0.8


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
        text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    for row in text.splitlines():
        what, value = row.rsplit(" ", 1)
        is_launch = what.endswith("launch")
        met = float(value) <= LAUNCH if is_launch else float(value) >= COPY
        unit = "us" if is_launch else "of memcpy"
        bound = f"at most {LAUNCH:g}" if is_launch else f"at least {COPY:g}"
        print(f"{what:<18} {value:>6} {unit:<10} {bound:<13} {'met' if met else 'not met'}")


if __name__ == "__main__":
    main()
