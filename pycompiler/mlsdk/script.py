"""Runs a script written for MLSDK: its ``import mlsdk`` loads this package."""

from __future__ import annotations

import builtins
import importlib.machinery
import io
import os
import sys
import tokenize
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..console import report_problem, show_warnings_plainly
from ..errors import BUG_EXIT, USER_EXIT, PycompilerError, error, internal
from ..files import TEXT_BYTES, read_input
from ..frontend.no_writes import model_place
from ..runtime import proxy
from .install import SOURCES

_PACKAGE = str(Path(__file__).parent.parent) + os.sep


def read_script(script: Path, file: str, flags: int = 0) -> Any:
    """Compile a script; ``flags`` are those of Python's ``compile``. P0001, P0005, SyntaxError."""
    data = read_input(script, TEXT_BYTES)
    try:
        tokenize.detect_encoding(io.BytesIO(data).readline)  # refuses an unknown declared encoding
        return compile(data, file, "exec", flags, dont_inherit=True)
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
        code = read_script(Path(script), file)
    except PycompilerError as problem:
        return report_problem(problem)
    except SyntaxError:
        traceback.print_exc(limit=0)
        return USER_EXIT
    module = types.ModuleType("__main__")
    module.__file__ = file
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    module.__dict__.update(__builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    # Before another `mlsdk` of the environment. Processes that the script starts get this path too.
    sys.path.insert(1, str(SOURCES))
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
