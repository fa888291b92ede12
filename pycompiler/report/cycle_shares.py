"""What a program spends its cycles on, by kinds of work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..layers import depthwise, matmul
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.local_copy import COPY
from ..layers.switch.layer import SWITCH
from ..layers.weight_gradient.joining import JOIN
from ..pfvm.device_functions import LOOKUP, RECUT, STORE
from ..pfvm.windows import WEIGHT_GRADIENT

#: The kind of all operators that the table below does not name, and that of waiting.
ELEMENTWISE, WAITS = "elementwise", "waits"

_KINDS: Mapping[str, str] = {
    **{layer.op: "products" for layer in (*matmul.LAYERS, *depthwise.LAYERS)},
    **dict.fromkeys((WEIGHT_GRADIENT, JOIN), "products"),
    SWITCH: "switches",
    **dict.fromkeys((DOWNLOAD, UPLOAD, LOOKUP, STORE, COPY, RECUT), "transfers"),
}
#: The kinds, in the order of the report.
KINDS = (*dict.fromkeys(_KINDS.values()), ELEMENTWISE, WAITS)

_DIGITS = 4


def kind_of(op: str) -> str:
    """Return the kind of an operator of the graph."""
    return _KINDS.get(op, ELEMENTWISE)


def cycles_by_kind(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the cycles of each kind in the report's ``nodes``.

    The wait cycles of a node count as waits, its others as the kind of its operator.
    """
    cycles = dict.fromkeys(KINDS, 0)
    for row in rows:
        cycles[kind_of(row["op"])] += row["cycles"] - row["wait_cycles"]
        cycles[WAITS] += row["wait_cycles"]
    return cycles


def cycle_shares(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the part of each kind in the cycles of the report's ``nodes``; {} without cycles.

    The shares add up to 1 but for rounding.
    """
    cycles = cycles_by_kind(rows)
    total = sum(cycles.values())
    return {kind: round(part / total, _DIGITS) for kind, part in cycles.items()} if total else {}
