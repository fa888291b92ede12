"""Pages that are written by hand have short lines, closed blocks, and decisions with a number each.

Compared with the text of the pages alone.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from code_lines import page_lines

ROOT = Path(__file__).parents[1]
#: Columns of a line of prose. Rows of tables, pictures and blocks may be longer.
WIDTH = 150
DECISION = re.compile(r"^\* \*\*(\d+)\. (.*?)(?=^\* \*\*|^#|\Z)", re.MULTILINE | re.DOTALL)
MOST_WORDS = 300


def lines(page: str) -> list[str]:
    """Return the lines that are written by hand."""
    return (ROOT / page).read_text(encoding="utf-8").splitlines()[: page_lines()[page]]


@pytest.mark.parametrize("page", page_lines())
def test_blocks_are_closed_and_prose_is_wrapped(page: str) -> None:
    inside, long = False, []
    for number, line in enumerate(lines(page), 1):
        inside ^= line.startswith("```")
        if not inside and not line.startswith(("|", "!")) and len(line) > WIDTH:
            long.append(number)
    assert not inside, "a block has no end"
    assert long == []


def test_decisions_have_a_number_each_and_say_what_would_change_them() -> None:
    found = DECISION.findall((ROOT / "docs/decisions.md").read_text(encoding="utf-8"))
    assert len(found) > 30
    assert [number for number, count in Counter(n for n, _ in found).items() if count > 1] == []
    assert [n for n, text in found if "*Would change it:*" not in " ".join(text.split())] == []
    assert [n for n, text in found if len(text.split()) > MOST_WORDS] == []
