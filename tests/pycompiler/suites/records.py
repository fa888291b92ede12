"""The file with the outcome of each test of a suite, and the parts of a page that it makes."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from .outcome import HOST, REFUSED, Outcome, general

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
_MOST_REASONS = 3
_LONGEST = 120  # characters shown of a reason


def record(outcomes: Sequence[Outcome], version: str) -> str:
    """Return the text of the file with all outcomes: the suite's version, a line for each test."""
    lines = [version]
    for one in outcomes:
        lines.append("\t".join((one.name, one.operator, one.kind, one.code, _short(one))).rstrip())
    return "\n".join(lines) + "\n"


def read_record(text: str) -> tuple[str, list[Outcome]]:
    """Return the version of the suite and the outcomes that a file holds."""
    first, *lines = text.splitlines()
    found = []
    for line in lines:
        name, operator, kind, *rest = line.split("\t")
        code, reason = (*rest, "", "")[:2]
        found.append(Outcome(name, operator, kind, code, reason))
    return first, found


def _short(one: Outcome) -> str:
    """Return why a test is not on the device, without names and numbers of one test."""
    if one.kind == REFUSED:
        text = re.sub(r"^\[[^]]*\] ", "", general(one.reason))  # a recorded one has no code
        return _words(text.split(" (")[0])
    return "; ".join(map(_words, general(one.reason).split("; ")[:_MOST_REASONS]))


def _words(text: str) -> str:
    """Return a text with its first words only, if it is long."""
    return textwrap.shorten(text, _LONGEST, placeholder=" ...")


def counts(outcomes: Sequence[Outcome]) -> Counter[str]:
    """Return how many tests have each outcome."""
    return Counter(one.kind for one in outcomes)


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |\n"


def outcome_table(
    columns: Mapping[str, Sequence[Outcome]], meanings: Mapping[str, str], faults: str
) -> str:
    """Return the table with the number of tests of each outcome, a column for each run."""
    found = [counts(one) for one in columns.values()]
    out = [row("outcome", *columns), row("---", *["---:"] * len(columns))]
    for kind, words in meanings.items():
        out.append(row(words, *(str(one[kind]) for one in found)))
    rest = (sum(kind not in meanings for kind in one.elements()) for one in found)
    out.append(row(faults, *map(str, rest)))
    return "".join(out)


def others(first: Sequence[Outcome], second: Sequence[Outcome]) -> str:
    """Return the tests that fare otherwise in the second run."""
    known = {one.name: one.kind for one in first}
    moved: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in second:
        if known[one.name] != one.kind:
            moved[known[one.name], one.kind].append(f"`{one.name}`")
    if not moved:
        return "\nThe tests of the sample have the same outcomes on both machines.\n"
    out = ["\n", row("on the first machine", "on the second", "tests"), row("---", "---", "---")]
    out += [row(*kinds, ", ".join(names)) for kinds, names in sorted(moved.items())]
    return "".join(out)


def refusals(outcomes: Sequence[Outcome], causes: Mapping[str, str]) -> str:
    """Return the table of refused tests by the code of their diagnostic."""
    codes = Counter(one.code for one in outcomes if one.kind == REFUSED)
    out = ["\n## Refused, by code\n\n", row("code", "tests", "why"), row("---", "---:", "---")]
    for code, count in sorted(codes.items()):
        out.append(row(f"[{code}](errors.md)", str(count), causes.get(code, "")))
    return "".join(out)


def operators(outcomes: Sequence[Outcome], kinds: Sequence[str]) -> str:
    """Return the table of operators: tests by outcome, and why they are not on the device."""
    out = ["\n## Operators\n\n", row("operator", *kinds, "why not on the device")]
    out.append(row("---", *("---:",) * len(kinds), "---"))
    by_operator: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        by_operator[one.operator].append(one)
    for operator, tests in sorted(by_operator.items()):
        found = counts(tests)
        reasons = Counter(one.reason for one in tests if one.kind in (HOST, REFUSED))
        shown = "; ".join(reason for reason, _ in reasons.most_common(_MOST_REASONS))
        numbers = (str(found[kind] or "") for kind in kinds)
        out.append(row(f"`{operator}`", *numbers, shown.replace("|", "\\|")))
    return "".join(out)


#: Why a test is refused, by code.
CAUSES = {
    "P0101": "torch cannot capture it as a graph",
    "P0102": "no ONNX form",
    "P0105": "it writes into an input",
    "P0106": "torch's exporter fails",
    "P0109": "complex numbers of halves, or sparse tensors",
    "P0138": "no ONNX form; the diagnostic names a replacement",
    "P0103": "the size of a result depends on values",
    "P0108": "onnx's own checks or passes refuse the model",
    "P0131": "text",
    "P0132": "sequences",
    "P0133": "optionals",
    "P0134": "maps",
    "P0135": "floats of 8 bits",
    "P0136": "elements of 2 or 4 bits",
    "P0301": "a value does not fit local memory",
    "P0302": "a value does not fit DRAM",
    "P0305": "no layout switch fits local memory",
    "P0602": "neither onnxruntime nor the reference evaluator runs it",
}
