"""Counts the lines of code of the compiler: ``python tests/code_lines.py``.

Blank lines, comments, docstrings and generated files do not count. Python and Rust do.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pycompiler"
CEILINGS = tomllib.loads((ROOT / "tests/data/code_lines.toml").read_text(encoding="utf-8"))
#: Rooms that stand beside the compiler; all others are its core.
TOOLS = frozenset(CEILINGS["rooms_of_tools"])


def python_lines(path: Path) -> int:
    """Count the lines of a Python file."""
    source = path.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            docstrings.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    lines = enumerate(map(str.strip, source.split("\n")), 1)
    return sum(
        bool(line) and not line.startswith("#") for at, line in lines if at not in docstrings
    )


def rust_lines(path: Path) -> int:
    """Count the lines of a Rust file."""
    lines = map(str.strip, path.read_text(encoding="utf-8").split("\n"))
    return sum(bool(line) and not line.startswith("//") for line in lines)


def counts() -> Counter[str]:
    """Return the lines of each room of `pycompiler`."""
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        parts = path.relative_to(PACKAGE).parts
        if path.suffix == ".py" and "generated" not in parts:
            found[room] += python_lines(path)
        elif path.suffix == ".rs" and not {"tests", "target"} & set(parts):
            found[room] += rust_lines(path)
    return found


def totals() -> dict[str, int]:
    """Return the lines of the core and of the tools."""
    found = counts()
    tools = sum(lines for room, lines in found.items() if room in TOOLS)
    return {"core": found.total() - tools, "tools": tools}


if __name__ == "__main__":
    for room, lines in counts().most_common():
        print(f"{lines:7,}  {room}")
    print(totals())
