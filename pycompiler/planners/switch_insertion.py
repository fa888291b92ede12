"""Layout switches: inserted before layouts are planned, and replaced by passes afterwards.

A switch is a MNCoreLayoutSwitch node, where a tensor may change its layout. An anchored node is one
whose layer determines the layouts of its operands. Each of its operands gets a switch, and a value
for the result of the switch. So does an operand that would give two axes of a tensor the same
digits. When all layouts are known, a switch between equal layouts is removed, and any other is
replaced by its passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from ..errors import GraphError, NoSwitchError, error
from ..graph.disjoint_sets import DisjointSets
from ..graph.draft import Edit
from ..graph.graph import MNGraph, MNNode, Side
from ..graph.layout import Layout, Layouts
from ..graph.plan import OnePass
from ..graph.verify import layout_ranges
from ..layers.base import Frame, layout_of
from ..layers.half_conversions import NARROW, WIDEN
from ..layers.operators import LAYERS
from ..layers.switch.layer import SWITCH
from ..layers.switch.pass_moves import LayoutChange
from ..layers.switch.pass_search import Pass
from ..machine import Target
from ..pfvm.names import fresh, reserved
from .switch_plan import plan_switch

#: Operators that the compiler puts between nodes of the model.
_OWN = {SWITCH, NARROW, WIDEN}


def is_anchored(node: MNNode) -> bool:
    """Whether the node's layer names the layouts of its operands."""
    return node.side is Side.DEVICE and LAYERS[node.op].anchored


class _Inserting(Edit):
    def __init__(self, graph: MNGraph):
        super().__init__()
        self.graph, self.names = graph, set(graph.values)

    def private(self, name: str) -> str:
        """Make a value like ``name``, and return its name."""
        found = reserved(f"{name}.own", self.names)
        self.values[found] = replace(self.graph.values[name], name=found)
        return found

    def switch(self, source: str, result: str, node: MNNode) -> MNNode:
        name = reserved(f"{node.name}.switch.{result}", self.names)
        return MNNode(name, SWITCH, (source,), (result,)).near(node)


def insert_switches(graph: MNGraph, alone: Collection[str] = ()) -> MNGraph:
    """Put switches around the anchored nodes and the nodes in ``alone``.

    There is one before every input and one after every output. A constant that only one node reads
    needs no switch, because the host stores it in the layout of its reader.
    """
    readers, given = graph.readers(), {name for _, name in graph.outputs}
    work = _Inserting(graph)
    for node in graph.nodes:
        if not is_anchored(node) and node.name not in alone:
            continue
        inputs: list[str] = []
        own, apart = {"": ""}, LAYERS[node.op].apart
        for name in node.inputs:
            if name not in own or (name and apart):
                once = len(readers[name]) == 1 and (node.inputs.count(name) == 1 or not apart)
                single = name in graph.constants and once and name not in given
                own[name] = name if single else work.private(name)
                if not single:
                    work.before[node.name].append(work.switch(name, own[name], node))
            inputs.append(own[name])
        outputs = {name: work.private(name) for name in node.outputs if name}
        made = tuple(outputs.get(name, name) for name in node.outputs)
        work.instead[node.name] = replace(node, inputs=tuple(inputs), outputs=made)
        work.behind[node.name] += [work.switch(inner, n, node) for n, inner in outputs.items()]
    return work.of(graph)


def keep_apart(graph: MNGraph) -> MNGraph:
    """Put switches before operands that would give two axes of one tensor the same digits.

    In ``x + x.amax(1)`` the maxima have the digits of the rows of ``x``, but the addition needs
    those of the columns.
    """
    work, classes = _Inserting(graph), _Meeting()
    for node in graph.nodes:
        if node.side is Side.HOST or node.op == SWITCH or is_anchored(node):
            continue
        frame = LAYERS[node.op].frame(node, graph)
        inputs = dict.fromkeys(n for n in node.inputs if n)
        small = sorted(inputs, key=lambda name: prod(graph.values[name].shape))
        # Try to move no operand, one operand, then all. The outputs of the node are still free.
        for moved in ((), *((name,) for name in small), tuple(small)):
            free = {*moved, *node.outputs}
            if classes.fits(frame, free):
                break
        own = {name: work.private(name) for name in moved}
        work.before[node.name] += [work.switch(name, own[name], node) for name in moved]
        work.inputs |= {(node.name, name): own[name] for name in moved}
        classes.join(frame, own)
    return work.of(graph)


class _Meeting:
    """Sets of axes that share digits; axes that meet in an operator must have different digits."""

    def __init__(self) -> None:
        self.joined = DisjointSets[tuple[str, int]]()
        self.others: dict[tuple[str, int], set[tuple[str, int]]] = {}

    def fits(self, frame: Frame, free: Collection[str]) -> bool:
        """Whether all axes of the frame can have different digits.

        The axes of values in ``free`` can have any digits.
        """
        seen: set[tuple[str, int]] = set()
        for along in self._along(frame, {}):
            roots = {self.joined.root(axis) for axis in along if axis[0] not in free}
            others = {
                self.joined.root(axis) for root in roots for axis in self.others.get(root, ())
            }
            if roots & (seen | others):
                return False
            seen |= roots
        return True

    def join(self, frame: Frame, renamed: Mapping[str, str]) -> None:
        """Join the value axes that lie along each axis of the frame, and note that these meet."""
        found: list[tuple[str, int]] = []
        for axes in self._along(frame, renamed):
            others = {axis for one in axes for axis in self.others.pop(self.joined.root(one), ())}
            for one in axes[1:]:
                self.joined.join(one, axes[0])
            found.append(self.joined.root(axes[0]))
            self.others[found[-1]] = {self.joined.root(axis) for axis in others}
        for root in found:
            self.others[root].update(other for other in found if other != root)

    def _along(self, frame: Frame, renamed: Mapping[str, str]) -> Iterator[list[tuple[str, int]]]:
        for number, size in enumerate(frame.shape):
            if size > 1:
                yield [
                    (renamed.get(name, name), axes.index(number))
                    for name, axes in frame.values
                    if number in axes
                ]


def cut_out(graph: MNGraph, wanted: Layouts, target: Target) -> MNGraph:
    """Put switches around the values with given layouts, so that all other values stay free.

    P0306 for a layout that is not legal for its value, or for a value that is not on the device.
    """
    limits = layout_ranges(target)
    on_device = graph.device_values()
    for name, layout in wanted.items():
        value = graph.values[name]
        if name not in on_device:
            raise error("P0306", value=name, reason="it is not on the device")
        try:
            layout.check(value.shape, value.dtype, limits, target.words("dram"))
        except GraphError as problem:
            raise error("P0306", value=name, reason=problem.message) from problem
        graph = _around(graph, name)
    return graph


def _around(graph: MNGraph, name: str) -> MNGraph:
    work = _Inserting(graph)
    inner, outer = work.private(name), work.private(name)
    made = graph.producers().get(name)
    users = [n for n in graph.readers().get(name, ()) if n.side is Side.DEVICE and n.op != SWITCH]
    if users:
        work.before[users[0].name].append(work.switch(name, outer, users[0]))
        work.inputs |= {(node.name, name): outer for node in users}
    else:
        del work.values[outer]
    # A value from the host or from a switch may have any layout.
    if made is not None and made.side is Side.DEVICE and made.op != SWITCH:
        outputs = tuple(inner if n == name else n for n in made.outputs)
        work.instead[made.name] = replace(made, outputs=outputs)
        work.behind[made.name].append(work.switch(inner, name, made))
    else:
        del work.values[inner]
    return work.of(graph)


def rigid_values(graph: MNGraph) -> set[str]:
    """Return the values read by operators that compare the digits of their operands."""
    return {
        name
        for node in graph.device_nodes()
        if node.op != SWITCH and (LAYERS[node.op].rigid or not is_anchored(node))
        for name in node.inputs
    }


def _beside(graph: MNGraph, switch: MNNode) -> tuple[str, ...]:
    """Return the nodes of the model around a switch: the nearest readers, then the makers.

    The compiler's own nodes, such as the rounding of an operand, are passed over: a node of the
    model is behind them.
    """
    found: dict[str, None] = {}
    for forward in (True, False):
        waiting, seen = [switch], {switch.name}
        while waiting:
            node = waiting.pop(0)
            for name in node.outputs if forward else node.inputs:
                for one in graph.nodes:
                    if one.name in seen or name not in (one.inputs if forward else one.outputs):
                        continue
                    seen.add(one.name)
                    if one.op in _OWN:
                        waiting.append(one)
                    else:
                        found[one.origin or one.name] = None
    return tuple(found)


class _Resolving:
    """The nodes and values of a graph whose switches become passes; ``fixed`` names stay."""

    def __init__(self, graph: MNGraph, fixed: Collection[str], cycles: int):
        self.fixed, self.cycles = fixed, cycles
        self.values, self.nodes = dict(graph.values), list[MNNode]()
        self.taken = {node.name for node in graph.nodes}
        self.alias: dict[str, str] = {}
        #: The result of each pass, by its source and layout, if the model has no name for it.
        self.made: dict[tuple[str, Layout, int | None], str] = {}

    def merge(self, result: str, same: str) -> None:
        """Let all that comes read ``same`` instead of a result."""
        self.alias[result] = same
        del self.values[result]

    def add(self, node: MNNode, before: str, plan: Sequence[Pass]) -> None:
        """Add the passes of a switch of the value ``before``, without those that are there."""
        result = node.outputs[0]
        for step in plan:
            last, key = step is plan[-1], (before, step.layout, node.segment)
            if key in self.made and not (last and result in self.fixed):
                before = self.made[key]
                if last:
                    self.merge(result, before)
                continue
            name, called, layout = result, node.name, step.layout
            if not last:
                name = fresh(f"{result}.{step.level.value}", self.values)
                called = reserved(f"{node.name}.{step.level.value}", self.taken)
                like, rows = self.values[result], layout.num_lw(self.cycles)
                self.values[name] = replace(like, name=name, layout=layout, num_lw=rows)
            made = replace(node, name=called, inputs=(before,), outputs=(name,))
            self.nodes.append(replace(made, plan=OnePass(step.level)))
            if name not in self.fixed:
                self.made[key] = name
            before = name


def resolve_switches(graph: MNGraph, target: Target, named: Collection[str]) -> MNGraph:
    """Replace every switch by its passes, or remove it if it needs none.

    ``named`` are the values of the model. A value keeps its name in the model if possible, because
    overrides and host segments use that name. Switches of one value share the passes that they have
    in common.

    P0305 for the first switch without passes; its field ``nodes`` has the nodes of the model around
    each of them.
    """
    kept: dict[str, str] = {}
    for_host = {name for n in graph.nodes if n.side is Side.HOST for name in n.inputs}
    work, rigid = _Resolving(graph, {*named, *for_host}, target.cycles), rigid_values(graph)
    problems: list[NoSwitchError] = []
    stuck: list[tuple[str, ...]] = []
    for node in graph.nodes:
        if node.op != SWITCH or node.plan is not None:
            inputs = tuple(work.alias.get(name, name) for name in node.inputs)
            work.nodes.append(replace(node, inputs=inputs))
            continue
        source = work.alias.get(node.inputs[0], node.inputs[0])
        result = node.outputs[0]
        one, other = work.values[source], work.values[result]
        change = LayoutChange(layout_of(one), layout_of(other), one.shape, one.dtype)
        try:
            plan = plan_switch(change, target, result in rigid)
        except NoSwitchError as problem:
            problems.append(problem)
            stuck.append(_beside(graph, node))
            continue
        work.add(node, source, plan)
        if not plan:
            # All elements are stored in the same words. Only digits that no index uses may differ.
            work.merge(result, source)
            if result in for_host:
                kept[source] = result
            elif source not in named and result in named:
                kept.setdefault(source, result)
    if problems:
        problems[0].fields["nodes"] = tuple(stuck)
        raise problems[0]
    outputs = tuple((key, work.alias.get(name, name)) for key, name in graph.outputs)
    nodes = tuple(work.nodes)
    return _renamed(replace(graph, nodes=nodes, values=work.values, outputs=outputs), kept)


def _renamed(graph: MNGraph, names: Mapping[str, str]) -> MNGraph:
    """Rename the values that are keys of ``names``."""
    if not names:
        return graph

    def new(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in given)

    return replace(
        graph,
        nodes=tuple(replace(n, inputs=new(n.inputs), outputs=new(n.outputs)) for n in graph.nodes),
        values={
            names.get(name, name): replace(value, name=names.get(name, name))
            for name, value in graph.values.items()
        },
        outputs=tuple((key, names.get(name, name)) for key, name in graph.outputs),
    )
