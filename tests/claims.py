"""Lists what the tests prove: ``python tests/claims.py [WORD ...]``, by the first line of each."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def first_line(path: Path) -> str:
    """Return what a test file says of itself; empty if it says nothing."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        lines = [line.removeprefix("//!").strip() for line in text.split("\n\n")[0].splitlines()]
        return " ".join(lines) if text.startswith("//!") else ""
    return " ".join((ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].split())


def claims() -> Iterator[tuple[str, str]]:
    """Yield every test file with its first line."""
    rust = [*ROOT.glob("emu2/**/tests/*.rs"), *ROOT.glob("pycompiler/*/tests/*.rs")]
    for path in sorted([*ROOT.glob("tests/**/test_*.py"), *rust]):
        yield path.relative_to(ROOT).as_posix(), first_line(path)


if __name__ == "__main__":
    for name, line in claims():
        if all(word.lower() in f"{name} {line}".lower() for word in sys.argv[1:]):
            print(f"{name}: {line}")
