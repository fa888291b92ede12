"""``trace.json``: a time line of the nodes of a call, in the format of Chrome's trace events.

Open it at https://ui.perfetto.dev. As in traces of `emu2`, one microsecond there is one cycle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..emit.line_table import spans
from ..emit.program import Code
from ..emit.segments import Segment
from ..graph.graph import Location, MNGraph, MNNode
from ..layers.dram_transfer_plan import dram_words
from ..machine import Target

_HOST, _DEVICE, _MOVES, _MEMORY = 1, 2, 3, 4
_PROCESSES = {_HOST: "host", _DEVICE: "device", _MOVES: "MV", _MEMORY: "memory in use"}

#: A node that pauses for less than this fraction of the program keeps one slice.
_PAUSES = 2000

Event = dict[str, Any]
#: First cycle, last cycle, name, and facts.
Slice = tuple[int, int, str, Mapping[str, Any]]


def node_trace(graph: MNGraph, segments: Sequence[Segment], target: Target) -> str:
    """Return the text of the file.

    The host's track has a slice for each program, and a mark for each node on the host: the cycle
    model gives the host no time. The device's tracks have the nodes; merged nodes overlap, so there
    are as many tracks as nodes run at once. ``cycles`` of a slice are those that count for it. MVs
    have tracks of their own. Counters show the long words in use: of LM0 and LM1 in each PE, of
    DRAM in each group.
    """
    host: list[Event] = []
    nodes: list[Slice] = []
    moves: list[Slice] = []
    lives: dict[str, tuple[int, int]] = {}
    at = 0
    for number, segment in enumerate(segments):
        code = segment.code
        if code is None:
            for node in segment.nodes:
                host.append(_mark(f"{node.op} {node.name}", at, _facts(node)))
                lives[node.name] = (at, at)
            continue
        facts = {"segment": number, "cycles": code.cycles, "nodes": len(segment.nodes)}
        host.append(_slice(_HOST, 1, (at, at + code.cycles, f"program {number}", facts)))
        for first, last, owner, busy in _node_slices(code):
            node = segment.nodes[owner]
            facts = {"cycles": busy, **_facts(node)}
            nodes.append((at + first, at + last, f"{node.op} {node.name}", facts))
        for move in code.transfers:
            node = segment.nodes[move.node]
            detail = {"node": node.name, "words": move.words}
            moves.append((at + move.start, at + move.end, move.what, detail))
        for name, (first, last) in _busy(segment, code).items():
            lives[name] = (at + first, at + last)
        at += code.cycles
    events = [*_names(), *host, *_lanes(_DEVICE, "nodes", nodes), *_lanes(_MOVES, "MV", moves)]
    events += _counters(graph, lives, at, target)
    text = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    return f'{{"displayTimeUnit": "ns", "traceEvents": [\n{text}\n]}}\n'


def _facts(node: MNNode) -> dict[str, Any]:
    facts = {"inputs": list(node.inputs), "outputs": list(node.outputs)}
    return {**facts, **({} if node.source is None else {"source": node.source})}


def _node_slices(code: Code) -> Iterator[tuple[int, int, int, int]]:
    """Yield the slices of the nodes of a program.

    A slice is first and last cycle, the node's number, and the cycles between that count for it.
    """
    pause = code.cycles // _PAUSES
    open_now: dict[int, tuple[int, int, int]] = {}
    for span in spans(code.runs, code.cycles):
        first, last, busy = open_now.get(span.node, (span.start, span.start, 0))
        if span.start - last > pause:
            yield first, last, span.node, busy
            first, busy = span.start, 0
        open_now[span.node] = first, span.stop, busy + span.stop - span.start
    for node, (first, last, busy) in open_now.items():
        yield first, last, node, busy


def _busy(segment: Segment, code: Code) -> dict[str, tuple[int, int]]:
    """Return the first and the last cycle of each node, with its MVs."""
    spans_of: dict[int, tuple[int, int]] = {}
    pieces: list[tuple[int, int, int]] = list(spans(code.runs, code.cycles))
    pieces += [(move.node, move.start, min(move.end, code.cycles)) for move in code.transfers]
    for node, first, last in pieces:
        low, high = spans_of.get(node, (first, last))
        spans_of[node] = min(low, first), max(high, last)
    # A node whose lines all stand in steps of others, and views without code, take no time.
    before, out = 0, {}
    for number, one in enumerate(segment.nodes):
        first, last = spans_of.get(number, (before, before))
        out[one.name] = first, last
        before = last
    return out


def _names() -> Iterator[Event]:
    for process, name in _PROCESSES.items():
        yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_name", "pid": _HOST, "tid": 1, "args": {"name": "calls"}}


def _slice(process: int, track: int, what: Slice) -> Event:
    start, stop, name, facts = what
    event = {"ph": "X", "name": name, "pid": process, "tid": track, "ts": start}
    return {**event, "dur": stop - start, "args": dict(facts)}


def _mark(name: str, at: int, facts: Mapping[str, Any]) -> Event:
    event = {"ph": "i", "s": "t", "name": name, "pid": _HOST, "tid": 1, "ts": at}
    return {**event, "args": dict(facts)}


def _lanes(process: int, name: str, slices: Iterable[Slice]) -> Iterator[Event]:
    """Yield slices on as many tracks as overlap at one time, and the names of the tracks."""
    ends: list[int] = []
    for one in sorted(slices, key=lambda item: item[:3]):
        lane = next((n for n, end in enumerate(ends) if end <= one[0]), len(ends))
        if lane == len(ends):
            ends.append(0)
            args = {"name": f"{name} {lane}"}
            yield {"ph": "M", "name": "thread_name", "pid": process, "tid": lane, "args": args}
        ends[lane] = one[1]
        yield _slice(process, lane, one)


def _counters(
    graph: MNGraph, spans: Mapping[str, tuple[int, int]], end: int, target: Target
) -> Iterator[Event]:
    """Yield the long words in use of each memory whenever they change."""
    rooms = _rooms(graph, spans, end, target)
    for location in (Location.LM0, Location.LM1, Location.DRAM):
        changes = [room[1:] for room in rooms if room[0] is location]
        unit = "long words a group" if location is Location.DRAM else "long words a PE"
        for at, used in (change for change in in_use(changes) if change[0] <= end):
            name = f"{location.value} ({unit})"
            yield {"ph": "C", "name": name, "pid": _MEMORY, "ts": at, "args": {"used": used}}


def _rooms(
    graph: MNGraph, spans: Mapping[str, tuple[int, int]], end: int, target: Target
) -> list[tuple[Location, int, int, int, int]]:
    """Return for each value with an address its memory, its first and last cycle, and its words.

    A value lives from the begin of the node that makes it to the end of the last one that reads
    it. What comes from outside is there from the start, results stay to the end.
    """
    born = {out: spans[node.name][0] for node in graph.nodes for out in node.outputs if out}
    dies = {out: spans[node.name][1] for node in graph.nodes for out in node.outputs if out}
    for node in graph.nodes:
        for name in node.inputs:
            dies[name] = max(dies.get(name, 0), spans[node.name][1])
    outside = {*graph.inputs, *graph.constants}
    outside_values = {*outside, *(name for _, name in graph.outputs)}
    rooms = []
    for name, value in graph.values.items():
        if value.addr is None or value.layout is None:
            continue
        in_dram = value.location is Location.DRAM
        words = dram_words(value.layout, target) if in_dram else value.num_lw or 0
        first = 0 if name in outside else born.get(name, 0)
        last = end + 1 if name in outside_values else dies.get(name, first)
        rooms.append((value.location, first, last, value.addr, value.addr + words))
    return rooms


def in_use(rooms: Sequence[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """Return the times at which the words in use change, each with the new number.

    ``rooms`` are first time, last time, first word and the word behind the last. Words that several
    rooms share count once.
    """
    rooms = [room for room in rooms if room[0] < room[1] and room[2] < room[3]]
    bounds = np.unique(np.array([room[2:] for room in rooms], dtype=np.int64).reshape(-1))
    sizes, holders = np.diff(bounds), np.zeros(max(len(bounds) - 1, 0), dtype=np.int64)
    changes: dict[int, list[tuple[int, int, int]]] = {}
    for first, last, low, high in rooms:
        changes.setdefault(first, []).append((1, low, high))
        changes.setdefault(last, []).append((-1, low, high))
    out = [(0, 0)]
    for at in sorted(changes):
        for change, low, high in changes[at]:
            begin, stop = np.searchsorted(bounds, (low, high))
            holders[begin:stop] += change
        used = int(sizes[holders > 0].sum())
        if at == out[-1][0]:
            out[-1] = at, used
        elif used != out[-1][1]:
            out.append((at, used))
    return out
