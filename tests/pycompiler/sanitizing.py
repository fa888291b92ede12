"""Sanitized calls of all compiled models of a test: `EMU2_SANITIZE=1 pytest tests/pycompiler`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from pycompiler.machine import Target
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction
from pycompiler.runtime.held_tensor import Held
from pycompiler.runtime.sanitized import findings_text, undefined_outputs

#: Values may leave their format: that is the model's doing.
VALUES = {"Z0401", "Z0402"}


def findings(board: Board, outputs: Mapping[str, Held]) -> list[str]:
    """Return what a sanitized run found, and forget it."""
    assert board.findings is not None
    board.findings[:] = [one for one in board.findings if one["code"] not in VALUES]
    text = findings_text(board)
    board.findings.clear()
    return [*([text] if text else []), *map(str, undefined_outputs(outputs))]


@contextmanager
def every_call_sanitized(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sanitize all calls on boards that are made inside; the end fails if one found something."""
    found: list[str] = []
    make, run = Board.__init__, DeviceFunction._run

    def made(self: Board, target: Target) -> None:
        make(self, target)
        self.findings = []

    def ran(self: DeviceFunction, inputs: Any) -> dict[str, Held]:
        outputs = run(self, inputs)
        if self.board.findings is not None:
            found.extend(findings(self.board, outputs))
        return outputs

    monkeypatch.setattr(Board, "__init__", made)
    monkeypatch.setattr(DeviceFunction, "_run", ran)
    yield
    assert found == [], "\n".join(found)
