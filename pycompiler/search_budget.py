"""The time that the searches of one compile have together, and what they found in it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class SearchBudget:
    """The clock of all searches of a compile: it starts when the first one asks for it.

    ``seconds`` None is no limit. ``facts`` is the entry ``search`` of the report: `seconds`;
    `time_limited`, whether the result depends on time, with the `reason`; and `found`, what each
    search found: `seconds` since the start, `search`, `cycles`.
    """

    seconds: float | None
    facts: dict[str, Any]
    _began: float | None = field(default=None)

    def __post_init__(self) -> None:
        self.facts |= {"seconds": self.seconds, "time_limited": False, "reason": "", "found": []}

    @property
    def used(self) -> float:
        """The seconds since the clock started."""
        self._began = time.monotonic() if self._began is None else self._began
        return time.monotonic() - self._began

    @property
    def left(self) -> float | None:
        """The seconds that are left, at least 0; None without a limit."""
        return None if self.seconds is None else max(0.0, self.seconds - self.used)

    def depends(self, reason: str) -> None:
        """Note that the result depends on time."""
        self.facts |= {"time_limited": True, "reason": reason}

    def found(self, search: str, cycles: int) -> None:
        """Note the cycles of the best result of a search so far."""
        rows = self.facts["found"]
        last = next((row["cycles"] for row in rows[::-1] if row["search"] == search), None)
        if last is None or cycles < last:
            rows.append({"seconds": round(self.used, 3), "search": search, "cycles": cycles})
