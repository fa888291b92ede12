"""The structure of the Python packages: no import cycle, no long file, rooms as documented.

The table of rooms in ``docs/architecture.md`` gives the direction: a room imports exactly the rooms
that its row names, and these stand below it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from claims import claims

ROOT = Path(__file__).parents[1]
PACKAGES = ("pycompiler", "emu2")
GENERATED = {"generated"}
MOST_LINES = 600
PAGE = ROOT / "docs" / "architecture.md"
HEADING = "## The modules of `pycompiler`"


def modules(root: Path) -> dict[str, Path]:
    """Return every module of the packages below ``root`` by its full name."""
    found: dict[str, Path] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of ``known`` that ``name`` imports: at its top, in functions, or for types.

    ``from package import name`` is an import of the package's ``__init__`` unless ``name`` is a
    module. Being in a package imports the package's ``__init__`` too: that is not counted.
    """
    path = known[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join((*above, *([node.module] if node.module else [])))
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner in known:
                    yield inner
                elif base in known:
                    yield base


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return one cycle of the graph; empty if there is none."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        stack = [(start, iter(sorted(graph[start])))]
        while stack:
            name, following = stack[-1]
            if name not in path:
                path.append(name)
            step = next((n for n in following if n not in done), None)
            if step is None:
                done.add(name)
                path.remove(name)
                stack.pop()
            elif step in path:
                return [*path[path.index(step) :], step]
            else:
                stack.append((step, iter(sorted(graph[step]))))
    return []


@cache
def import_graph(root: Path) -> dict[str, set[str]]:
    """Return every module of the packages with its imports."""
    known = modules(root)
    return {name: set(imports(name, known)) - {name} for name in known}


def room(name: str) -> str:
    """Return the room of a module: a folder or file of ``pycompiler``, or another package."""
    package, *rest = name.split(".")
    if package != "pycompiler":
        return package
    return rest[0] if rest else "__init__"


def rooms(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the other rooms that each room of ``pycompiler`` imports."""
    found: dict[str, set[str]] = {}
    for name, others in graph.items():
        if name.split(".")[0] == "pycompiler":
            found.setdefault(room(name), set()).update(map(room, others))
    return {own: others - {own} for own, others in found.items()}


def stated() -> dict[str, set[str]]:
    """Return the rows of the page's table, from the top: room, and the rooms that it imports."""
    section = PAGE.read_text(encoding="utf-8").split(HEADING, 1)[1].split("\n## ", 1)[0]
    found: dict[str, set[str]] = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            names = re.findall(r"`([\w/.]+)`", cells[0])
            assert len(names) == 1, line
            found[names[0].removesuffix(".py").strip("/")] = {
                other.removesuffix(".py").strip("/") for other in re.findall(r"`([^`]+)`", cells[2])
            }
    return found


def test_no_circle_between_files() -> None:
    assert circle(import_graph(ROOT)) == []


def test_no_long_file() -> None:
    paths = (
        path for folder in (*PACKAGES, "tests", "benches") for path in (ROOT / folder).rglob("*.py")
    )
    long = {
        str(path.relative_to(ROOT)): count
        for path in paths
        if not GENERATED & set(path.parts)
        and (count := len(path.read_text(encoding="utf-8").splitlines())) > MOST_LINES
    }
    assert long == {}


def test_no_test_imports_another() -> None:
    """Code that tests share lives in modules that are not tests."""
    pattern = re.compile(r"^\s*(from|import) (\w+\.)*test_", re.MULTILINE)
    paths = (ROOT / "tests").rglob("*.py")
    assert [str(p) for p in paths if pattern.search(p.read_text(encoding="utf-8"))] == []


def test_no_two_tests_have_one_name() -> None:
    """Pytest imports test files by their names alone."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_every_test_says_what_it_proves() -> None:
    assert [name for name, line in claims() if not line] == []


def test_rooms_import_what_is_stated() -> None:
    table, found = stated(), rooms(import_graph(ROOT))
    assert set(table) - {"emu2"} == set(found)
    for own, others in found.items():
        assert others - table[own] == set(), f"`{own}` imports what its row does not name"
        assert table[own] - others == set(), f"the row of `{own}` names what it does not import"


def test_rooms_import_what_stands_below_them() -> None:
    table = stated()
    order = list(table)
    for own, others in table.items():
        above = {other for other in others if order.index(other) <= order.index(own)}
        assert above == set(), f"`{own}` imports rooms above it"


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"a": "import emu2.b", "b": "from emu2 import a"}, {"emu2.a", "emu2.b"}),
        ({"a": "from . import b", "b": "from .a import x"}, {"emu2.a", "emu2.b"}),
        ({"a": "from .b import x", "b": "def f():\n    from . import a"}, {"emu2.a", "emu2.b"}),
        (
            {"a": "if TYPE_CHECKING:\n    from .c.d import x", "c/d": "from ..a import y"},
            {"emu2.a", "emu2.c.d"},
        ),
        ({"a": "from . import b", "b": "from .c import x", "c": ""}, set()),
    ],
)
def test_circles_are_found(files: dict[str, str], wanted: set[str], tmp_path: Path) -> None:
    for name, text in files.items():
        path = tmp_path / "emu2" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    assert set(circle(import_graph(tmp_path))) == wanted
