"""A progress bar for long compiles."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .report import Report

_DELAY = 1.0  # seconds; a shorter compile shows no bar


@contextmanager
def progress_bar(report: Report, *, shown: bool) -> Iterator[None]:
    """Show the passes of ``report`` while the body runs, if stderr is a terminal."""
    stream = sys.stderr  # keep it, because the exporter redirects stderr
    if not shown or not stream.isatty():
        yield
        return
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
