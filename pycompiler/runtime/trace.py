"""Records the work of calls, on the host's clock and in cycles of the device.

Nothing is recorded unless a :class:`Recorder` is active. One recorder serves all threads.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import emu2

from ..report.perfetto import Slice

_HOST, _DEVICE = "host", "device"
_PE = "PE"  # the process that holds the steps and waits in a program's time line


@dataclass
class Recorder:
    """The slices so far. Time starts at zero; the device's time advances only while it works."""

    slices: list[Slice] = field(default_factory=list)
    _start: int = field(default_factory=time.perf_counter_ns)
    _device: float = 0.0  # nanoseconds
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> int:
        """Return the nanoseconds since the recorder was made."""
        return time.perf_counter_ns() - self._start

    def host(self, name: str, start: int) -> None:
        """Add a slice from ``start`` to now for the host; each thread has its own track."""
        thread = threading.current_thread()
        own = thread is threading.main_thread()
        track = _HOST if own else f"{_HOST} {thread.name}"
        with self._lock:
            self.slices.append(Slice(track, name, start, max(start + 1, self.now())))

    def device(self, name: str, program: emu2.Program, code: str) -> None:
        """Add slices for a run of ``program`` (its text is ``code``) and for each of its nodes."""
        cycle = 1000 / program.spec.clock_mhz
        with self._lock:
            begin = self._device
            facts = program.report()
            self._device += int(facts["cycles"]) * cycle
            numbers = {key: int(facts[key]) for key in ("steps", "cycles")}
            whole = Slice(_DEVICE, name, round(begin), round(self._device), numbers)
            self.slices.append(whole)
            for node, (first, last) in _nodes(program, code).items():
                start, stop = round(begin + first * cycle), round(begin + last * cycle)
                self.slices.append(Slice(_DEVICE, node, start, stop, {"cycles": last - first}))


def _nodes(program: emu2.Program, code: str) -> dict[str, tuple[int, int]]:
    """Return the first and last cycle of each node, named by the comment before its lines."""
    owner, owners = "", []
    for number, line in enumerate(code.splitlines()):
        if line.startswith("# "):
            owner = f"{line[2:]} (line {number + 1})"
        owners.append(owner)
    written = io.StringIO()
    program.trace(written)
    events = json.loads(written.getvalue())["traceEvents"]
    (steps,) = {
        e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == _PE
    }
    spans: dict[str, tuple[int, int]] = {}
    for event in events:
        if event["pid"] == steps and event["ph"] == "X":
            node = owners[event["args"]["line"] - 1]
            first, last = spans.get(node, (event["ts"], 0))
            end = event["ts"] + event["dur"]
            spans[node] = (min(first, event["ts"]), max(last, end))
    return spans


_active: Recorder | None = None


def activate(recorder: Recorder | None) -> Recorder | None:
    """Make ``recorder`` the active one; return the previous one."""
    global _active
    before, _active = _active, recorder
    return before


@contextmanager
def span(name: str) -> Iterator[None]:
    """Record the body as one slice, if a recorder is active."""
    recorder = _active
    if recorder is None:
        yield
        return
    start = recorder.now()
    try:
        yield
    finally:
        recorder.host(name, start)


def device(name: str, program: emu2.Program, code: str) -> None:
    """Record a run of ``program``, if a recorder is active."""
    if _active is not None:
        _active.device(name, program, code)
