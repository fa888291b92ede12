"""Counts code and pages: ``python tests/code_lines.py``.

Of the compiler, the lines of code in Python and Rust: blank lines, comments, docstrings and
generated files do not count. Of the pages, the lines written by hand. Of all packages, the
functions that branch much without an explanation.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pycompiler"
CEILINGS = tomllib.loads((ROOT / "tests/data/code_lines.toml").read_text(encoding="utf-8"))
#: Why some functions that branch much stay whole.
EXPLAINED = tomllib.loads((ROOT / "tests/data/branching_functions.toml").read_text("utf-8"))
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


@cache
def files() -> dict[str, int]:
    """Return the lines of each file of `pycompiler`, by its path from there."""
    found = {}
    for path in PACKAGE.rglob("*"):
        place = path.relative_to(PACKAGE)
        if path.suffix == ".py" and "generated" not in place.parts:
            found[place.as_posix()] = python_lines(path)
        elif path.suffix == ".rs" and not {"tests", "target"} & set(place.parts):
            found[place.as_posix()] = rust_lines(path)
    return found


def counts() -> Counter[str]:
    """Return the lines of each room of `pycompiler`."""
    found: Counter[str] = Counter()
    for name, lines in files().items():
        found[name.split("/")[0].removesuffix(".py")] += lines
    return found


def named(pattern: str) -> set[str]:
    """Return the files in a folder, or those of a pattern, where `{a,b}` stands for a or b."""
    cut = re.fullmatch(r"(.*)\{(.*)\}(.*)", pattern)
    each = [cut[1] + one + cut[3] for one in cut[2].split(",")] if cut else [pattern]
    found = [{f for f in files() if fnmatch(f, one) or f.startswith(one + "/")} for one in each]
    assert all(found), f"{pattern} names what does not exist"
    return set().union(*found)


def thousands() -> dict[str, tuple[int, int]]:
    """Return of each row of the table in `docs/architecture.md` what it states, and the lines."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = text.split("## The size of the core")[1]
    rows = re.findall(r"^\| (.*`.*?) \| ([\d,]+) \|", section, re.M)
    patterns = {where: re.findall(r"`(.+?)`", where) for where, _ in rows}
    return {
        where: (
            int(stated.replace(",", "")),
            sum(files()[name] for name in set().union(*map(named, patterns[where]))),
        )
        for where, stated in rows
    }


#: A function with more branches than this is listed.
MOST_BRANCHES = 20
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.comprehension, ast.Assert, ast.Lambda)


def branches(function: ast.AST) -> int:
    """Return the cyclomatic complexity of a function, with the functions in it."""
    found = 1
    for node in ast.walk(function):
        found += isinstance(node, _BRANCHES)
        if isinstance(node, ast.comprehension):
            found += len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        elif isinstance(node, ast.Try):
            found += len(node.handlers)
        elif isinstance(node, ast.Match):
            found += len(node.cases)
    return found


@cache
def branching_functions() -> dict[str, int]:
    """Return the functions of the packages that branch much, with their complexity."""
    found: dict[str, int] = {}
    paths = (
        p for name in ("emu2", "emu2_pytest", "pycompiler") for p in (ROOT / name).rglob("*.py")
    )
    for path in sorted(p for p in paths if "generated" not in p.parts):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        scopes = [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
        for scope in scopes:
            for node in ast.iter_child_nodes(scope):
                if isinstance(node, ast.FunctionDef) and branches(node) > MOST_BRANCHES:
                    found[f"{path.relative_to(ROOT)}:{node.name}"] = branches(node)
    return found


def page_lines() -> dict[str, int]:
    """Return the lines of each page that are written by hand."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    found = {}
    for path in (*top, *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        if not text.startswith("<!-- Generated"):
            by_hand = text.split("<!-- Below: generated", 1)[0]
            found[path.relative_to(ROOT).as_posix()] = len(by_hand.splitlines())
    return found


def totals() -> dict[str, int]:
    """Return what has a ceiling: lines of the core, the tools and the pages, and functions."""
    found = counts()
    tools = sum(lines for room, lines in found.items() if room in TOOLS)
    return {
        "core": found.total() - tools,
        "tools": tools,
        "pages": sum(page_lines().values()),
        "branching_functions": len(branching_functions().keys() - EXPLAINED.keys()),
    }


if __name__ == "__main__":
    for room, lines in counts().most_common():
        print(f"{lines:7,}  {room}")
    print(totals())
    for where, (stated, lines) in thousands().items():
        print(f"{lines:7,}  (stated: {stated:,})  {where}")
