"""What a compile takes: time and memory of its passes, of their steps, and by operator.

``STEPS`` lists functions that are spans, in the order of the compiler. While a compile is traced,
each is replaced by one that is timed, so the compiler itself has no line for it, and a compile that
is not traced takes no longer. A compile is traced in the thread that runs it: processes and threads
that it starts count for the span that waits for them.
"""

from __future__ import annotations

import csv
import io
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Any

from ..files import write_file
from ..report.perfetto import Slice, write_trace
from ..report.report import Report

#: The files of a traced compile.
TABLE, PICTURE = "compile_trace.csv", "compile_trace.pftrace"
COLUMNS = (
    *("pass", "step", "operator", "times", "seconds", "cpu_seconds", "own_cpu_seconds"),
    *("peak_mib", "grown_mib"),
)
#: Shorter spans are only in the table, in nanoseconds.
_SHORT = 100_000
#: The span of the whole compile, and the track of the picture.
_WHOLE = "compile"
_PACKAGE = __name__.partition(".")[0]


def _node(*args: Any, **_: Any) -> str:
    """Return the operator of the first argument, or of the second of a method."""
    return next(str(one.op) for one in args[:2] if hasattr(one, "op"))


def _comment(*args: Any, **_: Any) -> str:
    """Return the operator that the comment of a node begins with."""
    return str(args[2]).split(" ", 1)[0]


#: Room and attribute of a function, the name of its span, and what finds its operator.
STEPS: tuple[tuple[str, str, str, Callable[..., str] | None], ...] = (
    ("frontend.export", "_captured", "trace", None),
    ("frontend.export", "convert", "convert", None),
    ("frontend.export", "name_constants", "constants", None),
    ("build", "hold", "hold", None),
    ("build", "check_model", "check", None),
    ("build", "optimise", "optimise", None),
    ("build", "files_of", "model.onnx", None),
    ("build", "app_content", "app", None),
    ("build", "_logs", "log", None),
    ("build", "write_folder", "write", None),
    ("build", "DeviceFunction", "load", None),
    ("frontend.import_onnx", "lower", "lower", None),
    ("frontend.import_onnx", "static_types", "types", None),
    ("layout_passes", "verify", "verify", None),
    ("layout_passes", "_cycles", "cycles", None),
    ("planners.layout", "shortened", "equal layers", None),
    ("planners.layout", "insert_switches", "switches", None),
    ("planners.layout", "resolve_switches", "resolve", None),
    ("planners.layout", "LayoutPlannerZ.__init__", "pools", None),
    ("planners.layout", "LayoutPlannerZ.run", "search", None),
    ("planners.first_arrival", "FirstArrival.run", "first arrival", None),
    ("planners.lpz.pools", "Pools.fill", "fill", None),
    ("planners.lpz.planner", "LayoutPlannerZ._everywhere", "everywhere", None),
    ("planners.lpz.planner", "LayoutPlannerZ._from_inputs", "from inputs", None),
    ("planners.lpz.planner", "LayoutPlannerZ._beside", "family", None),
    ("planners.lpz.planner", "LayoutPlannerZ._varied", "variants", None),
    ("planners.lpz.planner", "LayoutPlannerZ._turned", "turn", None),
    ("planners.lpz.planner", "LayoutPlannerZ._grown", "grow", None),
    ("planners.lpz.tables", "Tables.take_in", "tables", None),
    ("planners.lpz.tables", "Tables.look", "look", None),
    ("planners.lpz.costs", "Costs._node", "node cost", _node),
    ("planners.lpz.costs", "plan_switch", "switch cost", None),
    ("planners.time_slices.planner", "_Search.fitted", "fit", None),
    ("planners.time_slices.planner", "_Search.cut_wide", "wide values", None),
    ("planners.time_slices.planner", "_Search.narrow_matrices", "matrices", None),
    ("planners.time_slices.planner", "_Search.overlap_transfers", "transfers", None),
    ("planners.time_slices.planner", "_Search.with_final_layouts", "last layouts", None),
    ("planners.time_slices.planner", "_Search.laid_out", "lay out", None),
    ("planners.time_slices.planner", "estimated_steps", "steps", None),
    ("planners.time_slices.passes", "cut_into_slices", "cut", None),
    ("pipeline", "verify", "verify", None),
    ("pipeline", "make_app", "app", None),
    ("pipeline", "record_programs", "rows of nodes", None),
    ("emit.segments", "Fragments.of", "fragment", _node),
    ("emit.segments", "Program.add", "pack", _comment),
    ("emit.segments", "Program.finish", "place and write", None),
)


@dataclass
class _Row:
    """The sums of all spans of one kind; times are in nanoseconds, memory in KiB."""

    times: int = 0
    wall: int = 0
    cpu: int = 0
    own: int = 0
    peak: int = 0
    grown: int = 0


@dataclass
class Trace:
    """The spans of one compile so far; those that are open have their names in ``path``."""

    rows: dict[tuple[tuple[str, ...], str], _Row] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    thread: int = field(default_factory=threading.get_ident)
    _inside: list[int] = field(default_factory=lambda: [0])
    _start: int = field(default_factory=time.perf_counter_ns)

    @contextmanager
    def span(self, name: str, operator: str = "") -> Iterator[None]:
        """Count what runs inside as one span, unless another thread runs it."""
        if threading.get_ident() != self.thread:
            yield
            return
        self.path.append(name)
        self._inside.append(0)
        # A row stands before those of the spans inside it.
        row = self.rows.setdefault((tuple(self.path), operator), _Row())
        peak, wall, cpu = _peak(), time.perf_counter_ns(), time.process_time_ns()
        try:
            yield
        finally:
            cpu, end = time.process_time_ns() - cpu, time.perf_counter_ns()
            row.times += 1
            row.wall += end - wall
            row.cpu += cpu
            row.own += cpu - self._inside.pop()
            row.peak = now = _peak()
            grown = now - peak
            row.grown += grown
            self.path.pop()
            self._inside[-1] += cpu
            if end - wall >= _SHORT:
                facts = {"cpu_us": cpu // 1000, "peak_mib": now >> 10, "grown_mib": grown >> 10}
                shown = f"{name} {operator}".rstrip()
                self.slices.append(
                    Slice(_WHOLE, shown, wall - self._start, end - self._start, facts)
                )

    def table(self) -> str:
        """Return the rows as CSV. A row is a kind of span; ``step`` has the spans around it."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for ((whole, *path), operator), row in self.rows.items():
            seconds = (f"{one / 1e9:.6f}" for one in (row.wall, row.cpu, row.own))
            place = (path or [whole])[0], " > ".join(path[1:]), operator, row.times
            writer.writerow((*place, *seconds, row.peak >> 10, row.grown >> 10))
        return out.getvalue()


def _peak() -> int:
    """Return the most memory of the process until now, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


#: Held while a compile is traced: functions are replaced for the whole process.
_TRACING = threading.RLock()


@contextmanager
def traced(options: Mapping[str, Any]) -> Iterator[None]:
    """Trace the compile inside, if its ``options`` name a folder; write the files at its end.

    P0003 if they cannot be written.
    """
    folder = options.get("trace_compile")
    if not isinstance(folder, str | os.PathLike):
        yield
        return
    with _TRACING:
        trace = Trace()
        try:
            with _replaced(trace), trace.span(_WHOLE):
                yield
        finally:
            Path(folder).mkdir(parents=True, exist_ok=True)
            write_file(Path(folder) / TABLE, trace.table().encode())
            write_file(Path(folder) / PICTURE, write_trace(trace.slices))


@contextmanager
def _replaced(trace: Trace) -> Iterator[None]:
    """Have all functions of ``STEPS``, and the passes of reports, timed."""
    kept: list[tuple[Any, str, Any]] = []
    try:
        for owner, last, timed in _timings(trace):
            kept.append((owner, last, vars(owner).get(last)))
            setattr(owner, last, timed)
        yield
    finally:
        for owner, last, before in reversed(kept):
            if before is None:  # of a class above
                delattr(owner, last)
            else:
                setattr(owner, last, before)


def _timings(trace: Trace) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Yield what holds a function, the name of that, and the function that takes its place."""
    running = Report.running

    @contextmanager
    def timed_pass(self: Report, name: str) -> Iterator[dict[str, Any]]:
        with trace.span(name), running(self, name) as row:
            yield row

    yield Report, "running", timed_pass
    for module, path, name, operator in STEPS:
        owner: Any = import_module(f"{_PACKAGE}.{module}")
        *inner, last = path.split(".")
        for part in inner:
            owner = getattr(owner, part)
        yield owner, last, _timed(getattr(owner, last), partial(trace.span, name), operator)


def _timed(
    function: Callable[..., Any],
    span: Callable[..., AbstractContextManager[None]],
    operator: Callable[..., str] | None,
) -> Callable[..., Any]:
    @wraps(function, updated=())
    def timed(*args: Any, **named: Any) -> Any:
        with span(operator(*args, **named) if operator is not None else ""):
            return function(*args, **named)

    return timed
