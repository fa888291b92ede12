"""What node simulation has found about each node, from the file of a codegen_dir."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import PycompilerError
from ..files import TEXT_BYTES, read_input
from ..graph.graph import MNGraph, MNNode

SIMULATION = "simulation_result.json"
_NUMBERS = ("steps", "cycles", "lm0", "lm1", "read", "written")


def read_simulated(folder: Path, problems: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return a row for each setting of each node; a damaged file is a line of ``problems``."""
    if not (folder / SIMULATION).is_file():
        return {}
    try:
        found = json.loads(read_input(folder / SIMULATION, TEXT_BYTES))
        outcomes = {key: _row(one) for key, one in found["outcomes"].items()}
        return {
            node: [{"setting": str(setting), **outcomes[key]} for setting, key in own.items()]
            for node, own in found["nodes"].items()
        }
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as problem:
        problems.append(f"{SIMULATION}: {type(problem).__name__}: {problem}")
    except PycompilerError as problem:
        problems.append(f"{SIMULATION}: {problem}")
    return {}


def _row(outcome: dict[str, Any]) -> dict[str, Any]:
    numbers = {key: int(outcome.get(key, 0)) for key in _NUMBERS}
    busy = {str(slot): int(steps) for slot, steps in dict(outcome.get("busy", {})).items()}
    refused = outcome.get("refused") or None
    return {
        **numbers,
        "busy": busy,
        "refused": None if refused is None else str(refused),
        "estimated": bool(outcome.get("estimated", False)),
    }


def chosen(nodes: Sequence[MNNode], graph: MNGraph) -> str:
    """Return the setting that the scheduler chose for a node, as the file writes settings."""
    if not nodes:
        return ""
    node = nodes[0]
    sides = [
        "+".join(graph.values[name].location.value for name in dict.fromkeys(side) if name) or "-"
        for side in (node.inputs, node.outputs)
    ]
    at = "" if node.inplace is None else f" on input {node.inplace}"
    return " -> ".join(sides) + at
