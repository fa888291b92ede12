"""An executor of processes in which a call that dies or hangs costs only itself.

A worker is a new Python process, not a fork, and it does not run the caller's script again. It
takes one call at a time. If it dies, or takes longer than allowed, its call fails and the next one
gets another process.
"""

from __future__ import annotations

import os
import pickle
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any

from .worker import COUNT, main, write_message


class WorkerDiedError(RuntimeError):
    """The process of a call ended before it answered."""


class Processes(Executor):
    """``count`` processes; a call that takes longer than ``seconds`` raises TimeoutError.

    A call that raises has that exception, or a RuntimeError with its text if it cannot be pickled.
    """

    def __init__(self, count: int, seconds: float | None = None):
        self._seconds = seconds
        self._killed = False
        self._lock = threading.Lock()
        self._running: set[_Process] = set()
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        name = type(self).__name__
        self._threads = [
            threading.Thread(target=self._serve, name=name, daemon=True) for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call; ``kwargs`` are not supported."""
        assert not kwargs
        call = _Call(fn, args)
        self._calls.put(call)
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes, after the calls that are queued unless they are cancelled."""
        while cancel_futures:
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                break
            if call is not None:
                call.future.cancel()
        for _ in self._threads:
            self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def kill(self) -> None:
        """End all processes at once: the calls that run or wait fail."""
        with self._lock:
            self._killed = True
            for process in self._running:
                process.kill()

    def _serve(self) -> None:
        process: _Process | None = None
        while (call := self._calls.get()) is not None:
            if not call.future.set_running_or_notify_cancel():
                continue
            try:
                if process is not None:
                    try:
                        done, found = process.call(call.function, call.arguments, self._seconds)
                    except WorkerDiedError:
                        # It may have died between two calls: a new one tells whose fault it is.
                        self._end(process)
                        process = None
                if process is None:
                    process = self._begin()
                    done, found = process.call(call.function, call.arguments, self._seconds)
            except Exception as problem:
                call.future.set_exception(problem)
                if process is not None:
                    self._end(process)
                process = None
                continue
            if done:
                call.future.set_result(found)
            else:
                call.future.set_exception(found)
        if process is not None:
            self._end(process)

    def _begin(self) -> _Process:
        with self._lock:
            if self._killed:
                raise WorkerDiedError("the workers were ended")
            process = _Process()
            self._running.add(process)
            return process

    def _end(self, process: _Process) -> None:
        with self._lock:
            self._running.discard(process)
        process.end()


class _Call:
    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]):
        self.function, self.arguments = function, arguments
        self.future: Future[Any] = Future()


class _Process:
    def __init__(self) -> None:
        here = os.pathsep.join(path for path in sys.path if path)
        # A session of its own: Ctrl-C goes to the compile, which then ends its workers.
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {main.__module__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": here},
            start_new_session=True,
        )

    def call(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float | None
    ) -> tuple[bool, Any]:
        assert self._process.stdin is not None
        until = None if seconds is None else time.monotonic() + seconds
        try:
            write_message(self._process.stdin, (function, arguments))
        except OSError as problem:
            raise WorkerDiedError("the worker has died") from problem
        size = COUNT.unpack(self._read(COUNT.size, until))[0]
        done, found = pickle.loads(self._read(size, until))
        return bool(done), found

    def _read(self, count: int, until: float | None) -> bytes:
        assert self._process.stdout is not None
        handle, data = self._process.stdout.fileno(), bytearray()
        while len(data) < count:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([handle], [], [], left)[0]:
                raise TimeoutError("the worker has hung")
            found = os.read(handle, count - len(data))
            if not found:
                raise WorkerDiedError("the worker has died")
            data += found
        return bytes(data)

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._process.wait()
