"""What a long compile shows: a bar on a terminal, else a line from time to time."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .report import Report
from .whereabouts import frames_of, node_at, stack_of

_DELAY = 1.0  # seconds; a shorter compile shows no bar
#: Seconds between two lines; a thread that waits for another one may be late.
EVERY = 10.0


@contextmanager
def progress_bar(report: Report, *, shown: bool) -> Iterator[None]:
    """Show where ``report`` is while the body runs: a bar if stderr is a terminal, else lines.

    Without ``shown`` it shows nothing. An interrupt gets a note that says where it came.
    """
    stream = sys.stderr  # keep it, because the exporter redirects stderr
    try:
        if not shown:
            yield
        elif stream.isatty():
            with _bar(report, stream):
                yield
        else:
            with _lines(report, stream):
                yield
    except KeyboardInterrupt as problem:
        # Compiles inside of this one know better where they were.
        if not hasattr(problem, "__notes__"):
            place = _where(report.place, node_at(frames_of(problem.__traceback__)))
            problem.add_note(f"in {place}")
        raise


def _where(place: str, node: str) -> str:
    return f"{place}: {node}" if node else place


@contextmanager
def _lines(report: Report, stream: TextIO) -> Iterator[None]:
    """Write a line to ``stream`` every few seconds."""
    worker, ended, begun = threading.get_ident(), threading.Event(), time.monotonic()

    def write() -> None:
        while not ended.wait(EVERY):
            node = node_at(stack_of(sys._current_frames().get(worker)))
            place = f"{_where(report.place, node)}, {time.monotonic() - begun:.0f} s"
            try:
                print(f"compiling: {place}", file=stream, flush=True)
            except (OSError, ValueError):  # nobody reads it
                return

    thread = threading.Thread(target=write, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _bar(report: Report, stream: TextIO) -> Iterator[None]:
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    bar = Progress(
        *columns,
        console=Console(file=stream),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = bar.add_task("compiling")

    def listen(name: str, ended: int, expected: int) -> None:
        bar.update(task, description=name, completed=ended, total=expected)

    report.listener = listen
    timer = threading.Timer(_DELAY, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        report.listener = None
        timer.cancel()
        timer.join()  # the timer may be starting the bar right now
        bar.stop()
