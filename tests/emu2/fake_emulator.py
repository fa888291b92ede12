"""A second emulator for the tests: emu2 under the vendor's flags, with a fault if asked for.

``python fake_emulator.py FAULT -i program.asm -d dump.txt``. FAULT is none, or ``bit:N`` (the word
of the dump's line N has another lowest bit), ``cut:N`` (the dump ends after N lines), ``text``
(other comments, spaces and decimal numbers, the same bits), ``crash``, ``killed``, ``silent``,
``slow``.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

from emu2.words_cli import gpfn3_package_main


def main() -> None:
    fault, *arguments = sys.argv[1:]
    kind, _, number = fault.partition(":")
    if kind == "crash":
        sys.exit("no board is there")
    if kind == "killed":
        os.abort()
    if kind == "slow":
        time.sleep(60)
    gpfn3_package_main.main(args=[*arguments, "--spec", "mini"], standalone_mode=False)
    path = Path(arguments[arguments.index("-d") + 1])
    lines = path.read_text().splitlines()
    if kind == "silent":
        path.unlink()
        return
    if kind == "bit":
        at = int(number)
        *_, last = re.finditer(r"0x([0-9A-Fa-f]+)", lines[at].split("#")[0])
        flipped = f"{int(last[1], 16) ^ 1:X}"
        lines[at] = lines[at][: last.start(1)] + flipped + lines[at][last.end(1) :]
    if kind == "cut":
        lines = lines[: int(number)]
    if kind == "text":
        lines = ["starting", *(re.sub(r"f:[^,]*", "f: ?", line.split("#")[0]) for line in lines)]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
