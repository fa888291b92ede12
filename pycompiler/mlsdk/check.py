"""Finds calls in a script that this MLSDK does not have. The script is read, not run."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from emu2.near import did_you_mean

from ..console import report_problem
from ..errors import USER_EXIT, PycompilerError, SourceLocation, error
from ..options import OPTIONS, parse_options
from ..presets.variables import unknown_variables
from .context import Context
from .device import MNDevice
from .script import read_script
from .script_names import Known, NamesOfScript, refuses

_PAGE = "docs/mlsdk.md lists what there is"


class Checker(NamesOfScript):
    """Reads a script. ``findings`` has a diagnostic for each unknown or wrong call.

    P0709; P0601, P0701 to P0703, P0710 for devices, options, calls and variables that are refused.
    """

    def __init__(self, tree: ast.Module, file: str):
        self.calls = 0
        self.findings: list[PycompilerError] = []
        self._file = file
        super().__init__(tree)
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and re.fullmatch(r"[A-Z]+_[A-Z0-9_]+", text):
                for problem in unknown_variables([text]):
                    self.note(node, problem)

    def note(self, node: ast.AST, problem: PycompilerError) -> None:
        """Keep a diagnostic with the place of a node."""
        if self.settled:
            line, column = getattr(node, "lineno", None), getattr(node, "col_offset", -1)
            problem.place = SourceLocation(self._file, line, column + 1)
            self.findings.append(problem)

    def unknown(self, node: ast.AST, owner: str, name: str, known: Iterable[str]) -> None:
        """Keep P0709 for a name that ``owner`` does not have; ``known`` are those that it has."""
        remedy = did_you_mean(name, (own for own in known if own[0] != "_")) + _PAGE
        full = f"{owner}.{name}" if owner else name
        self.note(node, error("P0709", name=full, problem="is unknown", remedy=remedy))

    def call(self, node: ast.Call, called: Known) -> None:
        """Check the arguments of a call of something of MLSDK."""
        self.calls += self.settled
        if (fault := _misfit(node, called)) is not None:
            return self.note(*fault)
        if (refusal := refuses(called)) is not None:
            self.note(node, refusal)
        if called.what is MNDevice:
            for one in (*node.args, *(k.value for k in node.keywords if k.arg)):
                if isinstance(one, ast.Constant):
                    self._try(one, MNDevice, one.value)
        for keyword in node.keywords:
            if keyword.arg == "options" and isinstance(keyword.value, ast.Dict):
                self._options(keyword.value)
        return None

    def _options(self, given: ast.Dict) -> None:
        """Check the options that are written out; files of options may not exist yet."""
        for key, value in zip(given.keys, given.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                known = OPTIONS.get(key.value)
                if known is None:
                    self._try(key, parse_options, {key.value: None})
                elif isinstance(value, ast.Constant) and not known.accepts("a/path"):
                    self._try(value, parse_options, {key.value: value.value})

    def _try(self, node: ast.AST, work: Any, argument: object) -> None:
        try:
            work(argument)
        except PycompilerError as problem:
            self.note(node, problem)


def _misfit(node: ast.Call, called: Known) -> tuple[ast.AST, PycompilerError] | None:
    """Return P0709 and its place if a function does not take the arguments of a call."""
    signature, keywords = called.signature(), [k for k in node.keywords if k.arg is not None]
    parameters = dict(signature.parameters)
    if getattr(called.what, "__func__", None) is Context.compile_automap:
        # It passes these on.
        own = inspect.signature(Context.compile).parameters.values()
        parameters.pop("settings")
        parameters |= {p.name: p for p in own if p.kind is p.KEYWORD_ONLY}
        signature = inspect.Signature(list(parameters.values()))
    takes = f"it takes ({', '.join(parameters)})"
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for keyword in () if open_ended else keywords:
        if keyword.arg not in parameters:
            remedy = did_you_mean(str(keyword.arg), parameters) + takes
            problem = f"has no parameter `{keyword.arg}`"
            return keyword.value, error("P0709", name=called.name, problem=problem, remedy=remedy)
    if len(keywords) < len(node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    try:
        signature.bind(*node.args, **{str(k.arg): k for k in keywords})
    except TypeError as fault:
        problem = f"cannot be called like this: {fault}"
        return node, error("P0709", name=called.name, problem=problem, remedy=takes)
    return None


def check_scripts(paths: list[str]) -> int:
    """Print what is unknown in scripts, a line about each; return the exit code. P0001, P0005."""
    found = 0
    for path in paths:
        try:
            tree = read_script(Path(path), path, ast.PyCF_ONLY_AST)
        except SyntaxError as fault:
            place = SourceLocation(path, fault.lineno, fault.offset)
            raise error("P0005", path=path, reason=fault.msg, place=place) from fault
        checker = Checker(tree, path)
        for problem in checker.findings:
            report_problem(problem)
        found += len(checker.findings)
        print(f"{path}: {checker.calls} calls of MLSDK, {len(checker.findings)} findings")
    return USER_EXIT if found else 0
