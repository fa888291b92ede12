"""The pieces of data that are drawn: graph, memory, switches, time line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..gap.switches import Switch, switches
from ..graph.graph import MNGraph, MNNode
from ..graph.plan import OnePass
from ..machine import Target
from ..profile.programs import MOST_EVENTS, WAIT_KINDS, Program
from .buffers import L2BM, buffers
from .collect import Compile
from .details import machine_facts, module_of, value_facts
from .drawing import draw, fold
from .lives import lives, sizes

MOST_SWITCHES = 300
_DEEPEST = 4  # levels of modules that a graph is folded by


def graph_parts(
    found: Compile,
    program: Program | None,
    rows: Sequence[Mapping[str, Any]],
    places: Mapping[str, int],
) -> Iterator[tuple[str, Any]]:
    """Yield what is drawn of a graph. ``rows`` are those of nodes, ``places`` their numbers."""
    graph, target = found.graph, found.target
    assert graph is not None
    assert target is not None
    yield "graph", _graph(graph, rows, places)
    found_lives = lives(graph, target)
    words = sizes(target)
    if program is not None and program.events:
        found_lives += buffers(program, target)
        words[L2BM] = target.words("l2bm")
    yield (
        "memory",
        {
            "sizes": words,
            "names": [node.name for node in graph.nodes],
            "rows": [places.get(node.name, -1) for node in graph.nodes],
            "lives": [[*asdict(life).values()] for life in found_lives],
            "cycles": 0 if program is None else program.cycles,
        },
    )
    moved = _switches(graph, target, rows, places)
    if moved:
        yield "switches", moved
    yield "machine", machine_facts(target)


def _graph(
    graph: MNGraph, rows: Sequence[Mapping[str, Any]], places: Mapping[str, int]
) -> dict[str, Any]:
    drawing = draw(graph)
    numbers = [places.get(node.name, -1) for node in graph.nodes]
    cycles = [rows[at]["cycles"] if at >= 0 else 0 for at in numbers]
    nodes = [
        [node.name, node.op, *place, node.side.value, at, own, *_result(node, graph)]
        for node, place, at, own in zip(graph.nodes, drawing.places, numbers, cycles, strict=True)
    ]
    modules = [module_of(node.origin or node.name).split(".") for node in graph.nodes]
    folds = []
    for depth in range(1, min(_DEEPEST, max(map(len, modules), default=0)) + 1):
        names = [".".join(own[:depth]) for own in modules]
        groups, folded = fold(graph, names)
        boxes = [
            [*_box(group.name, group.members, nodes), *place, sum(cycles[k] for k in group.members)]
            for group, place in zip(groups, folded.places, strict=True)
        ]
        folds.append({"depth": depth, "nodes": boxes, "edges": folded.edges})
    return {"nodes": nodes, "edges": drawing.edges, "folds": folds}


def _result(node: MNNode, graph: MNGraph) -> tuple[str, str]:
    """Return shape and dtype of the first result of a node."""
    value = graph.values.get(node.outputs[0]) if node.outputs else None
    if value is None:
        return "", ""
    return "x".join(map(str, value.shape)) or "scalar", value.dtype.value


def _box(name: str, members: Sequence[int], nodes: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the title of a box, the number of its node if it has one, and the count of them."""
    alone = len(members) == 1
    return [nodes[members[0]][1] if alone else name, members[0] if alone else -1, len(members)]


def _switches(
    graph: MNGraph,
    target: Target,
    rows: Sequence[Mapping[str, Any]],
    places: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Return the switches with the most cycles: before, after, and what must cross each level."""
    found: list[tuple[int, Switch, list[list[Any]]]] = []
    for switch in switches(graph, target):
        numbers = [places.get(node.name, -1) for node in switch.chain]
        cycles = sum(rows[at]["cycles"] for at in numbers if at >= 0)
        passes = zip(switch.chain, numbers, strict=True)
        found.append((cycles, switch, [[node.name, _level(node), at] for node, at in passes]))
    found.sort(key=lambda one: target.cycles * one[1].least - one[0])
    return [
        {
            "passes": passes,
            "cycles": cycles,
            "least": target.cycles * switch.least,
            "crossing": [
                [unit, own.elements, float(own.most)] for unit, own in switch.crossing.items()
            ],
            "lanes": switch.first.dtype.words_per_long,
            "values": [value_facts(value, target) for value in (switch.first, switch.last)],
        }
        for cycles, switch, passes in found[:MOST_SWITCHES]
    ]


def _level(node: MNNode) -> str:
    """Return the level of a pass; nothing in a graph of others that does not say it."""
    return node.plan.level.value if isinstance(node.plan, OnePass) else ""


def time_line(program: Program, places: Mapping[str, int], found: Compile) -> dict[str, Any]:
    """Return the events of a program by row, with the bound and the clock for the axis."""
    names = {name: k for k, name in enumerate(dict.fromkeys(e[4] for e in program.events))}
    order = sorted(range(len(program.tracks)), key=lambda k: program.tracks[k])
    track = {k: place for place, k in enumerate(order)}
    return {
        "cycles": program.cycles,
        "bound": (found.report.get("bound") or {}).get("cycles"),
        "clock": found.report.get("clock_mhz"),
        "tracks": [program.tracks[k].name for k in order],
        "kinds": [*WAIT_KINDS, "dependence"],
        "cut": len(program.events) >= MOST_EVENTS,
        "names": list(names),
        "rows": [places.get(program.rows.get(name, name), -1) for name in names],
        "events": [
            [track[event[0]], *event[1:4], names[event[4]], event[5]] for event in program.events
        ],
    }
