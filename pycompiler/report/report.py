"""``report.json``: data that each pass records while it runs; valid even after an abort."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..errors import PycompilerError
from ..version import __version__

#: The parts of a report that belong to the program; the rest belongs to the compile.
OF_A_PROGRAM = (
    *("steps", "cycles", "clock_mhz", "estimated_cycles", "bound", "cycle_shares", "waits"),
    *("words", "dram_words", "host_fallback", "layout_spec_unused", "operators", "nodes"),
    *("schedule", "tuning", "search"),
)


class Report:
    """The report of one compilation. ``data`` is the content of ``report.json``.

    ``steps`` counts PE lines, nops included; ``dram_words`` are long words over all groups, and
    ``words`` those read and written by transfers, by memory above the PEs. ``clock_mhz`` is the
    clock of the machine; None without a program.
    ``host_runtimes`` names the library that runs each segment of the host.
    ``waits`` are the wait cycles by reason: `queue`, `transfer`, `latency`, `dependence`.
    ``bound``, ``cycle_shares`` and ``waits`` are empty until a program is finished, and after a
    failure.
    """

    def __init__(self, device: str, options: Mapping[str, Any]):
        self.data: dict[str, Any] = {
            "status": "running",
            "version": __version__,
            "device": device,
            "options": {key: _plain(value) for key, value in options.items()},
            "notes": [],
            "steps": 0,
            "cycles": 0,
            "clock_mhz": None,
            "estimated_cycles": 0,
            "bound": {},
            "cycle_shares": {},
            "waits": {},
            "dram_words": {"read": 0, "written": 0},
            "words": {},
            "host_fallback": [],
            "host_runtimes": [],
            "layout_spec_unused": [],
            "operators": 0,
            "nodes": [],
            "schedule": {},
            "passes": [],
            "cache": {},
            "tuning": {},
            "search": {},
        }
        #: Called when a pass begins: its name, the number of ended and of expected passes.
        self.listener: Callable[[str, int, int], None] | None = None
        #: Called when a pass has ended.
        self.after: Callable[[], None] | None = None
        #: Files of the codegen_dir that passes have made so far, by name.
        self.files: dict[str, bytes] = {}
        #: What happened, in order: ``time`` (seconds since the start), ``event`` (`pass` or `note`)
        #: and its facts. The dict of a pass is its row in ``data["passes"]``.
        self.events: list[tuple[float, str, Mapping[str, Any]]] = []
        #: The pass that runs, or how far it is.
        self.place = "the beginning"
        self._start = time.perf_counter()
        self._ended = self._expected = 0

    def expect(self, passes: int) -> None:
        """Announce that this many more passes will run, for the listener."""
        self._expected += passes

    def progress(self, text: str) -> None:
        """Tell the listener how far the current pass is."""
        self.place = text
        if self.listener is not None:
            self.listener(text, self._ended, max(self._expected, self._ended + 1))

    def note(self, text: str) -> None:
        """Add a remark for the user."""
        self.data["notes"].append(text)
        self._happened("note", {"text": text})

    def _happened(self, event: str, facts: Mapping[str, Any]) -> None:
        self.events.append((round(time.perf_counter() - self._start, 6), event, facts))

    @contextmanager
    def running(self, name: str) -> Iterator[dict[str, Any]]:
        """Record one pass and its time; the pass adds facts to the dict that this yields.

        ``seconds`` is the time of the pass, ``peak_mib`` the most memory of the process until then.
        """
        row: dict[str, Any] = {"pass": name}
        self.data["passes"].append(row)
        self._happened("pass", row)
        self.place = name
        if self.listener is not None:
            self.listener(name, self._ended, max(self._expected, self._ended + 1))
        start = time.perf_counter()
        try:
            yield row
        finally:
            self._ended += 1
            row["seconds"] = round(time.perf_counter() - start, 6)
            row["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        if self.after is not None:
            self.after()

    def take(self, data: Mapping[str, Any]) -> None:
        """Take over what the report of another compile of the same model says of its program."""
        fields = ("tuning", "search")
        self.data |= {name: data[name] for name in OF_A_PROGRAM if name not in fields}
        self.data["passes"] += data["passes"]

    def finished(self) -> None:
        """Mark the compilation as done."""
        self.data["status"] = "ok"

    def failed(self, problem: BaseException) -> None:
        """Record why the compilation ended; an interrupt is no failure."""
        status = "interrupted" if isinstance(problem, KeyboardInterrupt) else "failed"
        self.data |= {"status": status, "bound": {}, "cycle_shares": {}, "waits": {}}
        message = ", ".join((str(problem), *getattr(problem, "__notes__", ()))).strip(", ")
        row: dict[str, Any] = {"message": message, "type": type(problem).__name__}
        if isinstance(problem, PycompilerError):
            row = {"code": problem.code, "message": problem.message, "help": problem.help}
            row["place"] = None if problem.place is None else str(problem.place)
        self.data["error"] = row

    def json(self) -> str:
        """Return the text of ``report.json``."""
        return json_text(self.data)


def json_text(data: Any) -> str:
    """Return ``data`` as the text of a JSON file."""
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    # Escape lone surrogates, which come from paths that are not UTF-8, as JSON does.
    return text.encode(errors="backslashreplace").decode()


def _plain(value: Any) -> Any:
    """Return ``value`` as plain JSON values; others, such as paths, become text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value)
