"""Reports the programs of a compile: steps, cycles, words of DRAM, and a row per node."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..emit.program import Code
from ..emit.segments import Segment
from ..graph.graph import MNGraph
from ..machine import Target
from .cycle_shares import cycle_shares
from .report import Report
from .schedule import schedule_facts
from .work import multiply_adds, operand_words


def record_programs(
    report: Report,
    graph: MNGraph,
    segments: Sequence[Segment],
    programs: Sequence[Mapping[str, Any] | None],
    scheduler: str,
    target: Target,
) -> None:
    """Fill what the report says of programs.

    That is ``steps``, ``cycles``, ``clock_mhz``, ``cycle_shares``, ``waits``, ``dram_words``,
    ``words``, ``nodes`` and ``schedule``.
    ``programs`` has the assembler's report of each segment, with its ``stalls`` by line; None for
    segments on the host.
    """
    data = report.data
    for number, (segment, facts) in enumerate(zip(segments, programs, strict=True)):
        if facts is None or segment.code is None:
            continue
        data["clock_mhz"] = target.spec.clock_mhz
        data["steps"] += facts["steps"]
        data["cycles"] += facts["cycles"]
        for key in ("read", "written"):
            data["dram_words"][key] += facts["dram_words"][key]
        for memory, moved in facts["words"].items():
            words = data["words"].setdefault(memory, {"read": 0, "written": 0})
            for key in words:
                words[key] += moved[key]
        data["nodes"] += _node_rows(segment, graph, number, facts["stalls"], target.cycles)
        idle = target.cycles * sum(node.wait_steps for node in segment.code.nodes)
        for kind, cycles in {**segment.code.stalls, "dependence": idle}.items():
            data["waits"][kind] = data["waits"].get(kind, 0) + cycles
    data["cycle_shares"] = cycle_shares(data["nodes"])
    data["schedule"] = schedule_facts(scheduler, graph, data["nodes"], data["steps"])


def _node_rows(
    segment: Segment, graph: MNGraph, number: int, stalls: Mapping[int, int], step_cycles: int
) -> list[dict[str, Any]]:
    """Return a row per node; the slices of a node share a row, with the shape of the first.

    ``stalls`` has the cycles that lines (from 1) stand still at a wait.
    """
    assert segment.code is not None
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    stood = _stalls(segment.code, stalls)
    for at, (node, counts) in enumerate(zip(segment.nodes, segment.code.nodes, strict=True)):
        out = graph.values[node.outputs[0]]
        name, output = node.name, out.name
        if node.slice is not None:
            name, output = node.origin or name, out.origin or output
        row = rows.setdefault(
            (node.op, name),
            {
                "node": name,
                "op": node.op,
                "segment": number,
                "output": output,
                "shape": list(out.shape),
                "layout": str(out.layout),
                "num_lw": out.num_lw,
                "location": out.location.value,
                "slices": 0,
                "steps": 0,
                "cycles": 0,
                "wait_cycles": 0,
                "dram_words": {"read": 0, "written": 0},
                "multiply_adds": 0,
                "operand_words": 0,
                "busy_steps": Counter(),
                "source": node.source,
            },
        )
        row["slices"] += 1
        row["steps"] += counts.steps
        row["cycles"] += counts.steps * step_cycles + stood[at]
        row["wait_cycles"] += counts.wait_steps * step_cycles + stood[at]
        row["multiply_adds"] += multiply_adds(node, graph)
        row["operand_words"] += operand_words(node, graph)
        row["dram_words"]["read"] += counts.dram_read
        row["dram_words"]["written"] += counts.dram_written
        row["busy_steps"].update(counts.busy)
    for row in rows.values():
        row["busy_steps"] = busy = dict(sorted(row["busy_steps"].items()))
        # In a merged program, instructions of a node also stand in steps of others.
        utilisation = max(busy.values(), default=0) / (row["steps"] or 1)
        row["utilisation"] = round(min(utilisation, 1.0), 4)
    return list(rows.values())


def _stalls(code: Code, stalls: Mapping[int, int]) -> Counter[int]:
    """Return the cycles that lines of each node stand still; ``stalls`` has them by line."""
    totals: Counter[int] = Counter()
    starts = [run.line for run in code.runs]
    for line, cycles in stalls.items():
        totals[code.runs[bisect_right(starts, line - 1) - 1].nodes[0]] += cycles
    return totals
