"""The cost of a scheduler's plan: DRAM words moved, LM in use, steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..graph.graph import Location, MNGraph
from ..layers.dram_transfer import DOWNLOAD


def schedule_facts(
    name: str, graph: MNGraph, rows: Iterable[Mapping[str, Any]], steps: int
) -> dict[str, Any]:
    """Return the entry ``schedule`` of the report; ``rows`` is the report's entry ``nodes``.

    DRAM words are long words over all groups. ``parameters`` counts downloads of parameters and
    constants, ``read`` the other downloads, ``written`` the uploads. ``lm_peak`` is the largest
    number of long words in use, for LM0 and for LM1.
    """
    constant = {
        node.name
        for node in graph.nodes
        if node.op == DOWNLOAD and node.inputs[0] in graph.constants
    }
    words = {"parameters": 0, "read": 0, "written": 0}
    for row in rows:
        moved = row["dram_words"]
        words["parameters" if row["node"] in constant else "read"] += moved["read"]
        words["written"] += moved["written"]
    peak = {
        bank.memory: max(
            (
                (value.addr or 0) + (value.num_lw or 0)
                for value in graph.values.values()
                if value.location is bank
            ),
            default=0,
        )
        for bank in (Location.LM0, Location.LM1)
    }
    return {"scheduler": name, "dram_words": words, "lm_peak": peak, "steps": steps}
