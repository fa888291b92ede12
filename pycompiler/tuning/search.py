"""Compiles a model with several options and keeps the program with the fewest cycles.

What was asked for comes first, then the presets, then one strategy family after the other on top of
the best so far. The search ends when all are tried, when its time is over, or with Ctrl-C; then the
best so far counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import onnx

from ..errors import PycompilerError
from ..executors import TIME, Workers
from ..halves_or_singles import TooDearError, compile_cheapest
from ..layout_passes import LayoutPlans
from ..machine import load_target
from ..options import ALL, Options
from ..pfvm.held import Array, holding
from ..pipeline import Artifacts
from ..report.report import Report
from ..request import Request
from ..search_budget import SearchBudget
from .candidates import Candidate, Candidates

DONE, INTERRUPTED = "everything was tried", "interrupted"


#: A model with a key that knows its data, and the data that it holds.
_Model = tuple[str, onnx.ModelProto, Mapping[str, Array]]


@lru_cache(maxsize=1)
def _plans_of(key: str) -> LayoutPlans:
    """Return the plans of layouts that this process made of the model that is tuned."""
    return LayoutPlans()


@dataclass(frozen=True, eq=False)
class Tried(Artifacts):
    """What a compile made; ``report`` is the data of its report."""

    report: dict[str, Any]


def try_options(
    model: _Model, machine: str, device: str, best: tuple[int, int] | None, options: Options
) -> Tried | str:
    """Compile a model in a worker; a text says why there is no program.

    Sets of options with the same layouts are planned once in each process. Programs are made where
    the estimate comes near the ``best`` so far.
    """
    report, target = Report(device, {}), load_target(machine)
    plans = _plans_of(model[0])
    with warnings.catch_warnings(), holding(model[2]):
        warnings.simplefilter("ignore")
        try:
            made = compile_cheapest(Request(model[1], target, options, report, plans=plans), best)
        except PycompilerError as problem:
            return f"{problem.code}: {problem.message}"
        except TooDearError as problem:
            return str(problem)
    return Tried(made.app, made.vsm, dict(made.files), report.data)


@dataclass(eq=False)
class Search:
    """The search for the best options of one model; ``rows`` are what was tried, in order.

    ``model`` is the model with its key and its data, and the names of machine and device.
    ``progress`` is told how far the search is.
    """

    model: tuple[_Model, str, str]
    workers: Workers
    budget: SearchBudget
    progress: Callable[[str], None]
    rows: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = DONE
    _best: tuple[tuple[int, int], Candidate, Tried] | None = None

    def run(self, candidates: Candidates, extent: str) -> Tried | None:
        """Search; return what the best options make, or None if nothing could be compiled.

        The options as they were asked for have no limit of time, but for their own searches. Ctrl-C
        before a first program is there ends the search without one.
        """
        asked, _ = candidates.as_asked(), self.budget.used
        try:
            self._try([asked], limited=False)
            self._try(candidates.presets())
            if extent == ALL:
                for option, values in candidates.families():
                    best = asked if self._best is None else self._best[1]
                    self._try(candidates.family(option, values, best))
        except KeyboardInterrupt:
            self.stopped = INTERRUPTED
            if self._best is None:
                raise
        finally:
            _plans_of.cache_clear()
        if self.stopped != DONE:
            self.budget.depends(f"the search for options: {self.stopped}")
        if self._best is None:
            return None
        found = self._best[2]
        if found.report["search"]["time_limited"]:
            self.budget.depends(found.report["search"]["reason"])
        return found

    def facts(self) -> dict[str, Any]:
        """Return the entry ``tuning`` of the report."""
        best = None if self._best is None else self._best[1]
        return {
            "executor": self.workers.name,
            "budget": self.budget.seconds,
            "seconds": round(self.budget.used, 3),
            "stopped": self.stopped,
            "best": None if best is None else best.name,
            "options": {} if best is None else dict(best.changes),
            "tried": self.rows,
        }

    def _try(self, candidates: Sequence[Candidate], *, limited: bool = True) -> None:
        """Compile all candidates, and note each; those that are ``limited`` have the time left."""
        left = self.budget.left
        deadline = None if left is None or not limited else time.monotonic() + left
        rows = [
            {"name": one.name, "options": dict(one.changes), "status": "not tried"}
            for one in candidates
        ]
        self.rows += rows
        best = None if self._best is None else self._best[0]
        # Without time, a search of a candidate ends at once.
        tasks = [(*self.model, best, replace(o.options, search_seconds=left)) for o in candidates]
        for number, found in self.workers.run(try_options, tasks, deadline):
            self._note(candidates[number], rows[number], found)
            ended = sum(row["status"] != "not tried" for row in self.rows)
            self.progress(f"tune: {ended} of {len(self.rows)} sets of options")

    def _note(self, candidate: Candidate, row: dict[str, Any], found: Any) -> None:
        if not isinstance(found, Tried):
            text = f"{type(found).__name__}: {found}" if isinstance(found, Exception) else found
            row["status"] = str(text)
            if found == TIME:
                self.stopped = TIME
            return
        data = found.report
        cycles, steps = data["cycles"], data["steps"]
        words = data["dram_words"]
        row |= {
            "status": "ok",
            "cycles": cycles,
            "steps": steps,
            "dram_words": words["read"] + words["written"],
            "host_operators": len(data["host_fallback"]),
            "seconds": round(sum(one.get("seconds", 0.0) for one in data["passes"]), 3),
        }
        # Work on the host costs no cycles: fewer operators there come first.
        rank = len(data["host_fallback"]), cycles
        if self._best is None or rank < self._best[0]:
            self._best = rank, candidate, found
            self.budget.found("options", cycles)
