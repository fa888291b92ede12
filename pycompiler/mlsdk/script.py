"""Runs a script written for MLSDK: its ``import mlsdk`` loads this package."""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import sys
import tokenize
import traceback
import types
from collections.abc import Sequence
from pathlib import Path

from ..console import report_problem, show_warnings_plainly
from ..errors import BUG_EXIT, USER_EXIT, PycompilerError, error, internal
from ..files import TEXT_BYTES, read_input
from ..frontend.no_writes import model_place
from ..runtime import proxy

_OURS = __package__ or "pycompiler.mlsdk"
#: The modules that scripts import, and the modules that they get.
_ALIASES = {"mlsdk": _OURS, "fx2onnx": f"{_OURS}.naming"}
#: Modules of the names that scripts import, for the processes that they start.
_IMPORTABLE = str(Path(__file__).parent / "importable")
_PACKAGE = str(Path(__file__).parent.parent) + os.sep


def _ours(name: str) -> str | None:
    """Return the module of this package that ``name`` stands for."""
    first, dot, rest = name.partition(".")
    return _ALIASES[first] + dot + rest if first in _ALIASES else None


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Maps ``mlsdk`` and its submodules to the modules of this package."""

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        ours = _ours(fullname)
        if ours is None or importlib.util.find_spec(ours) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=ours == _OURS)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = importlib.import_module(_ours(spec.name) or spec.name)
        # The import system sets its spec on the returned module; ours must keep its own.
        self._own = (module.__spec__, module.__loader__, module.__package__)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__, module.__loader__, module.__package__ = self._own


def install_alias() -> None:
    """Make ``import mlsdk`` load this package from now on."""
    if not any(isinstance(finder, _Alias) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Alias())


def _compiled(script: Path, file: str) -> types.CodeType:
    data = read_input(script, TEXT_BYTES)
    try:
        tokenize.detect_encoding(io.BytesIO(data).readline)  # refuses an unknown declared encoding
        return compile(data, file, "exec", dont_inherit=True)
    except SyntaxError as problem:
        if "codec" in str(problem) or "encoding" in str(problem) or "null bytes" in str(problem):
            raise error("P0005", path=script, reason=problem.msg) from problem
        raise
    except (UnicodeDecodeError, ValueError) as problem:
        raise error("P0005", path=script, reason=str(problem)) from problem


def run_script(script: str, arguments: Sequence[str]) -> int:
    """Run ``script`` as ``python script`` does, with ``sys.argv = [script, *arguments]``.

    Returns the exit code; ``SystemExit`` passes through. The script's own exceptions show Python's
    traceback on stderr, exceptions of pycompiler show one diagnostic.
    """
    show_warnings_plainly()
    file = os.path.abspath(script)
    try:
        code = _compiled(Path(script), file)
    except PycompilerError as problem:
        return report_problem(problem)
    except SyntaxError:
        traceback.print_exc(limit=0)
        return USER_EXIT
    install_alias()
    module = types.ModuleType("__main__")
    module.__file__ = file
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    module.__dict__.update(__builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    sys.path.append(_IMPORTABLE)
    try:
        exec(code, module.__dict__)
    except PycompilerError as problem:
        problem.place = problem.place or model_place(problem)
        return report_problem(problem)
    except Exception as problem:
        return _script_problem(problem, file)
    return 0


def _script_problem(problem: Exception, file: str) -> int:
    """Print Python's traceback, from the script on; report a fault inside pycompiler as a bug."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = frames and frames[-1].filename.startswith(_PACKAGE)
    # Proxies call torch for the script, so an exception there is the script's.
    if own and frames[-1].filename not in (__file__, proxy.__file__):
        report_problem(internal(problem))
        return BUG_EXIT
    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    sys.stdout.flush()
    traceback.print_exception(type(problem), problem, trace or problem.__traceback__)
    return USER_EXIT
