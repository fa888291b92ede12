"""Decisions the user takes instead of a planner: option ``overrides``.

The option maps a value's name to decisions: ``layout`` (the notation of the dumps), ``location``
(``DRAM``, ``LM0`` or ``LM1``), ``dtype`` (``Half`` or ``Float``: what a product that makes the
value computes in), ``precision`` (the same by the names of option ``gemm_precision``) and
``time_slice`` (``axis:count``, more of them after commas: into how many slices an axis is cut). A
layout may have Time digits, the uppermost of their axes; it says both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import error
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode
from ..graph.layout import Layout, Level
from ..graph.layout_text import parse_layout
from ..layers.matmul import PRODUCTS
from ..layers.products.roles import PRECISIONS

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
        maker = made.get(name)
        for key, text in facts.items():
            if key == "layout":
                _time_of(name, parse_layout(text))
            elif key == "time_slice":
                if _CUTS.fullmatch(text) is None:
                    raise error("P0306", value=name, reason=f"`{text}` is not axis:count")
            elif key == "location":
                if text not in [place.value for place in _LOCATIONS]:
                    raise error("P0306", value=name, reason=f"no location {text}")
            elif key == "dtype":
                if text not in [dtype.value for dtype in PRECISION_OF]:
                    raise error("P0306", value=name, reason=f"no product computes in {text}")
                _product(name, maker)
            elif key == "precision":
                if text not in PRECISIONS:
                    raise error("P0306", value=name, reason=f"no product has precision {text}")
                _product(name, maker)
            else:
                raise error("P0306", value=name, reason=f"no planner decides `{key}`")


def _product(name: str, maker: MNNode | None) -> None:
    if maker is None or maker.op not in PRODUCTS:
        raise error("P0306", value=name, reason="no matrix product makes it")


_CUTS = re.compile(r"\s*\d+\s*:\s*[1-9]\d*\s*(,\s*\d+\s*:\s*[1-9]\d*\s*)*")


def _time_of(name: str, layout: Layout) -> dict[int, int]:
    """Return the slices of each axis that a layout cuts. P0306 if a Time digit is not uppermost."""
    found: dict[int, int] = {}
    for number, axis in enumerate(layout.axes):
        for place, sub in enumerate(axis):
            if sub.level is Level.TIME:
                if place:
                    reason = f"the Time digit of axis {number} is not its uppermost"
                    raise error("P0306", value=name, reason=reason)
                found[number] = sub.size
    return found


def wanted_slices(overrides: Overrides) -> dict[str, dict[int, int]]:
    """Return the slices that are given, by axis."""
    out: dict[str, dict[int, int]] = {}
    for name, facts in overrides.items():
        cuts = _time_of(name, parse_layout(facts["layout"])) if "layout" in facts else {}
        for cut in facts.get("time_slice", "").split(","):
            axis, _, count = cut.partition(":")
            if count:
                cuts[int(axis)] = int(count)
        cuts = {axis: count for axis, count in cuts.items() if count > 1}
        if cuts:
            out[name] = cuts
    return out


def whole_overrides(overrides: Overrides) -> Overrides:
    """Return the overrides for a graph of one slice: layouts without their Time digits."""
    return {
        name: {
            key: str(parse_layout(text).slice) if key == "layout" else text
            for key, text in facts.items()
        }
        for name, facts in overrides.items()
    }


def untimed(overrides: Overrides) -> Overrides:
    """Return the overrides for a graph that is not cut: no layout of slices."""
    return {
        name: {
            key: text
            for key, text in facts.items()
            if key != "layout" or parse_layout(text).slices == 1
        }
        for name, facts in overrides.items()
    }


def wanted_layouts(overrides: Overrides) -> dict[str, Layout]:
    """Return the layouts that are given."""
    return {n: parse_layout(facts["layout"]) for n, facts in overrides.items() if "layout" in facts}


def wanted_locations(overrides: Overrides) -> dict[str, Location]:
    """Return the locations that are given."""
    return {n: Location(f["location"]) for n, f in overrides.items() if "location" in f}
