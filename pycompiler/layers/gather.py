"""Gather: every PE reads rows of a table by address.

The gathered axis is in Addr, one long word after the other, so an index is an address. It is
written to the T register, which a PE adds to every address that it reads from LM0. The axes of the
index and the other axes of the table may be on any unit. The table has copies on the units of the
index's axes, and the index has copies on the units of the table's axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..code.lines import Forward, Instruction, Literal, Operand, PeOperand, Special, Step
from ..code.nest import Nest, whole_runs
from ..graph.digits import Part, parts
from ..graph.graph import Location, MNGraph, MNNode
from ..graph.layout import UNIT_LEVELS, Broadcast, Layout, Layouts, Level
from ..machine import WORDS_PER_LONG, Target
from .base import Cut, Layer, Picks, Placement, layout_of, misfits, operand_addresses
from .data_movement import MOVED
from .default_layout import built, closed, dense, small, whole_layout
from .scratch import Scratch, vector

#: A layout of copies on all units.
_EVERYWHERE = Layout((), tuple(Broadcast(level) for level in UNIT_LEVELS))

_FILL = 3  # steps that fill T, with the gap behind them
_LAST, _ONE = 0, 1  # registers: the last index, and the shift from long words to words


class Gather(Picks):
    """``result[.., i.., ..] = table[.., index[i..], ..]``."""

    op = "Gather"
    dtypes = MOVED
    attributes = frozenset({"axis"})
    rigid = True

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Spread the result over the units, the table's axes first; the operands follow."""
        result = node.outputs[0]
        if result in hints:
            found = self._around(node, graph, target, hints[result])
            if found is not None and small(found.values(), target):
                return found
        ways = []
        for spread in self._spreads(node, graph, target):
            found = self._around(node, graph, target, spread)
            if found is not None:
                ways.append(found)
                if small(found.values(), target):
                    return found
        return min(ways, key=lambda one: sum(x.num_lw(target.cycles) for x in one.values()))

    def _spreads(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[Layout]:
        """Yield layouts of the result in which the axes of the table get units first.

        The last layout uses no units: it is possible with any operands.
        """
        out = graph.values[node.outputs[0]]
        _, index = _axes(node, graph)
        # Units are given out from the last axis on.
        order = sorted(range(len(out.shape)), key=lambda axis: axis not in index)
        shape = tuple(out.shape[axis] for axis in order)
        for padded in (False, True):
            whole = whole_layout(shape, out.dtype, target, padded=padded)
            placed = dict(zip(order, parts(whole, shape), strict=True))
            made = built(out.shape, dense(placed), whole, out.dtype, target)
            if made is not None:
                yield made
        runs = {a: [Part(1, size, Level.ADDR, 0)] for a, size in enumerate(out.shape) if size > 1}
        made = built(out.shape, dense(runs), _EVERYWHERE, out.dtype, target)
        assert made is not None
        yield made

    def _around(
        self, node: MNNode, graph: MNGraph, target: Target, wanted: Layout
    ) -> Layouts | None:
        """Return the layouts for layout ``wanted`` of the result; index axes get no W digits."""
        table, index, out = (graph.values[n] for n in (*node.inputs, node.outputs[0]))
        table_axes, spread = _axes(node, graph)
        index_axes = [axis for axis in spread if axis is not None]
        placed = dict(enumerate(parts(wanted, out.shape)))
        if any(p.level is Level.W for axis in index_axes for p in placed[axis]):
            placed = {
                axis: closed([p for p in found if p.level is not Level.W], out.shape[axis])
                for axis, found in placed.items()
            }
        own = {place: placed[axis] for place, axis in enumerate(index_axes)}
        rows = {
            place: [] if axis is None else placed[axis] for place, axis in enumerate(table_axes)
        }
        made = {
            node.outputs[0]: built(out.shape, dense(placed), wanted, out.dtype, target),
            node.inputs[1]: built(index.shape, dense(own), _EVERYWHERE, index.dtype, target),
            node.inputs[0]: built(
                table.shape, self._rows(node, graph, rows), _EVERYWHERE, table.dtype, target
            ),
        }
        if any(layout is None for layout in made.values()):
            return None
        return {name: layout for name, layout in made.items() if layout is not None}

    def _rows(
        self, node: MNNode, graph: MNGraph, placed: Mapping[int, list[Part]]
    ) -> dict[int, list[Part]]:
        """Return the table's parts: the picked axis first, then the other axes."""
        axis, size = _picked(node, graph)
        out = {}
        for place, found in dense(placed).items():
            out[place] = [
                Part(p.lo, p.size, p.level, p.stride * size if p.level is Level.ADDR else p.stride)
                for p in found
            ]
        out[axis] = [Part(1, size, Level.ADDR, 1)] if size > 1 else []
        return out

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield all axes but the picked axis."""
        table, index = _axes(node, graph)
        out = node.outputs[0]
        for name, along in ((node.inputs[0], table), (node.inputs[1], index)):
            for place, axis in enumerate(along):
                if axis is not None and graph.values[out].shape[axis] > 1:
                    yield Cut(((name, place), (out, axis)))

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Keep the table in LM0, where the T register reaches it."""
        return Placement((Location.LM0, Location.LM1), (Location.LM1,), mirrors=False)

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield wrong memories, a picked axis that is no run of addresses, units that differ."""
        table, index, out = (graph.values[n] for n in (*node.inputs, node.outputs[0]))
        places = (table.location, index.location, out.location)
        if places != (Location.LM0, Location.LM1, Location.LM1):
            yield "a table outside of LM0, or others outside of LM1"
        axis, size = _picked(node, graph)
        found = parts(layout_of(table), table.shape)[axis]
        if found != ([Part(1, size, Level.ADDR, 1)] if size > 1 else []):
            yield f"axis {axis} of `{table.name}` that is not one run of long words"
        frame = layout_of(out)
        for value, along in zip((table, index), _axes(node, graph), strict=True):
            problem = misfits(frame, layout_of(value), along, target)
            if problem is not None:
                yield f"`{value.name}`: {problem}"
        _, own = _axes(node, graph)
        units = [sub for axis in own if axis is not None for sub in frame.axes[axis]]
        if any(sub.level is Level.W for sub in units):
            yield f"`{out.name}`: an axis of the index on words"

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code: fill T with a vector of indices, then copy the long words it picks."""
        table, index, out = (graph.values[n] for n in (*node.inputs, node.outputs[0]))
        cycles = target.cycles
        _, size = _picked(node, graph)
        constants = Scratch("grf1")
        for at, bits in ((_LAST, size - 1), (_ONE, (WORDS_PER_LONG - 1).bit_length())):
            yield _step("imm", (Literal(bits),), vector(constants, (at,) * cycles))
        width = target.words("t") // cycles
        register = PeOperand("t", tuple(width * cycle for cycle in range(cycles)))
        nowhere, before = Special("nowrite"), Forward("alu")
        for asked, words in _work(node, graph, target):
            last, one = (vector(constants, (at,) * cycles) for at in (_LAST, _ONE))
            yield _step("uimin", (vector(index, asked), last), nowhere)
            yield _step("ilsl", (before, one), register)
            for goal, source in words:
                here = vector(table, source)
                picked = PeOperand(here.memory, here.offsets, here.value, indirect=True)
                yield _step("lpassa", (picked,), vector(out, goal))


#: The long words of the index in T; pairs of vectors: long words of the result, and their addresses
#: in the table for index 0.
_Vectors = tuple[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]]]


def _work(node: MNNode, graph: MNGraph, target: Target) -> Iterator[_Vectors]:
    """Yield the copies for one filling of T: for several indices, or several words of one."""
    table, index, out = (graph.values[n] for n in (*node.inputs, node.outputs[0]))
    frame, cycles, words = layout_of(out), target.cycles, out.num_lw or 0
    sources, asked = (
        operand_addresses(frame, layout_of(value), along, words, value.num_lw or 0).tolist()
        for value, along in zip((table, index), _axes(node, graph), strict=True)
    )
    by_index: dict[int, list[tuple[int, int]]] = {}
    for goal in range(words):
        by_index.setdefault(asked[goal], []).append((goal, sources[goal]))
    places = sorted(by_index)
    each = max(len(found) for found in by_index.values())
    several = -(-len(places) // cycles) * (each + _FILL)
    if several <= len(places) * (-(-each // cycles) + _FILL):
        for now in whole_runs(places, cycles):
            # Long words that fill the last vector may give one index more than the others.
            rows = [whole_runs(by_index[place], each)[0] for place in now]
            yield (
                tuple(now),
                [
                    (tuple(row[at][0] for row in rows), tuple(row[at][1] for row in rows))
                    for at in range(each)
                ],
            )
        return
    for place in places:
        vectors = whole_runs(by_index[place], cycles)
        pairs = [(tuple(g for g, _ in part), tuple(s for _, s in part)) for part in vectors]
        yield (place,) * cycles, pairs


def _picked(node: MNNode, graph: MNGraph) -> tuple[int, int]:
    """Return the picked axis of the table, and its size."""
    shape = graph.values[node.inputs[0]].shape
    axis = int(str(dict(node.attributes).get("axis", 0))) % len(shape)
    return axis, shape[axis]


def _axes(node: MNNode, graph: MNGraph) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Return the axis of the result for every axis of the table and of the index."""
    axis, _ = _picked(node, graph)
    inner = len(graph.values[node.inputs[1]].shape)
    rank = len(graph.values[node.inputs[0]].shape)
    table = tuple(
        None if place == axis else place if place < axis else place + inner - 1
        for place in range(rank)
    )
    return table, tuple(range(axis, axis + inner))


def _step(mnemonic: str, sources: tuple[Operand, ...], goal: Operand) -> Step:
    return Step((Instruction("alu", mnemonic, sources, (goal,)),))


LAYERS: tuple[Layer, ...] = (Gather(),)
