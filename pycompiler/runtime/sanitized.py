"""The findings of a sanitized run of a function: those of the emulator, and undefined outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import PycompilerError, error
from .device import Board
from .held_tensor import Source


def undefined_outputs(results: Mapping[str, Source]) -> list[PycompilerError]:
    """Return a diagnostic for each output with elements that nothing has written. P0610."""
    found = []
    for name, source in results.items():
        if source.place is None:
            continue
        undefined = source.place.undefined()
        if undefined.any():
            first = [int(number) for number in np.argwhere(undefined)[0]]
            count = int(np.count_nonzero(undefined))
            found.append(error("P0610", output=name, element=first, count=count))
    return found


def findings_text(board: Board) -> str:
    """Return the emulator's findings of the board's runs as lines of text."""
    lines = []
    for found in board.findings or ():
        place = f"{found['file']}:{found['line']}"
        lines.append(f"{place}: warning[{found['code']}]: {found['message']}")
        lines += [f"  node: {found['node']}"] if found["node"] else []
        lines.append(f"  help: {found['help']}")
    return "\n".join(lines)
