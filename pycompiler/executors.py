"""Runs tasks on a `concurrent.futures` executor, with a limit of time.

The default executor has processes of its own. They are started anew (`spawn`), because a fork of a
process with threads may hang, and they do not run the main script again: it need not guard itself.
A worker that dies costs its own task alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from importlib import import_module
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from typing import Any, Self

from .errors import error

PROCESSES, THREADS = "processes", "threads"
#: The executors that have a name.
EXECUTORS = (PROCESSES, THREADS)
#: How the address of a Dask scheduler begins.
CLUSTER = "tcp://"

#: How a task ended without a result.
DIED, TIME = "its process died", "the time is over"

Task = tuple[Any, ...]
_MAIN = threading.Lock()


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the main script, so that a new process does not run it."""
    with _MAIN:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802
        with _without_main():
            return SpawnProcess._Popen(process_obj)


class _Context(SpawnContext):
    Process = _Process


def _begin() -> None:
    """Leave Ctrl-C to the process that gives the tasks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Give the executor of a Dask scheduler. P0703 if Dask is missing or nothing answers."""
    remedy = "leave out the option `executor`, or give the address of a running Dask scheduler"
    name = f"executor={address!r}"
    try:
        distributed = import_module("distributed")
    except ImportError as problem:
        reason = "Dask is not installed: install emu2[cluster]"
        raise error("P0703", name=name, reason=reason, remedy=remedy) from problem
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as problem:
        reason = "no scheduler answers there"
        raise error("P0703", name=name, reason=reason, remedy=remedy) from problem
    try:
        yield client.get_executor(pure=False, retries=0)
    finally:
        client.close()


class Workers:
    """An executor by name, or one that the caller has; ``count`` None means one per core.

    A name is that of ``EXECUTORS`` or the address of a Dask scheduler. It is a context manager: at
    its end, its processes end whatever they do. P0704 if ``executor`` is neither.
    """

    def __init__(self, executor: Executor | str = PROCESSES, count: int | None = None):
        named = isinstance(executor, str) and (
            executor in EXECUTORS or executor.startswith(CLUSTER)
        )
        if not isinstance(executor, Executor) and not named:
            names = ", ".join(map(repr, EXECUTORS))
            legal = f"{names}, '{CLUSTER}HOST:PORT' or a concurrent.futures.Executor"
            raise error("P0704", name="executor", value=repr(executor), legal=legal)
        self._given = executor
        self._pool: Executor | None = None
        self._clusters = contextlib.ExitStack()
        self._busy = False
        self.count = os.cpu_count() or 1 if count is None else count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close(kill=self._busy)

    @property
    def name(self) -> str:
        """The name of the executor, or its class."""
        own = self._given
        return own if isinstance(own, str) else type(own).__name__

    def run(
        self, function: Callable[..., Any], tasks: Sequence[Task], deadline: float | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the number of each task with its result, in the order in which they end.

        A task that raises has its exception as result, and one that did not end a text: ``DIED``,
        or ``TIME`` if ``deadline`` (a time of ``time.monotonic``) is past. Ending the iteration
        ends what still runs.
        """
        again: list[int] = []
        for number, result in self._round(function, dict(enumerate(tasks)), deadline):
            if isinstance(result, BrokenExecutor) and isinstance(self._given, str):
                again.append(number)
            else:
                yield number, DIED if isinstance(result, BrokenExecutor) else result
        # A process that died takes the tasks of the others with it. Alone, each speaks for itself.
        for number in sorted(again):
            self._close()
            for _, result in self._round(function, {number: tasks[number]}, deadline):
                yield number, DIED if isinstance(result, BrokenExecutor) else result

    def _round(
        self, function: Callable[..., Any], tasks: dict[int, Task], deadline: float | None
    ) -> Iterator[tuple[int, Any]]:
        pool = self._opened()
        pending: dict[Future[Any], int] = {}
        self._busy = True
        try:
            for number, task in tasks.items():
                try:
                    pending[pool.submit(function, *task)] = number
                except BrokenExecutor as broken:
                    yield number, broken
            while pending:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                done, _ = wait(pending, left, FIRST_COMPLETED)
                for future in done:
                    problem = future.exception()
                    yield pending.pop(future), future.result() if problem is None else problem
                if not done:
                    yield from ((number, TIME) for number in pending.values())
                    return
            self._busy = False
        finally:
            for future in pending:
                future.cancel()
            if self._busy:
                self._close()

    def _opened(self) -> Executor:
        if isinstance(self._given, Executor):
            return self._given
        if self._pool is None:
            if self._given.startswith(CLUSTER):
                self._pool = self._clusters.enter_context(cluster(self._given))
            elif self._given == THREADS:
                self._pool = ThreadPoolExecutor(self.count)
            else:
                self._pool = ProcessPoolExecutor(
                    self.count, mp_context=_Context(), initializer=_begin
                )
        return self._pool

    def _close(self, *, kill: bool = True) -> None:
        """Close the executor that was opened; ``kill`` ends what its processes still do."""
        pool, self._pool, self._busy = self._pool, None, False
        self._clusters.close()
        if pool is None:
            return
        processes = list((getattr(pool, "_processes", None) or {}).values())
        if kill:
            for process in processes:
                process.kill()
        # A thread cannot be stopped: it ends with its task.
        pool.shutdown(wait=bool(processes), cancel_futures=True)
