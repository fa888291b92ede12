"""What may become of a test of a public suite."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pycompiler.errors import InternalError, PycompilerError

DEVICE, HOST, REFUSED = "device", "host", "refused"
#: Right except where an operand or a result is a NaN or an infinity (docs/operators.md).
CONTRACT = "contract"
WRONG, INTERNAL, TIME = "wrong", "internal", "time"
#: What must not happen.
FAULTS = (WRONG, INTERNAL, TIME)


@dataclass(frozen=True)
class Outcome:
    """What became of a test: ``kind`` is one of the words above.

    ``code`` is that of the diagnostic of a refused test. ``reason`` says why it is not on the
    device.
    """

    name: str
    operator: str
    kind: str
    code: str = ""
    reason: str = ""
    seconds: float = 0.0


def judged(name: str, operator: str, run: Callable[[Path], tuple[str, str]]) -> Outcome:
    """Return the outcome of a test. ``run`` gets a folder for a compile, and returns kind, reason.

    Its exceptions become outcomes too.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind, reason = run(Path(folder) / "out")
            return Outcome(name, operator, kind, "", reason)
        except InternalError as problem:
            return Outcome(name, operator, INTERNAL, problem.code, _line(problem))
        except PycompilerError as problem:
            return Outcome(name, operator, REFUSED, problem.code, _line(problem))
        except TimeoutError as problem:
            return Outcome(name, operator, TIME, "", _line(problem))
        except Exception as problem:
            reason = f"{type(problem).__name__}: {_line(problem)}"
            return Outcome(name, operator, INTERNAL, "", reason)


def _line(problem: BaseException) -> str:
    return " ".join(str(problem).split())[:200]


_NAMES = re.compile(r"`[^`]*`")


def general(reason: str) -> str:
    """Return a reason without the names of values."""
    return _NAMES.sub("..", reason)
