"""The table of what a change of the compiler did to the corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .record import Record

_HEAD = ("program", "differs first in", "cycles before", "after", "change", "DRAM words")


def first_difference(old: Record, new: Record) -> str:
    """Return the first part that differs: `model`, a pass, or `text`; empty if none does."""
    if old.model != new.model:
        return "model"
    if old.refused != new.refused:
        return f"{old.refused or 'compiled'} -> {new.refused or 'compiled'}"
    before, after = old.dumps or {}, new.dumps or {}
    for name in [*after, *(name for name in before if name not in after)]:
        if before.get(name) != after.get(name):
            return name
    return "" if old.text == new.text else "text"


def table(old: Mapping[str, Record], new: Mapping[str, Record]) -> Iterator[str]:
    """Yield the lines: a row for each program of ``new`` that differs, then the sums.

    Sums are over the programs that both have, with the same model.
    """
    rows = [_HEAD]
    for name, now in new.items():
        if name not in old:
            rows.append((name, "new", "", str(now.cycles), "", ""))
        elif where := first_difference(old[name], now):
            rows.append((name, where, *_numbers(old[name], now)))
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    for row in rows if len(rows) > 1 else ():
        names = (cell.ljust(width) for cell, width in zip(row[:2], widths, strict=False))
        numbers = (cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True))
        yield "  ".join((*names, *numbers)).rstrip()
    both = [(old[n], new[n]) for n in new if n in old and old[n].model == new[n].model]
    texts = sum(before.text != after.text for before, after in both)
    yield f"{len(new)} programs, {len(rows) - 1} differ, of which {texts} in their text"
    before, after = (sum(pair[side].cycles for pair in both) for side in (0, 1))
    yield f"cycles in sum: {before:,} before, {after:,} after ({_percent(before, after)})"
    worst = max(both, key=lambda pair: _ratio(pair[0].cycles, pair[1].cycles), default=None)
    if worst is not None and (most := _ratio(worst[0].cycles, worst[1].cycles)) > 1:
        yield f"the largest growth of a program: {100 * (most - 1):+.2f} %"


def _numbers(old: Record, new: Record) -> tuple[str, str, str, str]:
    words = new.dram_words - old.dram_words
    change = _percent(old.cycles, new.cycles) if old.cycles != new.cycles else ""
    return str(old.cycles), str(new.cycles), change, f"{words:+}" if words else ""


def _ratio(before: int, after: int) -> float:
    return after / before if before else 1.0


def _percent(before: int, after: int) -> str:
    return f"{100 * (_ratio(before, after) - 1):+.2f} %"
