"""Work for the process of a model that does not come to an end as it should."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from pycompiler.models.catalogue import Entry
from pycompiler.models.row import Row
from pycompiler.models.worker import begin, row_file

LONG = 60.0


def work(entry: Entry, modes: Sequence[str], batch: int, device: str, folder: Path) -> None:
    """Do what the name of the entry says, in place of a model."""
    begin(folder)
    kept = bytearray(1 << 28) if entry.model == "large" else b""
    if entry.model == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if entry.model == "leaves":
        print("the last words", flush=True)
        os._exit(7)
    if entry.model == "second":
        if modes[0] == "float":
            row = Row(entry.name, batch, "float", matched=True)
            row_file(folder, "float").write_text(json.dumps(row.data()))
        os._exit(0)
    if entry.model == "family":
        child = os.fork()
        if child:
            Path(entry.settings["file"]).write_text(f"{os.getpid()} {child}")
    if entry.model == "waits":
        file = Path(entry.settings["file"])
        while not (file.exists() and len(file.read_text().split()) == 2):
            time.sleep(0.01)
        os._exit(0)
    if entry.model != "returns":
        time.sleep(LONG + len(kept[:0]))
