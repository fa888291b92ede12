"""``python -m pycompiler.demo``: two functions, an MLP and a CNN, compared with PyTorch."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from emu2.streams import leave, open_closed_streams, tell

from ..console import outcome, show_warnings_plainly, table_console
from .digits import BOUNDS, run_digits, trained
from .functions import cases, run_case

_LARGEST = 1e-5  # difference of the functions from PyTorch


def run(out: Path, device: str, console: Console) -> list[str]:
    """Run everything and print it; return the titles of what does not agree with PyTorch."""
    wrong = []
    for case in cases():
        if not run_case(case, out / case.name, device, console) < _LARGEST:
            wrong.append(case.title)
    for digits in trained():
        for float_dtype in BOUNDS:
            folder = out / f"digits_{digits.name}_{float_dtype}"
            if not run_digits(digits, float_dtype, folder, device, console):
                wrong.append(f"digits, {digits.title}, in {float_dtype}")
    return wrong


def main() -> int:
    """Entry point; the exit code."""
    open_closed_streams()
    parser = argparse.ArgumentParser(prog="python -m pycompiler.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo_out"), help="folder to write")
    parser.add_argument("--device", default="emu2", help="what to compile for")
    arguments = parser.parse_args()
    show_warnings_plainly()
    return outcome(lambda: _told(run(arguments.out, arguments.device, table_console())))


def _told(wrong: list[str]) -> int:
    for title in wrong:
        tell(f"error: {title}: the difference is too large")
    return 1 if wrong else 0


if __name__ == "__main__":
    leave(main())
