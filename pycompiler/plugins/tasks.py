"""Dependent tasks on a pool of threads, and streams that are made of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .interface import DeviceContext, Stream


class TaskPool:
    """Runs tasks on threads, each as soon as those before it have ended.

    No task waits while it holds a thread, so any number of threads is enough. If a task raises,
    those after it are not run and end with the same exception.
    """

    def __init__(self, threads: int = 4):
        self._threads = ThreadPoolExecutor(threads, "task")

    def submit(self, work: Callable[[], Any], after: Iterable[Future[Any]] = ()) -> Future[Any]:
        """Run ``work`` once all tasks of ``after`` have ended."""
        task: Future[Any] = Future()
        before = list(dict.fromkeys(after))
        left = len(before) + 1
        lock = threading.Lock()
        failed: BaseException | None = None

        def ended(one: Future[Any] | None) -> None:
            nonlocal left, failed
            with lock:
                if one is not None and failed is None:
                    failed = one.exception()
                left -= 1
                if left:
                    return
            if failed is not None:
                task.set_exception(failed)
            else:
                try:
                    self._threads.submit(run)
                except RuntimeError as problem:  # the interpreter ends, and nobody waits
                    task.set_exception(problem)

        def run() -> None:
            try:
                result = work()
            except BaseException as problem:
                task.set_exception(problem)
            else:
                task.set_result(result)

        for one in before:
            one.add_done_callback(ended)
        ended(None)
        return task

    def close(self) -> None:
        """Wait for the tasks that run, and end the threads."""
        self._threads.shutdown()


class TaskStream(Stream):
    """A stream for chips without queues: each operation is a task after the one before it."""

    def __init__(self, device: DeviceContext, number: int, tasks: TaskPool):
        super().__init__(device, number)
        self._tasks = tasks
        self._before: list[Future[Any]] = []

    def _enqueue(self, work: Callable[[], Any]) -> Future[Any]:
        task = self._tasks.submit(work, self._before)
        self._before = [task]
        return task

    def _record(self) -> list[Future[Any]]:
        return list(self._before)

    def _wait(self, native: list[Future[Any]]) -> None:
        self._before = [*self._before, *native]

    def _synchronize(self) -> None:
        before, self._before = self._before, []
        for task in before:
            task.result()
