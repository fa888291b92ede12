"""Decisions that the user takes instead of a planner: the option ``overrides``.

The option maps the name of a value to decisions:

* ``layout``: a layout as the dumps show it. An axis may begin with a Time digit, which also gives
  its number of slices.
* ``location``: ``DRAM``, ``LM0`` or ``LM1``.
* ``dtype``: ``Half`` or ``Float``, the dtype in which the product that makes the value computes.
* ``precision``: the same decision, with a name of the option ``gemm_precision``.
* ``time_slice``: ``axis:count``, the number of slices of an axis; several are joined by commas.
* ``plan``: the plan of the node that makes the value, as the dumps show it.
* ``gene``: ``product,A`` or ``product,BT``; the value gets the layout of that operand.
* ``keep``: ``LM`` keeps the value in LM until its last reader, ``DRAM`` moves it to DRAM after
  every node.
* ``address``: such as ``LM0:64``, with the number as the dumps show it; several are joined by
  commas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from ..errors import error
from ..graph.dtypes import MNDtype, device_dtype
from ..graph.graph import Location, MNGraph, MNNode
from ..graph.layout import Layout, Layouts, Level
from ..graph.layout_text import parse_layout
from ..graph.plan import Plan, parse_plan
from ..layers.matmul import PRODUCTS
from ..layers.operators import LAYERS
from ..layers.products.roles import PRECISIONS

Overrides = Mapping[str, Mapping[str, str]]

#: Names of the operands of a product in genes.
ROLES = ("A", "BT")
#: The precision of a product by the value of the decision ``dtype``.
PRECISION_OF = {MNDtype.HALF: "half", MNDtype.FLOAT: "single"}


def check_overrides(graph: MNGraph, overrides: Overrides) -> None:
    """Raise P0306 for an unknown value or an illegal decision, P0201 for a bad layout."""
    made = graph.producers()
    for name, facts in overrides.items():
        if name not in graph.values:
            known = ", ".join(sorted(graph.values)[:8])
            raise error("P0306", value=name, reason=f"there is no such value; some are {known}")
        maker = made.get(name)
        for key, text in facts.items():
            if key == "layout":
                _time_of(name, parse_layout(text))
            elif key == "gene":
                _check_gene(graph, name, text)
                if "layout" in facts:
                    raise error("P0306", value=name, reason="a gene says the layout, too")
            elif key == "plan":
                wanted_plans(graph, {name: facts})
            elif key not in _FORMS:
                raise error("P0306", value=name, reason=f"no planner decides `{key}`")
            elif re.fullmatch(_FORMS[key][0], text) is None:
                raise error("P0306", value=name, reason=_FORMS[key][1].format(text))
            elif key in ("dtype", "precision"):
                _product(name, maker, graph)


def _product(name: str, maker: MNNode | None, graph: MNGraph) -> None:
    if device_dtype(graph.values[name].type.elem) is MNDtype.DOUBLE:
        raise error("P0306", value=name, reason="products of doubles have one precision")
    if maker is None or maker.op not in PRODUCTS:
        raise error("P0306", value=name, reason="no matrix product makes it")


def _check_gene(graph: MNGraph, name: str, text: str) -> None:
    """Raise P0306 unless ``text`` names an operand of a product with the shape of the value."""
    product, _, role = text.rpartition(",")
    node = next((n for n in graph.nodes if n.name == product and n.op in PRODUCTS), None)
    if node is None or role not in ROLES:
        known = ", ".join(f"{n.name},A" for n in graph.nodes if n.op in PRODUCTS)
        raise error("P0306", value=name, reason=f"no operand `{text}`; some are {known}")
    operand = graph.values[node.inputs[ROLES.index(role)]]
    if operand.shape != graph.values[name].shape:
        reason = f"`{operand.name}`, operand {role} of {product}, has another shape"
        raise error("P0306", value=name, reason=reason)


#: The form of each other decision, and why a text of another form is refused.
_FORMS: Mapping[str, tuple[str, str]] = {
    "time_slice": (
        r"\s*\d+\s*:\s*[1-9]\d*\s*(,\s*\d+\s*:\s*[1-9]\d*\s*)*",
        "`{}` is not axis:count",
    ),
    "keep": ("LM|DRAM", "it can be kept in LM or DRAM: {}"),
    "address": (
        r"\s*(DRAM|LM0|LM1)\s*:\s*\d+\s*(,\s*(DRAM|LM0|LM1)\s*:\s*\d+\s*)*",
        "`{}` is not LM0:number",
    ),
    "location": ("DRAM|LM0|LM1", "no location {}"),
    "dtype": ("|".join(one.value for one in PRECISION_OF), "no product computes in {}"),
    "precision": ("|".join(PRECISIONS), "no product has precision {}"),
}


def _time_of(name: str, layout: Layout) -> dict[int, int]:
    """Return the number of slices of each axis that a layout cuts.

    P0306 if a Time digit is not the uppermost digit of its axis.
    """
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
    """Return the numbers of slices that overrides give, by value and axis."""
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
    """Return the overrides for a graph that is not cut: without layouts that have Time digits."""
    return {
        name: {
            key: text
            for key, text in facts.items()
            if key != "layout" or parse_layout(text).slices == 1
        }
        for name, facts in overrides.items()
    }


def wanted_layouts(overrides: Overrides) -> Layouts:
    """Return the layouts that overrides give, by value."""
    return {n: parse_layout(facts["layout"]) for n, facts in overrides.items() if "layout" in facts}


def wanted_plans(graph: MNGraph, overrides: Overrides) -> dict[str, Plan]:
    """Return the plans that overrides give, by the node that makes the value.

    P0306 for a text that is no plan, or for a node on the device that cannot have the schedule.
    """
    made = {out: node for node in graph.device_nodes() for out in node.outputs}
    found: dict[str, Plan] = {}
    for name in (name for name, facts in overrides.items() if "plan" in facts):
        schedules = getattr(LAYERS.get(made[name].op), "schedules", ()) if name in made else ()
        try:
            plan = parse_plan(json.loads(overrides[name]["plan"]))
        except (RecursionError, ValueError) as problem:
            raise error("P0306", value=name, reason=str(problem)) from None
        if not isinstance(plan, schedules):
            raise error("P0306", value=name, reason=f"its node cannot have the plan {plan}")
        found[made[name].name] = plan
    return found


def wanted_locations(overrides: Overrides) -> dict[str, Location]:
    """Return the locations that overrides give; an address in LM0 or LM1 also gives one."""
    found: dict[str, Location] = {}
    for name, place in wanted_addresses(overrides):
        if place is not Location.DRAM:
            found[name] = place
    return found | {n: Location(f["location"]) for n, f in overrides.items() if "location" in f}


def wanted_banks(overrides: Overrides) -> dict[str, Location]:
    """Return those of the wanted locations that are banks of LM, by the names of values."""
    places = wanted_locations(overrides).items()
    return {name: place for name, place in places if place is not Location.DRAM}


def wanted_genes(overrides: Overrides) -> dict[str, tuple[str, str]]:
    """Return the genes that overrides give, by value: product and operand."""
    found = {n: facts["gene"].rpartition(",") for n, facts in overrides.items() if "gene" in facts}
    return {name: (product, role) for name, (product, _, role) in found.items()}


def without_genes(overrides: Overrides) -> Overrides:
    """Return the overrides without the genes."""
    return {n: {k: v for k, v in facts.items() if k != "gene"} for n, facts in overrides.items()}


def wanted_addresses(overrides: Overrides) -> dict[tuple[str, Location], int]:
    """Return the addresses that overrides give, by value and location.

    The numbers are as the dumps show them.
    """
    return {
        (name, Location(place.strip())): int(number)
        for name, facts in overrides.items()
        for place, _, number in (one.partition(":") for one in facts.get("address", "").split(","))
        if place
    }


def wanted_keeping(overrides: Overrides) -> dict[str, bool]:
    """Return whether a value stays in LM between nodes (True) or never does (False), by value."""
    return {n: facts["keep"] == "LM" for n, facts in overrides.items() if "keep" in facts}


def with_io_layouts(
    overrides: Overrides, layouts: Mapping[str, str], graph: MNGraph, registered: Collection[str]
) -> Overrides:
    """Return the overrides with the layouts that a caller wants for inputs and outputs.

    ``layouts`` has these layouts by the names that the caller sees. ``registered`` are inputs that
    the caller does not pass. P0705 for an unknown name, or for two layouts of one value.
    """
    wanted = {name: dict(facts) for name, facts in overrides.items()}
    given = set(graph.inputs) - set(registered)
    for key, layout in layouts.items():
        names = [value for output, value in graph.outputs if output == key]
        names += [key] if key in given else []
        if not names:
            raise error("P0705", name=key, reason="the function has no such input or output")
        for name in names:
            other = wanted.setdefault(name, {}).setdefault("layout", layout)
            if other != layout:
                raise error("P0705", name=key, reason=f"`{name}` must have layout {other} too")
    return wanted
