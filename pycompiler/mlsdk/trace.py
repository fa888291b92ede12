"""Time lines of the work of scripts, for https://ui.perfetto.dev."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import error
from ..files import write_file
from ..report.perfetto import write_trace
from ..runtime import trace


@contextmanager
def trace_scope(filename: str | os.PathLike[str] | None) -> Iterator[None]:
    """Record the body and write it to ``filename`` in Perfetto's format; None records nothing.

    Track ``host`` has calls, transfers and fetches on the host's clock. Track ``device`` has the
    programs and their nodes, timed by the cycle model in nanoseconds of the device. The file is
    written when the scope ends, also by an exception. Inside a nested scope only that scope
    records. P0003 if the file cannot be written, P0704 if ``filename`` is not a path.
    """
    if not isinstance(filename, str | os.PathLike | None):
        raise error("P0704", name="filename", value=repr(filename), legal="a path or None")
    recorder = None if filename is None else trace.Recorder()
    before = trace.activate(recorder)
    try:
        yield
    finally:
        trace.activate(before)
        if recorder is not None and filename is not None:
            write_file(Path(filename), write_trace(recorder.slices))


@contextmanager
def trace_event(name: str) -> Iterator[None]:
    """Show the body as one slice ``name`` of the trace, if there is a scope."""
    with trace.span(name):
        yield
