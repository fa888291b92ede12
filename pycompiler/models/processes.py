"""Runs each model in a process of its own, with limits of time and memory."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .catalogue import Entry
from .row import DIED, MEMORY, TIME, Row
from .worker import ROW

_PAUSE = 0.05  # seconds between two looks at the processes
_STATM = Path("/proc/self/statm")
_GIGA = 1 << 30
_LOG = "log.txt"


@dataclass(frozen=True)
class Settings:
    """How models run: the batch, the device, how many at once, seconds and gigabytes of each."""

    batch: int = 1
    device: str = "emu2"
    jobs: int = 1
    seconds: float = 600.0
    gigabytes: float | None = None


def memory_is_known() -> bool:
    """Whether this host says how much memory a process has."""
    return _STATM.exists()


def worker_command(entry: Entry, mode: str, settings: Settings, folder: Path) -> list[str]:
    """Return the command of the process that writes the row of a model to ``folder``."""
    name = f"{entry.name}@{entry.size}"
    module = f"{__package__}.worker"
    facts = mode, str(settings.batch), settings.device, str(folder)
    return [sys.executable, "-m", module, name, *facts]


class _Process:
    """The process of one model in one mode."""

    def __init__(self, place: int, entry: Entry, mode: str, settings: Settings):
        self.place, self._settings = place, settings
        self._name, self._mode = entry.name, mode
        self._folder = tempfile.TemporaryDirectory(prefix="pycompiler-models-")
        folder = Path(self._folder.name)
        self._row, self._log = folder / ROW, folder / _LOG
        command = worker_command(entry, mode, settings, folder)
        with self._log.open("wb") as log:
            # A session of its own: Ctrl-C reaches only this process, which then ends the others.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._began = time.monotonic()

    def poll(self) -> Row | None:
        """Return the row once the process has ended or reached a limit."""
        code = self._process.poll()
        if code is not None:
            return self._ended(code)
        if time.monotonic() - self._began > self._settings.seconds:
            return self._failed(TIME, f"it took longer than {self._settings.seconds:g} s")
        limit = self._settings.gigabytes
        if limit is not None and self._memory() > limit * _GIGA:
            return self._failed(MEMORY, f"it took more than {limit:g} GB")
        return None

    def close(self) -> None:
        """End the process, if it still runs, and remove its files."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def _ended(self, code: int) -> Row:
        try:
            return Row.read(json.loads(self._row.read_bytes()))
        except (OSError, ValueError):
            lines = self._log.read_text(errors="replace").strip().splitlines()
            how = f"ended by signal {-code}" if code < 0 else f"ended with code {code}"
            return self._failed(DIED, f"the process {how}: {lines[-1] if lines else 'no output'}")

    def _failed(self, code: str, reason: str) -> Row:
        seconds = round(time.monotonic() - self._began, 3)
        return Row(self._name, self._mode, code=code, reason=reason, seconds=seconds)

    def _memory(self) -> int:
        """Return the bytes of memory that the process has."""
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):  # it has just ended
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")


def run_all(
    tasks: Sequence[tuple[Entry, str]], settings: Settings, finished: Callable[[Row], None]
) -> list[Row]:
    """Return a row for each model and mode, in the order of ``tasks``.

    ``finished`` gets each row as soon as it is there. An interrupt ends all processes.
    """
    waiting = deque(enumerate(tasks))
    rows: dict[int, Row] = {}
    running: list[_Process] = []
    try:
        while waiting or running:
            while waiting and len(running) < settings.jobs:
                place, (entry, mode) = waiting.popleft()
                running.append(_Process(place, entry, mode, settings))
            for process in list(running):
                row = process.poll()
                if row is not None:
                    running.remove(process)
                    process.close()
                    rows[process.place] = row
                    finished(row)
            time.sleep(_PAUSE)
    finally:
        for process in running:
            process.close()
    return [rows[place] for place in sorted(rows)]
