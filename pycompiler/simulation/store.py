"""Outcomes of simulations that survive the process: one small file each, in a folder.

Several processes may share the folder. A file is built beside its place and renamed, and all
writers of a key write the same. An entry names its versions. What is damaged or of another version
counts as missing. If the files take more than ``most`` bytes, those that were not used for the
longest time are removed. A problem with the folder never stops a compile.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from ..files import read_regular, reason_of, temporary_file, trim
from ..version import software
from .outcome import Outcome, outcome_of

_FORMAT = 1
_ENTRY_BYTES = 1 << 16
#: What the entries of a folder may take: about a million outcomes.
MOST_BYTES = 1 << 29


class Outcomes:
    """Outcomes in a folder, which is made when the first is stored."""

    def __init__(self, folder: Path, most: int = MOST_BYTES):
        self.folder, self.most = folder, most
        #: Why nothing could be stored; empty if all is well.
        self.problem = ""

    def load(self, key: str) -> Outcome | None:
        """Return the outcome of ``key``; None if there is none, or if its entry is damaged."""
        path = self._path(key)
        try:
            entry = json.loads(read_regular(path, _ENTRY_BYTES))
            if (entry["format"], tuple(entry["software"])) != (_FORMAT, software()):
                return None
            found = outcome_of(entry["outcome"], key)
        except Exception:  # a damaged entry can raise many kinds of exception
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def store(self, outcome: Outcome) -> None:
        """Write the entry of an outcome."""
        entry = {"format": _FORMAT, "software": software(), "outcome": outcome.json()}
        path = self._path(outcome.key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary_file(path.parent, path.name) as building:
                building.write_text(json.dumps(entry))
                building.replace(path)
        except (OSError, ValueError) as problem:
            self.problem = reason_of(problem)

    def trim(self) -> None:
        """Remove the entries that were not used for the longest time, down to the limit."""
        with contextlib.suppress(OSError):
            trim(self.folder.glob("*/*.json"), self.most)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"
