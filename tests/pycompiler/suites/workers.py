"""Runs tests in processes that stay, with limits of time and memory for each test.

The processes are new ones: in a fork, what threads of the caller held stays locked for ever.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from quick_export import keep_tables_of_exports

from .outcome import INTERNAL, TIME, Outcome

#: Seconds of the processor for a test, and of the clock on a host with other work.
_SECONDS, _CLOCK = 90.0, 600.0
_GIGABYTES = 3.0
_CONTEXT = multiprocessing.get_context("spawn")


class Case(Protocol):
    """A test of a suite. It can be pickled."""

    @property
    def name(self) -> str: ...

    @property
    def operator(self) -> str: ...


Judge = Callable[[Any], Outcome]


class _Late(BaseException):
    """A test takes too long; no code of the compiler takes it for an error of its own."""


def _late(signum: int, frame: Any) -> None:
    raise _Late(f"it took longer than {_SECONDS:g} s")


def _work(judge: Judge, ends: Connection) -> None:
    """Judge the tests that come in, with their numbers; send their outcomes."""
    keep_tables_of_exports()
    signal.signal(signal.SIGPROF, _late)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ends.send(None)
    while (given := ends.recv()) is not None:
        number, case = given
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        try:
            found = judge(case)
        except _Late as problem:
            found = Outcome(case.name, case.operator, TIME, "", str(problem))
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = round(time.perf_counter() - start, 3)
        facts = (found.name, found.operator, found.kind, found.code, found.reason)
        ends.send((number, Outcome(*facts, seconds)))


class _Worker:
    def __init__(self, judge: Judge):
        self._ends, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_work, args=(judge, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._ends.recv()  # it has loaded its modules
        self.number: int | None = None
        self._began = 0.0

    @property
    def ends(self) -> Connection:
        return self._ends

    def give(self, number: int, case: Case) -> None:
        self.number, self._began = number, time.monotonic()
        self._ends.send((number, case))

    def trouble(self) -> str:
        """Return why the process must be ended; empty while all is well."""
        if not self._process.is_alive():
            return f"the process ended with code {self._process.exitcode}"
        if time.monotonic() - self._began > _CLOCK:
            return f"it took longer than {_CLOCK:g} s"
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return ""
        if pages * os.sysconf("SC_PAGE_SIZE") > _GIGABYTES * (1 << 30):
            return f"it took more than {_GIGABYTES:g} GB"
        return ""

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._ends.close()


def run_all(
    cases: Sequence[Case],
    judge: Judge,
    jobs: int,
    finished: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Judge tests in ``jobs`` processes; return their outcomes in order."""
    found: dict[int, Outcome] = {}
    waiting = deque(range(len(cases)))
    workers: list[_Worker] = []

    def give(worker: _Worker) -> None:
        number = waiting.popleft()
        worker.give(number, cases[number])

    def done(number: int, outcome: Outcome) -> None:
        found[number] = outcome
        finished(outcome)

    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_Worker(judge))
                give(workers[-1])
            wait([worker.ends for worker in workers], timeout=0.2)
            for worker in list(workers):
                assert worker.number is not None
                if worker.ends.poll():
                    try:
                        done(*worker.ends.recv())
                    except EOFError:
                        pass
                    else:
                        if waiting:
                            give(worker)
                        else:
                            worker.close()
                            workers.remove(worker)
                        continue
                trouble = worker.trouble()
                if trouble:
                    case = cases[worker.number]
                    kind = TIME if "longer" in trouble else INTERNAL
                    done(worker.number, Outcome(case.name, case.operator, kind, "", trouble))
                    worker.close()
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.close()
    return [found[number] for number in range(len(cases))]
