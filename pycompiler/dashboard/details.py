"""What the page of a node shows: operands with their layouts, code, slots, lines of the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any

import emu2

from ..graph.graph import MNGraph, MNNode, MNValue
from ..graph.layout import Layout, Level
from ..graph.verify import layout_ranges
from ..machine import Target
from ..profile.nodes import name_of
from ..profile.programs import Line, Program
from .collect import Compile, Sources
from .estimates import estimates, peaks
from .simulated import chosen, read_simulated

MOST_LINES = 2000  # of the code of one node


def rows_of_nodes(found: Compile) -> list[dict[str, Any]]:
    """Return the rows of the table: those of the report, then nodes that it does not know.

    Nodes of the host have no row in the report.
    """
    rows = [_row(row) for row in found.rows]
    if found.graph is not None and found.target is not None:
        placed = place_nodes(found.graph, found.rows)
        expected = estimates(found.graph, found.target, placed)
        highest = peaks(found.graph, found.target, placed)
        for number, row in enumerate(rows):
            row |= {"expected": expected.get(number), "peak": highest.get(number)}
        for node, place in zip(found.graph.nodes, placed, strict=True):
            if place is None:
                rows.append(_bare_row(node, found.graph))
    return rows


def place_nodes(graph: MNGraph, rows: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Return the number of the row of each node; the slices of a node share one.

    The text of a graph does not say what a slice was cut from, but its name begins with it.
    """
    known = {(row["op"], row["node"]): k for k, row in enumerate(rows)}
    places: list[int | None] = []
    for node in graph.nodes:
        name = node.name
        place = known.get((node.op, name))
        while place is None and node.slice is not None and "." in name:
            name = name.rpartition(".")[0]
            place = known.get((node.op, name))
        places.append(place)
    return places


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    busy: Mapping[str, int] = row["busy_steps"]
    slot = max(sorted(busy), key=lambda name: busy[name], default="")
    words = row["dram_words"]
    return {
        **{key: row[key] for key in ("node", "op", "output", "shape", "layout", "location")},
        **{"slices": row["slices"], "steps": row["steps"], "cycles": row["cycles"]},
        **{"waits": row["wait_cycles"], "mads": row["multiply_adds"], "slot": slot},
        **{"read": words.get("read", 0), "written": words.get("written", 0)},
        **{"use": row.get("utilisation", 0), "source": row.get("source"), "busy": dict(busy)},
        **{"module": module_of(row["node"])},
    }


def _bare_row(node: MNNode, graph: MNGraph) -> dict[str, Any]:
    value = graph.values.get(node.outputs[0]) if node.outputs else None
    return {
        **{"node": node.name, "op": node.op, "output": node.outputs[0] if node.outputs else ""},
        **{"shape": list(value.shape) if value else [], "location": node.side.value},
        **{"layout": "" if value is None or value.layout is None else str(value.layout)},
        **{"slices": 1, "steps": 0, "cycles": 0, "waits": 0, "mads": 0, "slot": ""},
        **{"read": 0, "written": 0, "use": 0, "source": node.source, "busy": {}},
        **{"module": module_of(node.name)},
    }


def module_of(node: str) -> str:
    """Return the module of a node by its name; nothing if it has none."""
    name = name_of({"node": node}, "module")
    return "" if name.startswith("(") else name


class Details:
    """Makes the facts of one node's page after the other."""

    def __init__(self, found: Compile, program: Program | None, rows: Sequence[Any]):
        self._found, self._program = found, program
        self._sources = Sources()
        self._simulated = read_simulated(found.folder, found.problems)
        self._nodes: dict[int, list[MNNode]] = defaultdict(list)
        if found.graph is not None:
            places = place_nodes(found.graph, rows)
            for node, place in zip(found.graph.nodes, places, strict=True):
                if place is not None:
                    self._nodes[place].append(node)

    def of(self, place: int, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the facts of the row with the number ``place``."""
        nodes = self._nodes[place]
        found: dict[int, Line] = {}
        if self._program is not None:
            for node in nodes:
                found |= {line.number: line for line in self._program.nodes.get(node.name, [])}
        lines = [found[number] for number in sorted(found)]
        own = {node.name for node in nodes}
        return {
            "parts": [self._part(node) for node in nodes],
            "code": [_line(line, own) for line in lines[:MOST_LINES]],
            "lines": len(lines),
            "source": self._sources.around(row.get("source")),
            "simulated": self._simulated.get(row["node"], []),
            "chosen": chosen(nodes, self._found.graph) if self._found.graph is not None else "",
        }

    def _part(self, node: MNNode) -> dict[str, Any]:
        graph, target = self._found.graph, self._found.target
        assert graph is not None
        assert target is not None
        named = [("in", n) for n in node.inputs] + [("out", n) for n in node.outputs]
        return {
            "name": node.name,
            "attributes": {key: _plain(value) for key, value in node.attributes},
            "reason": node.reason,
            "inplace": node.inplace,
            "operands": [
                {"role": role, **value_facts(graph.values[name], target)}
                for role, name in named
                if name and name in graph.values
            ],
        }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _line(line: Line, own: Set[str]) -> list[Any]:
    """Return a line of a node; the cycles of one that counts for another node are not shown."""
    cycles = (line.cycles, line.waits) if line.nodes[0] in own else (0, 0)
    others = [node for node in line.nodes if node not in own]
    return [line.number, line.text, line.slots, line.start, *cycles, others]


def value_facts(value: MNValue, target: Target) -> dict[str, Any]:
    """Return what a page shows of a value; its layout as numbers, for the drawing of units."""
    return {
        "name": value.name,
        "type": str(value.type),
        "shape": list(value.shape),
        "dtype": value.dtype.value,
        "location": value.location.value,
        "addr": value.addr,
        "num_lw": value.num_lw,
        "text": "" if value.layout is None else str(value.layout),
        "layout": None if value.layout is None else _layout(value.layout, value, target),
    }


def _layout(layout: Layout, value: MNValue, target: Target) -> dict[str, Any]:
    packed = bool(layout.on(Level.W)) or any(one.level is Level.W for one in layout.broadcast)
    lanes = value.dtype.words_per_long if packed else 1
    room = value.num_lw or layout.extent(Level.ADDR)
    ranges = {**layout_ranges(target), Level.W: lanes, Level.ADDR: room, Level.TIME: layout.slices}
    return {
        "axes": [[[s.size, s.level.value, s.stride] for s in axis] for axis in layout.axes],
        "copies": [[s.size, s.level.value, s.stride] for s in layout.copies(ranges)],
        "lanes": lanes,
        "words": room,
    }


def machine_facts(target: Target) -> dict[str, Any]:
    """Return the levels of units with their counts, and how debug statements name a unit."""
    letters = dict(emu2.Debugger(emu2.assemble("nop", target.spec)).levels)
    return {
        "name": target.name,
        "units": [[level.value, count] for level, count in layout_ranges(target).items()],
        "letters": list(letters.values()),
        "l2bs": target.l2bs_per_group,
    }
