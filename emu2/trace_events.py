"""Reads the time line of a program while it is written."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

Event = Mapping[str, Any]


class TraceReader(ABC):
    """A file for ``Program.trace`` that hands each event to ``take``."""

    def __init__(self) -> None:
        self._processes: dict[int, str] = {}
        self._tracks: dict[tuple[int, int], str] = {}
        self._rest = ""

    @abstractmethod
    def take(self, process: str, track: str, event: Event) -> None:
        """Take one event of a row: ``track`` is its name, ``process`` that of its group of rows."""

    def write(self, text: str) -> int:
        """Take a piece of the text of the trace."""
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            self._read(line)
        return len(text)

    def close(self) -> None:
        """Read the last line."""
        self._read(self._rest)

    def _read(self, line: str) -> None:
        # The trace is one JSON array with an event a line.
        text = line.rstrip().rstrip(",")
        if not text.startswith('{"args"'):
            return
        event = json.loads(text)
        place = event["pid"], event["tid"]
        if event["ph"] != "M":
            self.take(self._processes[event["pid"]], self._tracks[place], event)
        elif event["name"] == "process_name":
            self._processes[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name":
            self._tracks[place] = event["args"]["name"]
