"""``report.json``: data that each pass records while it runs; valid even after an abort."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import __version__
from ..errors import PycompilerError


class Report:
    """The report of one compilation. ``data`` is the content of ``report.json``.

    ``steps`` counts PE lines, nops included; ``dram_words`` are long words over all groups.
    ``bound`` and ``cycle_shares`` are empty until a program is finished, and after a failure.
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
            "bound": {},
            "cycle_shares": {},
            "dram_words": {"read": 0, "written": 0},
            "host_fallback": [],
            "layout_spec_unused": [],
            "operators": 0,
            "nodes": [],
            "schedule": {},
            "passes": [],
            "cache": {},
        }
        #: Called when a pass begins: its name, the number of ended and of expected passes.
        self.listener: Callable[[str, int, int], None] | None = None
        self._ended = self._expected = 0

    def expect(self, passes: int) -> None:
        """Announce that this many more passes will run, for the listener."""
        self._expected += passes

    def progress(self, text: str) -> None:
        """Tell the listener how far the current pass is."""
        if self.listener is not None:
            self.listener(text, self._ended, max(self._expected, self._ended + 1))

    def note(self, text: str) -> None:
        """Add a remark for the user."""
        self.data["notes"].append(text)

    @contextmanager
    def running(self, name: str) -> Iterator[dict[str, Any]]:
        """Record one pass and its time; the pass adds facts to the dict that this yields."""
        row: dict[str, Any] = {"pass": name}
        self.data["passes"].append(row)
        if self.listener is not None:
            self.listener(name, self._ended, max(self._expected, self._ended + 1))
        start = time.perf_counter()
        try:
            yield row
        finally:
            self._ended += 1
            row["seconds"] = round(time.perf_counter() - start, 6)

    def finished(self) -> None:
        """Mark the compilation as done."""
        self.data["status"] = "ok"

    def failed(self, problem: BaseException) -> None:
        """Record why the compilation ended; an interrupt is no failure."""
        status = "interrupted" if isinstance(problem, KeyboardInterrupt) else "failed"
        self.data |= {"status": status, "bound": {}, "cycle_shares": {}}
        row: dict[str, Any] = {"message": str(problem), "type": type(problem).__name__}
        if isinstance(problem, PycompilerError):
            row = {"code": problem.code, "message": problem.message, "help": problem.help}
            row["place"] = None if problem.place is None else str(problem.place)
        self.data["error"] = row

    def json(self) -> str:
        """Return the text of ``report.json``."""
        text = json.dumps(self.data, indent=1, ensure_ascii=False) + "\n"
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
