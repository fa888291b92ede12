"""Files that other commands write with ``--json``, as pages show them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import error
from ..files import read_input

_MOST_BYTES = 1 << 28
#: What a file must have, by what it is.
_KINDS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "sweep": lambda own: _rows(own, "rows", "values", "status") and "machine" in own,
    "memory": lambda own: (
        _rows(own, "tensors", "name", "kind", "size", "start", "end")
        and _rows(own, "strategies", "name", "size", "offsets")
    ),
    "gap": lambda own: _rows(own, "rows", "name", "cycles", "bound") and "steps" in own,
    "numbers": lambda own: _rows(own, "checks", "node", "value", "failed"),
}


def _rows(own: Mapping[str, Any], key: str, *names: str) -> bool:
    """Whether ``own[key]`` is a list of rows, not empty, that have ``names``."""
    rows = own.get(key)
    return (
        bool(rows)
        and isinstance(rows, list)
        and all(isinstance(row, dict) and row.keys() >= set(names) for row in rows)
    )


def read_files(paths: Sequence[Path]) -> list[tuple[dict[str, str], Any]]:
    """Return name and kind of each file, and its content. P0001 for other files."""
    found = []
    for path in paths:
        try:
            own = json.loads(read_input(path, _MOST_BYTES))
        except (ValueError, RecursionError) as problem:
            raise error("P0001", path=path, reason=f"it is no JSON ({problem})") from problem
        kinds = [kind for kind, fits in _KINDS.items() if isinstance(own, dict) and fits(own)]
        if not kinds:
            reason = (
                "it is no file of `sweep`, `memory`, `gap` or `disassemble --safety` (`--json`)"
            )
            raise error("P0001", path=path, reason=reason)
        found.append(({"name": path.name, "kind": kinds[0]}, own))
    return found
