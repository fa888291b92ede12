"""The log of a compile: ``out.txt`` for people, ``out.json`` for programs.

Both tell the same: each pass with its time and sizes, each note, and how the compile ended. The
text ends with the table that ``pycompiler compile`` prints. After a failure both end where the
compile ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from ..report.report import Report, json_text
from .table import closing_lines, summary_table, tuning_table

_NAME = 18  # characters of the name of a pass
#: What the log says of the whole compile.
_HEAD = ("status", "version", "device", "options", "search")
_OWN = ("pass", "seconds", "peak_mib", "rewrites")


def log_json(report: Report) -> str:
    """Return the text of ``out.json``.

    ``events`` has a dict for each pass and each note, in order. ``time`` is in seconds since the
    start of the compile. A pass has ``pass``, ``seconds``, ``peak_mib`` (the most memory of the
    process until its end), its sizes, and how often each rewrite changed the graph (``rewrites``).
    A pass without ``seconds`` did not end.
    """
    events = [
        {"time": time, "event": event, **_sizes(facts, _OWN), **_sizes(facts)}
        for time, event, facts in report.events
    ]
    out: dict[str, Any] = {name: report.data[name] for name in _HEAD}
    out |= {"events": events}
    if "error" in report.data:
        out["error"] = report.data["error"]
    return json_text(out)


def log_text(report: Report) -> str:
    """Return the text of ``out.txt``."""
    data = report.data
    lines = [f"pycompiler {data['version']} for {data['device']}"]
    lines += [f"option {name} = {value!r}" for name, value in data["options"].items()]
    lines += [*_events(report), *_searches(data["search"])]
    error = data.get("error")
    if error is not None:
        code = error.get("code", error.get("type", ""))
        lines.append(f"{data['status']}: {code} {error['message']}".rstrip())
        lines += [f"help: {error['help']}"] if error.get("help") else []
        lines += [f"at {error['place']}"] if error.get("place") else []
        return _text(lines)
    tables = [tuning_table(data["tuning"])] if data["tuning"] else []
    if data["nodes"] and data["status"] != "running":  # large, and not final while it runs
        tables += [summary_table(data, f"nodes of {data['device']}")]
    lines += [line for table in tables for line in _plain(table)]
    return _text([*lines, *closing_lines(data), data["status"]])


def _events(report: Report) -> Iterator[str]:
    for time, event, facts in report.events:
        at = f"[{time:10.3f} s]"
        if event == "note":
            yield f"{at} note: {facts['text']}"
        elif "seconds" not in facts:
            yield f"{at} {facts['pass']:{_NAME}} did not end"
        else:
            sizes = ", ".join(f"{name} {value}" for name, value in _sizes(facts).items())
            took = f"{facts['seconds']:9.3f} s, {facts['peak_mib']} MiB"
            yield f"{at} {facts['pass']:{_NAME}} {took}{'; ' if sizes else ''}{sizes}"
            for name, count in facts.get("rewrites", {}).items():
                yield f"{'':{len(at)}} rewrite {name}: {count} times"


def _searches(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what searches found, with the seconds since the first one began."""
    for row in facts.get("found", ()):
        yield f"search: {row['seconds']:9.3f} s, {row['search']}: {row['cycles']} cycles"
    if facts.get("time_limited"):
        yield f"the result depends on time: {facts['reason']}"


def _plain(table: Table) -> Iterator[str]:
    """Yield a table with a line for each row, however long it becomes.

    Rich draws it too, but takes seconds for the thousands of rows of a network.
    """
    columns = [[str(one.header), *map(str, one.cells)] for one in table.columns]
    widths = [max(map(len, cells)) for cells in columns]
    yield str(table.title)
    for row in zip(*columns, strict=True):
        cells = zip(table.columns, row, widths, strict=True)
        yield "  ".join(
            cell.rjust(width) if one.justify == "right" else cell.ljust(width)
            for one, cell, width in cells
        ).rstrip()


def _sizes(facts: Mapping[str, Any], names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the facts of ``names``; without it, all other plain values."""
    if names is not None:
        return {name: facts[name] for name in names if name in facts}
    plain = (int, float, str)
    return {k: v for k, v in facts.items() if k not in _OWN and isinstance(v, plain)}


def _text(lines: list[str]) -> str:
    return "\n".join(lines).encode(errors="backslashreplace").decode() + "\n"
