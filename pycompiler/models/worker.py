"""The work of the process of one model: it measures the model and writes its rows to files.

:mod:`.processes` starts it, and stops it at a limit.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..files import write_file
from .catalogue import Entry

LOG = "log.txt"


def row_file(folder: Path, mode: str) -> Path:
    """Return the file of the row of a mode."""
    return folder / f"{mode}.json"


def begin(folder: Path) -> None:
    """Take a session of its own, and send what libraries print to a file.

    Ctrl-C then reaches only the process that waits, which ends this one.
    """
    os.setsid()
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())


def work(entry: Entry, modes: Sequence[str], batch: int, device: str, folder: Path) -> None:
    """Measure a model in each mode; write a row as soon as it is known."""
    begin(folder)
    from .measure import measure  # it loads torch

    for row in measure(entry, modes, batch, device, folder / "codegen"):
        write_file(row_file(folder, row.mode), json.dumps(row.data()).encode())
