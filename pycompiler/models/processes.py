"""Runs each model in a process of its own, with limits of time and memory."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path

from .catalogue import Entry
from .names import LIBRARIES
from .row import DIED, MEMORY, TIME, Row
from .worker import LOG, row_file, work

_PAUSE = 0.05  # seconds between two looks at the processes
_STATM = Path("/proc/self/statm")
_GIGA = 1 << 30
#: Processes are forked from one that has loaded these and the libraries of the models, and does
#: nothing else: loading takes longer than many a model. What is not installed is left out.
_PRELOADED = [f"{__package__}.measure", "torch.onnx"]
_CONTEXT = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Settings:
    """How models run: the device, how many at once, seconds and gigabytes of each."""

    device: str = "emu2"
    jobs: int = 1
    seconds: float = 600.0
    gigabytes: float | None = None


def memory_is_known() -> bool:
    """Whether this host says how much memory a process has."""
    return _STATM.exists()


#: The work of a process: a model, its modes, the batch, the device, and the folder of its files.
Work = Callable[[Entry, Sequence[str], int, str, Path], None]
#: What one process does: a model, its batch and its modes.
Task = tuple[Entry, int, Sequence[str]]


class _Process:
    """The process of one model with one batch in one or more modes."""

    def __init__(self, task: Task, settings: Settings, work: Work):
        entry, batch, modes = task
        self.entry, self.batch = entry, batch
        self._left, self._settings = deque(modes), settings
        self._folder = tempfile.TemporaryDirectory(prefix="pycompiler-models-")
        self._path = Path(self._folder.name)
        facts = entry, tuple(modes), batch, settings.device, self._path
        self._process = _CONTEXT.Process(target=work, args=facts, daemon=True)
        self._process.start()
        self._began = time.monotonic()

    def poll(self) -> tuple[list[Row], Sequence[str] | None]:
        """Return the rows that are new, and the modes that are left once the process has ended.

        A process ends early with the row that says why.
        """
        ended = not self._process.is_alive()  # before the files: they are complete then
        rows = list(self._written())
        if not self._left:
            return rows, ()
        limit = self._settings.gigabytes
        if ended:
            rows.append(self._failed(DIED, self._last_words()))
        elif time.monotonic() - self._began > self._settings.seconds:
            rows.append(self._failed(TIME, f"it took longer than {self._settings.seconds:g} s"))
        elif limit is not None and self._memory() > limit * _GIGA:
            rows.append(self._failed(MEMORY, f"it took more than {limit:g} GB"))
        else:
            return rows, None
        return rows, tuple(self._left)

    def close(self) -> None:
        """End the process, if it still runs, with its children, and remove its files."""
        pid = self._process.pid
        if pid is not None:
            self._process.kill()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self._process.join()
        self._folder.cleanup()

    def _written(self) -> Iterator[Row]:
        while self._left:
            path = row_file(self._path, self._left[0])
            if not path.exists():
                return
            self._left.popleft()
            self._began = time.monotonic()
            yield Row.read(json.loads(path.read_bytes()))

    def _last_words(self) -> str:
        log = self._path / LOG
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        code = self._process.exitcode or 0
        how = f"ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"the process {how}: {lines[-1] if lines else 'no output'}"

    def _failed(self, code: str, reason: str) -> Row:
        seconds = round(time.monotonic() - self._began, 3)
        mode = self._left.popleft()
        return Row(self.entry.name, self.batch, mode, code=code, reason=reason, seconds=seconds)

    def _memory(self) -> int:
        """Return the bytes of memory that the process has."""
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):  # it has just ended
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")


def run_all(
    tasks: Sequence[Task], settings: Settings, finished: Callable[[Row], None], work: Work = work
) -> None:
    """Run each model in its modes; ``finished`` gets each row as soon as it is there.

    An interrupt ends all processes.
    """
    libraries = {entry.library for entry, _, _ in tasks} & set(LIBRARIES[1:])
    _CONTEXT.set_forkserver_preload([*_PRELOADED, *sorted(libraries)])
    waiting = deque(tasks)
    running: list[_Process] = []
    try:
        while waiting or running:
            while waiting and len(running) < settings.jobs:
                running.append(_Process(waiting.popleft(), settings, work))
            for process in list(running):
                rows, left = process.poll()
                if left is not None:
                    running.remove(process)
                    process.close()
                    if left:
                        waiting.appendleft((process.entry, process.batch, left))
                for row in rows:
                    finished(row)
            time.sleep(_PAUSE)
    except BaseException:
        # It may still be loading libraries, and would make the process of a model then.
        if (server := getattr(forkserver._forkserver, "_forkserver_pid", None)) is not None:
            os.kill(server, signal.SIGKILL)
        raise
    finally:
        for process in running:
            process.close()
