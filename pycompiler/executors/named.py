"""Executors by name, and tasks with a limit of time on them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from importlib import import_module
from typing import Any, Self

from ..errors import error
from .processes import Processes, WorkerDiedError

PROCESSES, THREADS = "processes", "threads"
#: The executors that have a name.
EXECUTORS = (PROCESSES, THREADS)
#: How the address of a Dask scheduler begins.
CLUSTER = "tcp://"

#: How a task ended without a result.
DIED, TIME = "its process died", "the time is over"

Task = tuple[Any, ...]


@contextlib.contextmanager
def opened(wanted: Executor | str, count: int, seconds: float | None = None) -> Iterator[Executor]:
    """Give the executor of a name, and close it afterwards; one of the caller stays open.

    ``count`` is the number of processes or threads, and ``seconds`` the time that a call in a
    process may take. P0703 if Dask is missing or its scheduler does not answer.
    """
    if isinstance(wanted, Executor):
        yield wanted
        return
    if wanted.startswith(CLUSTER):
        with _cluster(wanted) as executor:
            yield executor
        return
    made = Processes(count, seconds) if wanted == PROCESSES else ThreadPoolExecutor(count)
    try:
        yield made
    except BaseException:
        # Whoever stops here does not want what still runs. A thread ends with its task alone.
        if isinstance(made, Processes):
            made.kill()
        made.shutdown(wait=False, cancel_futures=True)
        raise
    made.shutdown(wait=isinstance(made, Processes), cancel_futures=True)


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Executor]:
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
        self._open = contextlib.ExitStack()
        self.count = os.cpu_count() or 1 if count is None else count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

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
        if self._pool is None:
            self._pool = self._open.enter_context(opened(self._given, self.count))
        pending: dict[Future[Any], int] = {}
        try:
            for number, task in enumerate(tasks):
                try:
                    pending[self._pool.submit(function, *task)] = number
                except BrokenExecutor:
                    yield number, DIED
            while pending:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                done, _ = wait(pending, left, FIRST_COMPLETED)
                for future in done:
                    problem = future.exception()
                    dead = isinstance(problem, BrokenExecutor | WorkerDiedError)
                    found = future.result() if problem is None else DIED if dead else problem
                    yield pending.pop(future), found
                if not done:
                    yield from ((number, TIME) for number in pending.values())
                    return
        finally:
            for future in pending:
                future.cancel()
            if pending:
                self._close()

    def _close(self) -> None:
        """Close the executor that was opened, and end what its processes still do."""
        pool, self._pool = self._pool, None
        if isinstance(pool, Processes) and pool is not self._given:
            pool.kill()
        self._open.close()
