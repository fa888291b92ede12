"""Records the work of calls, on the host's clock and in cycles of the device.

Nothing is recorded unless a :class:`Recorder` is active. One recorder serves all threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..app.model import DeviceSegment
from ..report.perfetto import Slice

_HOST, _DEVICE = "host", "device"


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

    def device(self, name: str, segment: DeviceSegment, clock_mhz: int) -> None:
        """Add slices for a run of ``segment`` and for its nodes, each as long as its lines run."""
        cycle = 1000 / clock_mhz
        with self._lock:
            begin = self._device
            self._device += segment.cycles * cycle
            numbers = {"steps": segment.steps, "cycles": segment.cycles}
            whole = Slice(_DEVICE, name, round(begin), round(self._device), numbers)
            self.slices.append(whole)
            for owner, first, last in segment.lines.spans(segment.cycles):
                start, stop = round(begin + first * cycle), round(begin + last * cycle)
                facts = {"cycles": last - first}
                self.slices.append(Slice(_DEVICE, owner.note, start, stop, facts))


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


def device(name: str, segment: DeviceSegment, clock_mhz: int) -> None:
    """Record a run of ``segment``, if a recorder is active."""
    if _active is not None:
        _active.device(name, segment, clock_mhz)
