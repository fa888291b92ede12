"""The simulation of a graph: the outcome of every node in every setting, and of moves of values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from ..emit.fragment_cache import renamed
from ..graph.graph import Location, MNGraph, MNNode, MNValue, Side
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.local_copy import COPY
from ..layers.split_concat import IN_DRAM
from ..machine import Target
from .estimate import estimated
from .outcome import Outcome
from .run import run
from .settings import FAKE, Setting, own_setting, placed, settings_of
from .task import Task, task_of

_MOVES = {
    DOWNLOAD: Setting((Location.DRAM,), (Location.LM0,)),
    UPLOAD: Setting((Location.LM0,), (Location.DRAM,)),
    COPY: Setting((Location.LM0,), (Location.LM1,)),
}
_SOURCE, _RESULT = "source", "result"


@dataclass(frozen=True)
class Simulation:
    """The outcomes of a graph.

    ``nodes`` maps a node's name to its settings, the layer's own first, each with the key of its
    outcome. ``moves`` maps a move and a value to the key of its outcome.
    """

    mode: str
    nodes: Mapping[str, Sequence[tuple[Setting, str]]]
    moves: Mapping[tuple[str, str], str]
    outcomes: Mapping[str, Outcome]
    remarks: Sequence[str] = ()

    def own(self, node: str) -> Outcome:
        """Return the outcome of a node in the setting that its layer asks for."""
        return self.outcomes[self.nodes[node][0][1]]

    def settings(self, node: str) -> list[tuple[Setting, Outcome]]:
        """Return the settings in which a node can run, the layer's own first."""
        own, *others = ((setting, self.outcomes[key]) for setting, key in self.nodes[node])
        return [own, *(one for one in others if not one[1].refused)]

    def move(self, op: str, value: str) -> Outcome:
        """Return the outcome of a download, an upload or a copy of a value."""
        return self.outcomes[self.moves[op, value]]

    def json(self) -> dict[str, Any]:
        """Return the content of ``simulation_result.json``.

        ``nodes`` has for each node its settings with keys, ``moves`` the moves of each value, and
        ``outcomes`` what each key cost. Equal nodes have equal keys.
        """
        moves: dict[str, dict[str, str]] = {}
        for (op, value), key in self.moves.items():
            moves.setdefault(value, {})[op] = key
        return {
            "mode": self.mode,
            "simulated": len(self.outcomes),
            "remarks": list(self.remarks),
            "nodes": {
                name: {setting.text: key for setting, key in found}
                for name, found in self.nodes.items()
            },
            "moves": moves,
            "outcomes": {key: found.json() for key, found in self.outcomes.items()},
        }


def simulate_graph(
    graph: MNGraph,
    target: Target,
    mode: str,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] = lambda ended, expected: None,
) -> Simulation:
    """Simulate the nodes of a graph with layouts, and the moves of their values.

    Equal nodes are simulated once. ``progress`` is called with the number of ended and of all
    simulations.
    """
    wanted = list(_tasks(graph, target, mode))
    tasks = {task.key: task for _, _, task in wanted}
    remarks: list[str] = []
    if mode == FAKE:
        found = {key: estimated(task, target) for key, task in tasks.items()}
    else:
        ended = count(1)
        found, remarks = run(
            list(tasks.values()), target, executor, lambda: progress(next(ended), len(tasks))
        )
    nodes: dict[str, list[tuple[Setting, str]]] = {}
    moves: dict[tuple[str, str], str] = {}
    for name, op, task in wanted:
        if op:
            moves[op, name] = task.key
        else:
            nodes.setdefault(name, []).append((task.setting, task.key))
    return Simulation(mode, nodes, moves, {k: found[k] for k in tasks}, remarks)


def _tasks(graph: MNGraph, target: Target, mode: str) -> Iterator[tuple[str, str, Task]]:
    """Yield names of nodes or values, the move of a value or nothing, and the task.

    Nodes that are alike but for names have the same tasks, and so do values.
    """
    values: dict[str, None] = {}
    known: dict[Hashable, list[Task]] = {}
    for node in graph.nodes:
        if node.side is Side.HOST or node.op in IN_DRAM:
            continue
        alone, own_values, _ = renamed(node, graph)
        key = alone, tuple(own_values.values())
        if key not in known:
            only = MNGraph("", target.name, nodes=(alone,), values=own_values)
            known[key] = [
                task_of(alone, placed(alone, only, one), one, target.name, target.digest)
                for one in settings_of(alone, only, target, mode)
            ]
        for task in known[key]:
            yield node.name, "", task
        own = own_setting(node, graph)
        named = zip(dict.fromkeys(name for name in node.inputs if name), own.inputs, strict=True)
        values.update((name, None) for name, bank in named if bank is not Location.DRAM)
        values.update(dict.fromkeys(node.outputs))
    for name in values:
        value = replace(
            graph.values[name], name="", location=Location.UNDECIDED, addr=None, gene=("", "")
        )
        if value not in known:
            known[value] = [_move(op, value, target) for op in _MOVES]
        for op, task in zip(_MOVES, known[value], strict=True):
            yield name, op, task


def _move(op: str, value: MNValue, target: Target) -> Task:
    """Return the task of a download, an upload or a copy of a value."""
    source, result = replace(value, name=_SOURCE), replace(value, name=_RESULT)
    node = MNNode(op, op, (_SOURCE,), (_RESULT,))
    alone = MNGraph("", target.name, nodes=(node,), values={_SOURCE: source, _RESULT: result})
    return task_of(node, alone, _MOVES[op], target.name, target.digest)
