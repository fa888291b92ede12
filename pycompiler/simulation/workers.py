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

from .worker import COUNT, write_message


class WorkerDiedError(RuntimeError):
    """The process of a call ended before it answered."""


class Workers(Executor):
    """``count`` processes; a call that takes longer than ``seconds`` raises TimeoutError."""

    def __init__(self, count: int, seconds: float):
        self._seconds = seconds
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
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
                        process.end()
                        process = None
                if process is None:
                    process = _Process()
                    done, found = process.call(call.function, call.arguments, self._seconds)
            except Exception as problem:
                call.future.set_exception(problem)
                if process is not None:
                    process.end()
                process = None
                continue
            if done:
                call.future.set_result(found)
            else:
                call.future.set_exception(found)
        if process is not None:
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
            [sys.executable, "-m", f"{__package__}.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": here},
            start_new_session=True,
        )

    def call(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float
    ) -> tuple[bool, Any]:
        assert self._process.stdin is not None
        until = time.monotonic() + seconds
        try:
            write_message(self._process.stdin, (function, arguments))
        except OSError as problem:
            raise WorkerDiedError("the worker has died") from problem
        size = COUNT.unpack(self._read(COUNT.size, until))[0]
        done, found = pickle.loads(self._read(size, until))
        return bool(done), found

    def _read(self, count: int, until: float) -> bytes:
        assert self._process.stdout is not None
        handle, data = self._process.stdout.fileno(), bytearray()
        while len(data) < count:
            left = until - time.monotonic()
            if left <= 0 or not select.select([handle], [], [], left)[0]:
                raise TimeoutError("the worker has hung")
            found = os.read(handle, count - len(data))
            if not found:
                raise WorkerDiedError("the worker has died")
            data += found
        return bytes(data)

    def end(self) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._process.wait()
