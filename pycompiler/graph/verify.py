"""The verifier: a table of rules, each of which holds from a stage of planning on.

A rule is a function that takes graph and target and yields its violations as text. :func:`verify`
runs every rule whose stage the graph has reached. A violation is a bug of the pass that ran last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import error
from ..machine import Target
from .dtypes import MNDtype
from .graph import Location, MNGraph, Side, Stage
from .layout import Level


@dataclass(frozen=True)
class Rule:
    """A rule that holds from ``stage`` on; ``violations`` yields the problems of a graph."""

    name: str
    stage: Stage
    violations: Callable[[MNGraph, Target], Iterable[str]]


def layout_ranges(target: Target) -> dict[Level, int]:
    """Return the machine's coordinates per unit level."""
    return {Level(name): count for name, count in target.level_range.items()}


def _defined(graph: MNGraph, target: Target) -> Iterator[str]:
    known = {"", *graph.inputs, *graph.constants}
    for node in graph.nodes:
        yield from (f"`{n}` is read by `{node.name}` first" for n in node.inputs if n not in known)
        known.update(node.outputs)
    yield from (f"output `{key}` is never made" for key, n in graph.outputs if n not in known)


def _made_once(graph: MNGraph, target: Target) -> Iterator[str]:
    names = [*graph.inputs, *graph.constants]
    names += [out for node in graph.nodes for out in node.outputs if out]
    yield from (f"`{name}` is made twice" for name, n in Counter(names).items() if n > 1)


def _recorded(graph: MNGraph, target: Target) -> Iterator[str]:
    names = {*graph.inputs, *graph.constants}
    names |= {n for node in graph.nodes for n in (*node.inputs, *node.outputs) if n}
    yield from (f"`{name}` has no record" for name in sorted(names - set(graph.values)))
    yield from (f"`{name}` is recorded, not made" for name in sorted(set(graph.values) - names))


def _node_names(graph: MNGraph, target: Target) -> Iterator[str]:
    names = Counter(node.name for node in graph.nodes)
    yield from (f"two nodes are called `{name}`" for name, n in names.items() if n > 1)


def _dtypes(graph: MNGraph, target: Target) -> Iterator[str]:
    for name in sorted(graph.device_values()):
        if graph.values[name].dtype is MNDtype.UNKNOWN:
            yield f"`{name}` has no dtype"


def _locations(graph: MNGraph, target: Target) -> Iterator[str]:
    on_device = graph.device_values()
    for name, value in graph.values.items():
        if name in on_device and value.location in (Location.UNDECIDED, Location.HOST):
            yield f"`{name}` has location {value.location.value}"
        if name not in on_device and value.location is not Location.HOST:
            yield f"`{name}` is not used on the device but lies in {value.location.value}"


def _layouts(graph: MNGraph, target: Target) -> Iterator[str]:
    ranges = layout_ranges(target)
    for name in sorted(graph.device_values()):
        value = graph.values[name]
        if value.layout is None:
            yield f"`{name}` has no layout"
            continue
        try:
            value.layout.check(value.shape, value.dtype, ranges, target.words("dram"))
        except Exception as problem:
            yield f"`{name}`: {problem}"
        if value.num_lw != value.layout.num_lw(target.cycles):
            yield f"`{name}` has num_lw {value.num_lw}, its layout another"


def _concrete(graph: MNGraph, target: Target) -> Iterator[str]:
    for name in sorted(graph.device_values()):
        if graph.values[name].location is Location.LM:
            yield f"`{name}` is in LM, but in which?"
    before = 0
    for node in graph.nodes:
        if node.segment not in (before, before + 1):
            yield f"`{node.name}` is in segment {node.segment} after {before}"
        before = node.segment or 0


def _addresses(graph: MNGraph, target: Target) -> Iterator[str]:
    for name in sorted(graph.device_values()):
        value = graph.values[name]
        if value.addr is None:
            yield f"`{name}` has no address"
            continue
        memory = value.location.memory
        unit = target.mv_unit if value.location is Location.DRAM else target.cycles
        if value.addr % unit:
            yield f"`{name}` lies at {value.addr}, no multiple of {unit}"
        words = 0 if value.location is Location.DRAM else value.num_lw or 0
        if value.addr + words > target.words(memory):
            yield f"`{name}` leaves {memory}"


def _overlaps(graph: MNGraph, target: Target) -> Iterator[str]:
    """Report LM values that are alive at once and share long words.

    An output may lie on the input that the node overwrites (`inplace`).
    """
    last = graph.last_use()
    alive: list[str] = []
    for index, node in enumerate(graph.nodes):
        for out in node.outputs:
            value = graph.values[out] if out else None
            if value is None or value.location not in (Location.LM0, Location.LM1):
                continue
            reused = node.inputs[node.inplace] if node.inplace is not None else None
            for name in alive:
                dying = last.get(name, -1) == index and name == reused
                other = graph.values[name]
                if dying or other.location is not value.location:
                    continue
                start, stop = value.addr or 0, (value.addr or 0) + (value.num_lw or 0)
                low = other.addr or 0
                if start < low + (other.num_lw or 0) and low < stop:
                    yield f"`{out}` overlaps `{name}` in {value.location.value}"
            alive.append(out)
        alive = [name for name in alive if last.get(name, -1) > index]


def _host_reasons(graph: MNGraph, target: Target) -> Iterator[str]:
    for node in graph.nodes:
        if (node.side is Side.HOST) != (node.reason is not None):
            yield f"`{node.name}` runs on {node.side.value} with reason {node.reason}"


STRUCTURE: tuple[Rule, ...] = (
    Rule("defined", Stage.IMPORTED, _defined),
    Rule("made once", Stage.IMPORTED, _made_once),
    Rule("recorded", Stage.IMPORTED, _recorded),
    Rule("node names", Stage.IMPORTED, _node_names),
    Rule("host reasons", Stage.IMPORTED, _host_reasons),
    Rule("dtypes", Stage.DTYPE, _dtypes),
    Rule("locations", Stage.LOCATION, _locations),
    Rule("layouts", Stage.LAYOUT, _layouts),
    Rule("concrete locations", Stage.SCHEDULED, _concrete),
    Rule("addresses", Stage.ADDRESSED, _addresses),
    Rule("no overlap", Stage.ADDRESSED, _overlaps),
)


def violations(graph: MNGraph, target: Target, rules: Sequence[Rule]) -> Iterator[tuple[str, str]]:
    """Yield the name of the rule and the problem for each violation in ``graph``."""
    for rule in rules:
        if graph.stage.value >= rule.stage.value:
            yield from ((rule.name, problem) for problem in rule.violations(graph, target))


def verify(graph: MNGraph, target: Target, rules: Sequence[Rule] = STRUCTURE) -> MNGraph:
    """Return ``graph``, or raise P0204 with the first violation."""
    for rule, problem in violations(graph, target, rules):
        raise error("P0204", stage=graph.stage.name.lower(), rule=rule, problem=problem)
    return graph
