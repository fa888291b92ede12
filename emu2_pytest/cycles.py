"""Steps, cycles and DRAM words that are stored and compared."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pytest

COUNTERS = ("steps", "cycles", "dram_words")
"""What is stored. All three are counted from the program alone, so they are equal on every host."""


def counters(result: Any) -> dict[str, int]:
    """Return the counters of a result.

    A result is an `emu2.Report` or `emu2.Program`, a compiled function of MLSDK, the folder or
    `report.json` of a compile, or a mapping with the counters.
    """
    facts: Mapping[str, Any]
    if isinstance(result, Mapping):
        facts = result
    elif isinstance(result, str | PathLike):
        path = Path(result)
        facts = json.loads((path / "report.json" if path.is_dir() else path).read_text("utf-8"))
    elif hasattr(result, "counters"):
        facts = result.counters
    elif hasattr(result, "codegen_dir"):
        return counters(result.codegen_dir)
    elif hasattr(result, "report"):
        facts = result.report()
    else:
        pytest.fail(f"cycle_regression: a {type(result).__name__} has no counters", pytrace=False)
    missing = [name for name in COUNTERS if name not in facts]
    if missing:
        pytest.fail(f"cycle_regression: the result has no {', '.join(missing)}", pytrace=False)
    return {name: _total(facts[name]) for name in COUNTERS}


def _total(counter: Any) -> int:
    """Return a counter, or the sum of its parts."""
    if isinstance(counter, Mapping):
        return sum(_total(part) for part in counter.values())
    return int(counter)


class CycleRegression:
    """The stored counters of one test."""

    def __init__(self, folder: Path, test: str, *, bless: bool) -> None:
        """Remember where the counters of `test` lie and whether to store new ones."""
        self._folder, self._test, self._bless = folder, test, bless

    def check(self, result: Any, name: str = "", *, margin: float = 0.0) -> None:
        """Compare the counters of `result` with the stored ones, or store them with --emu2-bless.

        `name` tells several results of one test apart. `margin` is the part by which each counter
        may differ, in both directions: 0.02 is 2 %. 0 is exact.
        """
        if not 0 <= margin < math.inf:
            pytest.fail(f"cycle_regression: margin={margin} is no part from 0 on", pytrace=False)
        parts = [_file_name(part) for part in (self._test, name) if part]
        file = self._folder / f"{'-'.join(parts)}.json"
        now = counters(result)
        if self._bless:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
            return
        if not file.is_file():
            text = f"cycle_regression: nothing is stored in {file}; run once with --emu2-bless"
            pytest.fail(text, pytrace=False)
        stored = _stored(file)
        rows = [_row(counter, stored[counter], now[counter]) for counter in COUNTERS]
        if any(_far(stored[counter], now[counter], margin) for counter in COUNTERS):
            allowed = f"within {margin:.1%}" if margin else "exactly"
            head = f"cycle_regression: not {allowed} as in {file}; --emu2-bless stores this run"
            pytest.fail("\n".join((head, *rows)), pytrace=False)


def _stored(file: Path) -> Mapping[str, Any]:
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        if all(type(stored[counter]) is int for counter in COUNTERS):
            return dict(stored)
    except (ValueError, LookupError, TypeError):
        pass
    text = f"cycle_regression: {file} does not hold {', '.join(COUNTERS)}; --emu2-bless writes it"
    pytest.fail(text, pytrace=False)


def _far(stored: int, now: int, margin: float) -> bool:
    return abs(now - stored) > margin * stored


def _row(counter: str, stored: int, now: int) -> str:
    change = f" {(now - stored) / stored:+.2%}" if stored else ""
    return f"  {counter:<10} stored {stored:>12}  now {now:>12}{change if now != stored else ''}"


def _file_name(text: str) -> str:
    """Return a text with only characters that every file system takes."""
    return re.sub(r"[^A-Za-z0-9_.=-]+", "_", text).strip("_")
