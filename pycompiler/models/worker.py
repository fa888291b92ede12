"""The process of one model: ``python -m pycompiler.models.worker NAME MODE BATCH DEVICE FOLDER``.

It writes its row to a file in FOLDER. :mod:`.processes` starts it, and stops it at a limit.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .measure import measure, write_row
from .names import find

ROW = "row.json"


def main(arguments: list[str]) -> None:
    """Measure one model and write its row."""
    name, mode, batch, device, folder = arguments
    out = Path(folder)
    row = measure(find(name), mode, int(batch), device, out / "codegen")
    write_row(row, out / ROW)


if __name__ == "__main__":
    main(sys.argv[1:])
