"""How fast a compiled model is: what a compiled function answers when it is asked or printed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..app.model import App, DeviceSegment
from ..errors import PycompilerError
from ..graph.html import html_table
from ..report.codegen_dir import REPORT, TRACE, read_file
from ..report.cycle_shares import cycle_shares, cycles_by_kind
from .table import cost_lines, percent
from .time_line import Slice, slices_of, time_line

#: What a report of this version has.
_NEEDED = {"device", "nodes", "steps", "cycles", "clock_mhz", "bound", "cycle_shares"}
_PRINTED, _LISTED = 2, 10  # slowest nodes in the text, and on a page


class Performance:
    """The cycles of a compiled model, from the report of its compile. Printed, it has five lines.

    All numbers come from the cycle model and are the same for every call. ``facts`` is the content
    of ``report.json``, or as much as is known of it. ``unknown`` says what is not known. ``trace``
    returns the text of ``trace.json``.
    """

    def __init__(
        self,
        name: str,
        facts: Mapping[str, Any],
        trace: Callable[[], bytes] | None = None,
        unknown: Sequence[str] = (),
        parts: Sequence[Performance] = (),
    ):
        self.name, self.facts, self.unknown = name, facts, tuple(unknown)
        #: Compiled models that run one after the other, if there are several.
        self.parts = tuple(parts)
        self._trace = trace

    @property
    def cycles(self) -> int:
        """The cycles of a call on the device; the host counts none."""
        return int(self.facts["cycles"])

    @property
    def microseconds(self) -> float | None:
        """The time of these cycles at the clock of the machine; None if nothing runs there."""
        clock = self.facts["clock_mhz"]
        return self.cycles / clock if clock else None

    @property
    def times_the_bound(self) -> float | None:
        """The cycles over those of the bound; None if they are not compared."""
        factor: float | None = self.facts["bound"].get("factor")
        return factor

    @property
    def cycles_by_kind(self) -> dict[str, int]:
        """The cycles of each kind of work; a node's waits count as waits. Empty if not known."""
        return cycles_by_kind(self.nodes) if self.facts["cycle_shares"] else {}

    @property
    def waits(self) -> dict[str, int]:
        """The cycles of waits by reason: `queue`, `transfer`, `latency`, `dependence`."""
        return dict(self.facts.get("waits", {}))

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """A row for each node, in the order in which they run: that of ``report.json``."""
        return list(self.facts["nodes"])

    def slowest(self, count: int = _LISTED) -> list[dict[str, Any]]:
        """Return the rows of the nodes with the most cycles; ``source`` is a line of the model."""
        return sorted(self.facts["nodes"], key=lambda row: -row["cycles"])[:count]

    @cached_property
    def slices(self) -> list[Slice]:
        """What the device does, and when; empty if there is no ``trace.json``."""
        if not self.parts:
            return [] if self._trace is None else slices_of(self._trace())
        slices, at = [], 0
        for part in self.parts:
            slices += [one.later(at) for one in part.slices]
            at += part.cycles
        return slices

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return str(self)

    def lines(self) -> list[str]:
        """Return the lines of the text."""
        text = [self._headline(), *cost_lines(self.facts)]
        for place, row in enumerate(self.slowest(_PRINTED)):
            percentage = percent(row["cycles"] / (self.cycles or 1))
            words = f"{row['op']} {row['node']}, {row['cycles']} cycles ({percentage})"
            source = f", {row['source']}" if row["source"] else ""
            text.append(f"{'then' if place else 'slowest'}: {words}{source}")
        return text + [f"not known: {one}" for one in self.unknown]

    def _headline(self) -> str:
        name = f"{self.name} for {self.facts['device']}"
        if self.microseconds is None:
            return f"{name}: nothing runs on the device, so it has no cycles"
        line = f"{name}: {self.cycles} cycles, {self.microseconds:.4g} us at "
        line += f"{self.facts['clock_mhz']} MHz"
        hosted = len(self.facts["host_fallback"])
        return f"{line}, and {hosted} operators on the host without cycles" if hosted else line

    def _repr_html_(self) -> str:
        """Return the text, the picture of the time line and a table, for notebooks."""
        head = ("node", "op", "cycles", "of them waits", "share", "source")
        rows = [
            (*(row["node"], row["op"], row["cycles"], row.get("wait_cycles", "")),
             *(percent(row["cycles"] / (self.cycles or 1)), row["source"] or ""))
            for row in self.slowest()
        ]  # fmt: skip
        said = [line for line in self.lines() if not line.startswith(("slowest", "then"))]
        clock = self.facts["clock_mhz"]
        picture = time_line(self.slices, self.cycles, clock) if self.slices else ""
        table = html_table("\n".join(said), head, rows)
        return picture + table.replace("<p>", "<p style='white-space:pre-line'>", 1)


def report_text(folder: Path) -> bytes | None:
    """Return the text of the report in a folder; None if there is none."""
    try:
        return read_file(folder, REPORT)
    except PycompilerError:
        return None


def of_folder(folder: Path, text: bytes) -> Performance | None:
    """Return what the compile that wrote a folder knows; ``text`` is its report.

    None if it is no report of this version. The time line is read when it is asked for. If the
    folder was written anew since, there is none.
    """
    try:
        facts = json.loads(text)
        if not facts.keys() >= _NEEDED:
            return None
    except (ValueError, RecursionError, AttributeError):
        return None

    def trace() -> bytes:
        try:
            return read_file(folder, TRACE) if read_file(folder, REPORT) == text else b""
        except PycompilerError:
            return b""

    return Performance(folder.name, facts, trace)


def of_app(app: App, clock_mhz: float) -> Performance:
    """Return what an app alone knows; ``clock_mhz`` is that of its machine."""
    programs = [one for one in app.segments if isinstance(one, DeviceSegment)]
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for program in programs:
        counts = program.lines.by_node(program.cycles)
        for owner, cycles in zip(program.lines.owners, counts, strict=True):
            row = {"node": owner.row, "op": owner.op, "source": owner.source, "cycles": 0}
            rows.setdefault((owner.op, owner.row), row)["cycles"] += cycles
    facts = {
        **{"device": app.target, "clock_mhz": clock_mhz if programs else None},
        "steps": sum(one.steps for one in programs),
        "cycles": sum(one.cycles for one in programs),
        **{"nodes": list(rows.values()), "bound": {}, "cycle_shares": {}, "host_fallback": []},
    }
    unknown = ["the bound and the kinds of work, which an app does not have (its folder has them)"]
    hosted = len(app.segments) - len(programs)
    if hosted:
        unknown.append(f"the time of its {hosted} parts on the host")
    return Performance("app", facts, unknown=unknown)


def in_turn(
    name: str, device: str, parts: Sequence[Performance], unknown: Sequence[str] = ()
) -> Performance:
    """Return the performance of models that run one after the other. Their bounds add up."""
    facts: dict[str, Any] = {"device": device, "clock_mhz": None, "bound": {}, "cycle_shares": {}}
    facts |= {"steps": 0, "cycles": 0, "nodes": [], "host_fallback": []}
    for part in parts:
        facts["clock_mhz"] = facts["clock_mhz"] or part.facts["clock_mhz"]
        facts |= {key: facts[key] + part.facts[key] for key in ("steps", "cycles", "host_fallback")}
        rows = part.facts["nodes"]
        facts["nodes"] += [{**row, "node": f"{part.name}: {row['node']}"} for row in rows]
    bounds = [part.facts["bound"] for part in parts if part.facts["bound"]]
    if parts and len(bounds) == len(parts):
        facts["bound"] = _sum_of(bounds, facts["cycles"])
    waits: Counter[str] = Counter()
    for part in parts:
        waits.update(part.waits)
    facts["waits"] = dict(waits)
    if all(part.facts["cycle_shares"] for part in parts):
        facts["cycle_shares"] = cycle_shares(facts["nodes"])
    return Performance(name, facts, None, unknown, parts)


def _sum_of(bounds: Sequence[Mapping[str, Any]], cycles: int) -> dict[str, Any]:
    """Return the bound of models that run one after the other."""
    reason = next((one["reason"] for one in bounds if one["factor"] is None), None)
    if any(one["cycles"] is None for one in bounds):
        return {**dict.fromkeys(bounds[0]), "reason": reason}
    total: Counter[str] = Counter()
    for one in bounds:
        total.update({key: n for key, n in one.items() if key not in ("binds", "factor", "reason")})
    factor = None if reason else round(cycles / total["cycles"], 2)
    binds = max(bounds, key=lambda one: int(one["cycles"]))["binds"]
    return {**total, "binds": binds, "factor": factor, "reason": reason}
