"""The problem of a schedule in numbers: nodes and values as indices, sizes, and costs in cycles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...cost.moves import chip_dram_rate
from ...graph.graph import Location, MNGraph, MNNode, Side
from ...layers.base import distinct, layout_of, mirrored
from ...layers.dram_transfer import DOWNLOAD, UPLOAD
from ...layers.dram_transfer_plan import plan_transfer
from ...layers.local_copy import COPY
from ...layers.split_concat import CONCAT, IN_DRAM, SPLIT, slices_of
from ...machine import Target
from ...simulation.graph_costs import Simulation
from ...simulation.settings import Setting, own_setting
from ..in_place import written_in_place

#: The two LMs as numbers.
BANKS = (Location.LM0, Location.LM1)
DRAM = 2
_NUMBER = {Location.LM0: 0, Location.LM1: 1, Location.DRAM: DRAM}


@dataclass(frozen=True)
class Choice:
    """A setting of a node: the memories of its inputs and outputs (0 and 1 are LM0 and LM1).

    ``taken`` is the index, among the distinct inputs, of the one that the first output overwrites;
    -1 if none. ``cycles`` are the cycles of the node.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    taken: int
    cycles: int
    setting: Setting = field(compare=False)


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph as lists. Values and nodes are numbered; ``before`` and ``behind`` are edges.

    ``inputs`` are the distinct values that a node reads from LM or DRAM; a node without ``choices``
    has no code and works on DRAM. ``size`` is in long words of a PE, ``words`` in long words of
    DRAM over all groups; ``down``, ``up`` and ``copy`` are cycles. ``given`` values are in DRAM at
    the start, ``stored`` ones are uploaded as soon as they are made. ``remakable`` values may be
    computed again from the inputs of their node.
    """

    graph: MNGraph
    values: Sequence[str]
    inputs: Sequence[tuple[int, ...]]
    outputs: Sequence[tuple[int, ...]]
    choices: Sequence[tuple[Choice, ...]]
    before: Sequence[frozenset[int]]
    behind: Sequence[frozenset[int]]
    segment: Sequence[int | None]
    maker: Sequence[int]
    size: Sequence[int]
    words: Sequence[int]
    down: Sequence[int]
    up: Sequence[int]
    copy: Sequence[int]
    given: Sequence[bool]
    stored: Sequence[bool]
    remakable: Sequence[bool]
    words_per_cycle: int

    @property
    def order(self) -> list[int]:
        """The order of the graph."""
        return list(range(len(self.inputs)))


def problem_of(
    graph: MNGraph, target: Target, costs: Simulation, renewed: Mapping[str, str]
) -> Problem:
    """Return the problem of a graph with layouts.

    ``renewed`` maps the key of an output to the registered value whose new value it is. An order
    that lets the new value be written over the old one stays possible.
    """
    names = list(graph.values)
    number = {name: at for at, name in enumerate(names)}
    device = graph.device_values()
    laid = [name in device and graph.values[name].layout is not None for name in names]
    inputs, outputs, choices = [], [], []
    for node in graph.nodes:
        inputs.append(tuple(number[name] for name in distinct(node.inputs) if name))
        outputs.append(tuple(number[name] for name in _moving(node, graph)))
        choices.append(_choices(node, graph, costs))
    maker = [-1] * len(names)
    for at, results in enumerate(outputs):
        for value in results:
            maker[value] = at
    before = _edges(graph, number, inputs, maker, renewed)
    behind: list[set[int]] = [set() for _ in graph.nodes]
    for at, earlier in enumerate(before):
        for other in earlier:
            behind[other].add(at)
    outside = {number[name] for name in (*graph.inputs, *graph.constants)}
    fragile = {number[name] for name in renewed.values() if name in number}
    fragile |= _parts(graph, number, fragile)

    def cycles(op: str, name: str) -> int:
        return costs.move(op, name).cycles if (op, name) in costs.moves else 0

    def words(name: str) -> int:
        return plan_transfer(layout_of(graph.values[name]), target).mv_words * target.groups

    def remakable(value: int) -> bool:
        at = maker[value]
        if at < 0 or not choices[at] or len(graph.nodes[at].outputs) != 1:
            return False
        return not fragile.intersection(inputs[at])

    return Problem(
        graph,
        names,
        inputs,
        outputs,
        choices,
        [frozenset(earlier) for earlier in before],
        [frozenset(earlier) for earlier in behind],
        [node.segment for node in graph.nodes],
        maker,
        [graph.values[name].num_lw or 0 for name in names],
        [words(name) if there else 0 for name, there in zip(names, laid, strict=True)],
        [cycles(DOWNLOAD, name) for name in names],
        [cycles(UPLOAD, name) for name in names],
        [cycles(COPY, name) for name in names],
        [value in outside for value in range(len(names))],
        [graph.values[name].location is Location.DRAM for name in names],
        [remakable(value) for value in range(len(names))],
        chip_dram_rate(target),
    )


def _moving(node: MNNode, graph: MNGraph) -> Iterator[str]:
    """Yield the results of a node, without words of DRAM that the code of a node in LM uses."""
    names = [name for name in node.outputs if name]
    if node.side is Side.HOST or node.op in IN_DRAM:
        yield from names
        return
    for name, bank in zip(names, own_setting(node, graph).outputs, strict=True):
        if bank is not Location.DRAM:
            yield name


def _choices(node: MNNode, graph: MNGraph, costs: Simulation) -> tuple[Choice, ...]:
    """Return the ways to run a node, the layer's own first; none for a node without code."""
    if node.side is Side.HOST or node.op in IN_DRAM:
        return ()
    cost_of: dict[Setting, int] = {}
    preferred = own_setting(node, graph)
    for setting, outcome in costs.settings(node.name):
        if not setting.keeps:
            cost_of.setdefault(setting, outcome.cycles)
            cost_of.setdefault(mirrored(setting), outcome.cycles)
    assert preferred in cost_of
    names = [name for name in distinct(node.inputs) if name]
    out: list[Choice] = []
    for setting, cycles in cost_of.items():
        taken = -1 if setting.inplace is None else names.index(node.inputs[setting.inplace])
        result_banks = tuple(bank for bank in setting.outputs if bank is not Location.DRAM)
        banks = [tuple(_NUMBER[bank] for bank in s) for s in (setting.inputs, result_banks)]
        out.append(Choice(banks[0], banks[1], taken, cycles, setting))
    return tuple(out)


def _parts(graph: MNGraph, number: Mapping[str, int], wholes: Iterable[int]) -> set[int]:
    wanted, parts = set(wholes), set[int]()
    for node in graph.nodes:
        if node.op == SPLIT and number[node.inputs[0]] in wanted:
            parts.update(number[name] for name in node.outputs)
    return parts


def _edges(
    graph: MNGraph,
    number: Mapping[str, int],
    inputs: Sequence[tuple[int, ...]],
    maker: Sequence[int],
    renewed: Mapping[str, str],
) -> list[set[int]]:
    """Return for each node the nodes that must run before it."""
    before: list[set[int]] = [
        {maker[value] for value in operands if maker[value] >= 0} for operands in inputs
    ]
    slices = {}
    for node in graph.nodes:
        if node.op in (SPLIT, CONCAT):
            whole, parts = slices_of(node)
            slices[whole] = parts
    for new, old in written_in_place(graph, renewed).items():
        readers = _readers(graph, {old, *slices.get(old, ())})
        for name in (new, *slices.get(new, ())):
            writer = maker[number[name]]
            before[writer] |= {at for at in readers if at < writer}
    return before


def _readers(graph: MNGraph, names: set[str]) -> list[int]:
    return [at for at, node in enumerate(graph.nodes) if names.intersection(node.inputs)]
