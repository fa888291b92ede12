"""Exceptions of all packages come back whole from `pickle`, `copy` and other processes."""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import emu2
from emu2.errors import PortableError
from emu2_pytest.vsm import Mismatch, ValuesDifferError, expectation
from pycompiler.errors import TABLE, PycompilerError, SourceLocation, error

ROOT = Path(__file__).parents[1]
PACKAGES = ("emu2", "emu2_pytest", "pycompiler")

PARTS = {"code": "R0001", "message": "it is wrong", "help": "mend it"}
FINDINGS: list[Any] = [{"file": "a.vsm", "line": 1, "code": "A0101"}]
WRONG = Mismatch(expectation(1, "$lr0 = " + 16 * "0"), "GREG0", "n0", "0", 0, "1", "2", "3")

#: How those are made whose arguments are more than a text.
MADE: dict[str, Callable[[], Exception]] = {
    "EmulatorError": lambda: emu2.EmulatorError(**PARTS),
    "RunError": lambda: emu2.RunError(**PARTS, file="a.vsm", line=3),
    "AssembleError": lambda: emu2.AssembleError(rendered="refused", diagnostics=FINDINGS),
    "ValuesDifferError": lambda: ValuesDifferError([WRONG]),
}


def kinds() -> Iterator[type[BaseException]]:
    """Yield every class of exceptions that the sources declare, also in functions."""
    known = {name for name, kind in vars(builtins).items() if isinstance(kind, type)}
    known = {name for name in known if issubclass(getattr(builtins, name), BaseException)}
    declared = [
        (path, node)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    found: dict[str, Path] = {}
    grown = True
    while grown:
        grown = False
        for path, node in declared:
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if bases & known and f"{path}:{node.name}" not in found:
                found[f"{path}:{node.name}"] = path
                known.add(node.name)
                grown = True
    for name, path in found.items():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        yield getattr(importlib.import_module(module), name.rpartition(":")[2])


def examples(kind: type[BaseException]) -> Iterator[BaseException]:
    if issubclass(kind, PycompilerError):
        place = SourceLocation("model.py", 3, 7)
        rows = [code for code, row in TABLE.items() if row.raises is kind]
        yield from (error(code, place=place, **TABLE[code].example) for code in rows)
        yield kind("P0001", "it is wrong", "mend it", None, reason="so")
    elif kind.__module__.startswith("emu2") and kind.__name__ in MADE:
        yield MADE[kind.__name__]()
    else:
        yield kind("it is wrong")


def parts(problem: BaseException) -> Any:
    return type(problem), str(problem), problem.args, vars(problem)


def test_every_kind_comes_back_whole() -> None:
    found = list(kinds())
    assert {emu2.AssembleError, ValuesDifferError, PycompilerError} < set(found)
    for kind in found:
        for problem in examples(kind):
            problem.extra = "kept"  # type: ignore[attr-defined]
            pickled = [pickle.loads(pickle.dumps(problem, protocol)) for protocol in (0, 2, 5)]
            for made in (*pickled, copy.copy(problem), copy.deepcopy(problem)):
                assert parts(made) == parts(problem), kind


def test_what_cannot_be_pickled_becomes_text() -> None:
    problem = error("P0001", path=ROOT, reason=lambda: 0)
    made = pickle.loads(pickle.dumps(problem))
    assert made.render() == problem.render()
    assert made.fields == {"path": ROOT, "reason": str(problem.fields["reason"])}
    assert isinstance(made, PortableError)


def _assembled(text: str) -> int:
    return emu2.assemble(text, emu2.Spec.load("mini")).report()["steps"]


def test_another_process_reports_them() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        calls = [pool.submit(_assembled, text) for text in ("nop", "foo", "nop/2")]
        assert calls[0].result(60) == 1
        with pytest.raises(emu2.AssembleError) as caught:
            calls[1].result(60)
        assert [one["code"] for one in caught.value.diagnostics] == ["A0102"]
        assert calls[2].result(60) == 2
