"""Says what keeps a function from being compiled, before a compile. Scripts use ``fx2onnx.linter``.

The names are the vendor's; arguments and members are ours, because the vendor's are not published.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import torch

from ..errors import PycompilerError
from ..frontend.export import Function, export
from ..frontend.modules import as_function
from ..frontend.no_writes import model_place

__all__ = ["LintLevel", "LintResult", "lint"]


class LintLevel(Enum):
    """How serious a finding is: the model works (with a warning), or it cannot be exported."""

    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class LintResult:
    """A finding: its level, the text, and the line of the model as ``file:line``; None if unknown.

    ``code`` is the code of a diagnostic; None for warnings.
    """

    level: LintLevel
    message: str
    place: str | None = None
    code: str | None = None


def lint(
    function: Function | torch.nn.Module, inputs: Mapping[str, torch.Tensor]
) -> list[LintResult]:
    """Export ``function`` as a compile would, and return what stands in the way; compile nothing.

    An exporter stops at the first thing that it refuses, so there is at most one error. Exceptions
    of the function itself pass through.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            export(as_function(function, inputs if isinstance(inputs, Mapping) else ()), inputs)
            refused = []
        except PycompilerError as problem:
            place = problem.place or model_place(problem)
            text = f"{problem.message} ({problem.help})"
            shown = str(place) if place else None
            refused = [LintResult(LintLevel.ERROR, text, shown, problem.code)]
    found = [
        LintResult(LintLevel.WARNING, str(w.message), f"{w.filename}:{w.lineno}") for w in said
    ]
    return found + refused
