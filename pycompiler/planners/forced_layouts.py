"""Layouts that files force on operands: matched to nodes, completed, handed to the planners.

A node with a forced operand gets switches around all its operands. The other operands get the
cheapest layouts that the node's layer accepts with the forced one. No planner changes any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import GraphError, PycompilerError, error
from ..graph.digits import PrimeDigit, copied_digits, copy_entries, parts
from ..graph.graph import MNGraph, MNNode, MNValue
from ..graph.layout import UNIT_LEVELS, Layout, Layouts, Level, Ways
from ..graph.plan import Laid, follows, plans_of
from ..graph.verify import layout_ranges
from ..layers.matmul import PRODUCTS
from ..layers.operators import LAYERS
from ..layout_spec import LayoutSpec, ProductSpec
from ..machine import Target
from .axis_classes import Classes
from .lpz.costs import TOO_LARGE, Costs
from .switch_insertion import is_anchored


@dataclass(frozen=True)
class Forced:
    """The forced layouts of one node by operand number: inputs are counted first, then outputs."""

    layouts: Mapping[int, Layout]
    #: entries of the files that the layouts come from, by operand number
    specs: Mapping[int, LayoutSpec]


def match(graph: MNGraph, specs: Sequence[LayoutSpec]) -> dict[str, Forced]:
    """Return the forced layouts by node name; if several entries fit, the first one counts."""
    out: dict[str, Forced] = {}
    for node in graph.device_nodes():
        found: dict[int, tuple[Layout, LayoutSpec]] = {}
        for spec in specs:
            for operand, layout in _fitting(node, graph, spec):
                found.setdefault(operand, (layout, spec))
        if found:
            layouts = {operand: layout for operand, (layout, _) in found.items()}
            out[node.name] = Forced(layouts, {n: spec for n, (_, spec) in found.items()})
    return out


def _fitting(node: MNNode, graph: MNGraph, spec: LayoutSpec) -> Iterator[tuple[int, Layout]]:
    if isinstance(spec, ProductSpec):
        if node.op in PRODUCTS and any(spec.key in n for n in _names(node.inputs[1], graph)):
            facts = dict(node.attributes)
            yield 0, _swapped(spec.a) if facts.get("transA", 0) else spec.a
            yield 1, spec.bt if facts.get("transB", 0) else _swapped(spec.bt)
            yield len(node.inputs), spec.c
        return
    if node.op != spec.op_type:
        return
    first = 0 if spec.trigger == "SwitchInput" else len(node.inputs)
    names = node.inputs if spec.trigger == "SwitchInput" else node.outputs
    for number, name in enumerate(names):
        if name and graph.values[name].shape == spec.shape:
            yield first + number, spec.layout


def _names(name: str, graph: MNGraph) -> Iterator[str]:
    """Yield the name of a value, and of the values it is made of by operators with one input."""
    made = graph.producers()
    while True:
        yield name
        node = made.get(name)
        if node is None or len([n for n in node.inputs if n]) != 1:
            return
        name = node.inputs[0]


def _swapped(layout: Layout) -> Layout:
    axes = layout.axes
    if len(axes) < 2:
        return layout
    return Layout((*axes[:-2], axes[-1], axes[-2]), layout.broadcast)


def force(graph: MNGraph, forced: Mapping[str, Forced], target: Target) -> Laid:
    """Return layouts for all operands of the nodes in ``forced``, and their plans.

    P0311 if a forced layout is illegal or fits no layouts of the other operands.
    """
    out = Laid({})
    if not forced:
        return out
    costs, classes = Costs(graph, target), Classes(graph, target)
    for node in graph.device_nodes():
        if node.name in forced:
            out.add(_whole(node, forced[node.name], graph, target, costs, classes))
    return out


def _whole(
    node: MNNode, forced: Forced, graph: MNGraph, target: Target, costs: Costs, classes: Classes
) -> Laid:
    ends = (*node.inputs, *node.outputs)
    given: dict[str, Layout] = {}
    for operand, layout in forced.layouts.items():
        value, spec = graph.values[ends[operand]], forced.specs[operand]
        try:
            layout.check(value.shape, value.dtype, layout_ranges(target), target.words("lm0"))
        except GraphError as problem:
            raise _refused(node, spec, problem.fields.get("reason", problem.message)) from problem
        if given.setdefault(value.name, layout) != layout:
            raise _refused(node, spec, "another entry wants the same value otherwise")
    best: tuple[int, Laid] | None = None
    ways = (
        _anchored(node, given, graph, target)
        if is_anchored(node)
        else _region(node, given, graph, target, classes)
    )
    for way in (one for one in ways if follows(one, node.name, node.plan)):
        way = Laid({**way, **given}, plans_of(way))
        cost = costs.node(node, way)
        if cost < TOO_LARGE and (best is None or cost < best[0]):
            best = cost, way
    if best is None:
        spec = next(iter(forced.specs.values()))
        raise _refused(node, spec, f"{node.op} has no other operands' layouts that go with it")
    return best[1]


def _anchored(node: MNNode, given: Layouts, graph: MNGraph, target: Target) -> Ways:
    for hints in ({}, given, *({name: layout} for name, layout in given.items())):
        yield from LAYERS[node.op].candidates(node, graph, target, hints)
        yield from LAYERS[node.op].across_groups(node, graph, target, hints)


def _region(node: MNNode, given: Layouts, graph: MNGraph, target: Target, classes: Classes) -> Ways:
    """Yield the layouts of a node in a region that takes over one of the given layouts."""
    names = {name for name in (*node.inputs, *node.outputs) if name}
    region = next((found for found in classes.regions() if node in found.nodes), None)
    for name, layout in given.items():
        if region is None:
            break
        classes.clear(region)
        if not classes.adopt(graph.values[name], layout):
            continue
        classes.spread(region.nodes)
        found = classes.lay_out(names)
        if all(_same_places(layout, found[n], graph.values[n]) for n, layout in given.items()):
            # The result can have copies only where all inputs have them.
            for n in names & {*given} & {*node.inputs}:
                lacking = _copies(found[n], target) - _copies(given[n], target)
                for out in node.outputs:
                    found[out] = _without(found[out], lacking, target)
            yield found


def _same_places(layout: Layout, other: Layout, value: MNValue) -> bool:
    return parts(layout, value.shape) == parts(other, value.shape)


def _copies(layout: Layout, target: Target) -> set[tuple[Level, PrimeDigit]]:
    ranges = {Level(name): count for name, count in target.level_range.items()}
    return {(lv, d) for lv in UNIT_LEVELS for d in copied_digits(layout, lv, ranges)}


def _without(layout: Layout, lacking: set[tuple[Level, PrimeDigit]], target: Target) -> Layout:
    """Return ``layout`` without copies on the digits ``lacking``."""
    words = (entry for entry in layout.broadcast if entry.level is Level.W)
    kept = _copies(layout, target) - lacking
    copies = {level: [digit for lv, digit in kept if lv is level] for level in UNIT_LEVELS}
    return Layout(layout.axes, (*words, *copy_entries(copies, layout_ranges(target))))


def _refused(node: MNNode, spec: LayoutSpec, reason: object) -> PycompilerError:
    return error(
        "P0311", place=node.place, entry=spec.place, op=node.op, node=node.name, reason=reason
    )
