"""Decisions the user takes instead of a planner: option ``overrides``.

The option maps a value's name to decisions: ``layout`` (the notation of the dumps), ``location``
(``DRAM``, ``LM0`` or ``LM1``) and ``dtype`` (``Half`` or ``Float``: what a product that makes the
value computes in).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import error
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph
from ..graph.layout import Layout
from ..graph.layout_text import parse_layout
from ..layers.matmul import PRODUCTS

Overrides = Mapping[str, Mapping[str, str]]

_LOCATIONS = (Location.DRAM, Location.LM0, Location.LM1)
#: Which precision a product has for which dtype of its result.
PRECISION_OF = {MNDtype.HALF: "half", MNDtype.FLOAT: "single"}


def check_overrides(graph: MNGraph, overrides: Overrides) -> None:
    """P0306 for a value that is not there or a decision nobody takes; P0201 for a bad layout."""
    made = graph.producers()
    for name, facts in overrides.items():
        if name not in graph.values:
            known = ", ".join(sorted(graph.values)[:8])
            raise error("P0306", value=name, reason=f"there is no such value; some are {known}")
        for key, text in facts.items():
            if key == "layout":
                parse_layout(text)
            elif key == "location":
                if text not in [place.value for place in _LOCATIONS]:
                    raise error("P0306", value=name, reason=f"no location {text}")
            elif key == "dtype":
                maker = made.get(name)
                if text not in [dtype.value for dtype in PRECISION_OF]:
                    raise error("P0306", value=name, reason=f"no product computes in {text}")
                if maker is None or maker.op not in PRODUCTS:
                    raise error("P0306", value=name, reason="no matrix product makes it")
            else:
                raise error("P0306", value=name, reason=f"no planner decides `{key}`")


def wanted_layouts(overrides: Overrides) -> dict[str, Layout]:
    """Return the layouts that are given."""
    return {n: parse_layout(facts["layout"]) for n, facts in overrides.items() if "layout" in facts}


def wanted_locations(overrides: Overrides) -> dict[str, Location]:
    """Return the locations that are given."""
    return {n: Location(f["location"]) for n, f in overrides.items() if "location" in f}
