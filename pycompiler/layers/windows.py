"""Reductions over sliding windows along one axis: MaxPool and AveragePool.

The axis lies in Addr, in the input and in the result. So a tap of a window is an address, and
nothing is copied: each long word of the result takes one step per tap. Padding costs nothing,
because a window leaves out its taps outside of the input. A pool over several axes is written as
pools over one axis each (:mod:`pycompiler.pfvm.composites.pooling`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..code.lines import Forward, Line, Literal, Operand, PeOperand, Special, single_step
from ..code.nest import Nest, whole_runs
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode
from ..machine import Target
from ..pfvm.windows import ALONG_ONE_AXIS, HOST, AxisWindow, windows_of
from ..tolerance import MOVE, SUM
from .copied_elements import Picked, Selection
from .copy_operators import copied_addresses
from .picks import SpreadCopy
from .scratch import Scratch, vector


@dataclass(frozen=True)
class _Joining:
    """The instruction that joins two taps, and the one that takes the first."""

    slot: str
    join: str
    take: str


class Window(SpreadCopy):
    """A pool whose windows lie along one axis. ``average`` divides by the number of taps."""

    def __init__(self, op: str, joining: Mapping[MNDtype, _Joining], error: str, *, average: bool):
        super().__init__(op, _first_taps, ALONG_ONE_AXIS[op])
        self.dtypes = frozenset(joining) - {MNDtype.HALF}
        self.halves = MNDtype.HALF in joining
        self.joining, self.error, self.average = joining, error, average

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Return why the node cannot run on the device; None if it can."""
        if len(node.outputs) > 1:
            return f"{self.op} with the output of indices in this form"
        if HOST in dict(node.attributes) or _window(node, graph) is None:
            long = "an axis longer than half of LM"
            return f"{self.op} over {long}, or with a window that holds no element"
        return super().unsupported(node, graph, dtypes)

    def blocks(self, node: MNNode, graph: MNGraph) -> dict[int, int]:
        """Return the axis of the windows; its elements are read one by one."""
        found = _window(node, graph)
        assert found is not None
        return {found[0]: 1}

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code: a step per tap for every vector of the result."""
        source, result = (graph.values[n] for n in (node.inputs[0], node.outputs[0]))
        found = _window(node, graph)
        assert found is not None
        factors = {1 / count for count in found[1].counts} if self.average else set()
        registers = {factor: at for at, factor in enumerate(sorted(factors))}
        if factors - {1.0}:
            yield from (_constant(value, at, target) for value, at in registers.items())
        for rows in _rows(node, graph, self.average):
            for part in whole_runs(rows, target.cycles):
                goal = vector(result, tuple(row.goal for row in part))
                at = tuple(registers.get(row.factor, 0) for row in part)
                scale = vector(Scratch("grf1"), at) if factors - {1.0} else None
                taps = [
                    vector(source, tuple(row.taps[tap] for row in part))
                    for tap in range(len(part[0].taps))
                ]
                yield from _joined(self.joining[source.dtype], taps, goal, scale)


def _joined(
    joining: _Joining, taps: Sequence[PeOperand], goal: PeOperand, scale: PeOperand | None
) -> Iterator[Line]:
    """Yield the lines that join the taps of a vector."""
    slot, nowhere = joining.slot, Special("nowrite")
    for number, tap in enumerate(taps):
        last: Operand = goal if scale is None and number == len(taps) - 1 else nowhere
        if not number:
            yield single_step(slot, joining.take, (tap,), last)
        else:
            yield single_step(slot, joining.join, (tap, Forward(slot)), last)
    if scale is not None:
        yield single_step("mau", "fvmul", (Forward(slot), scale), goal)


@dataclass(frozen=True)
class _Row:
    """A long word of the result: its address, the addresses of its taps, and its factor."""

    goal: int
    taps: tuple[int, ...]
    factor: float


def _window(node: MNNode, graph: MNGraph) -> tuple[int, AxisWindow] | None:
    """Return the axis of the windows and the windows; None if there are several such axes."""
    shape, goal = (graph.values[n].shape for n in (node.inputs[0], node.outputs[0]))
    windows = windows_of(dict(node.attributes), shape[2:], goal[2:])
    axes = [axis for axis, window in enumerate(windows) if not window.plain]
    if len(axes) > 1 or not windows or any(not window.whole for window in windows):
        return None
    axis = axes[0] if axes else 0
    return axis + 2, windows[axis]


def _selection(window: AxisWindow, tap: int) -> Selection:
    places = window.taps[:, tap].tolist()
    source = tuple(0 if place >= 0 else -1 for place in places)
    return Selection(source, tuple(max(place, 0) for place in places))


def _first_taps(node: MNNode, graph: MNGraph, number: int) -> Picked:
    """Return the first tap of every window, which tells the axes that change."""
    found = _window(node, graph)
    assert found is not None
    axis, window = found
    rank = len(graph.values[node.outputs[0]].shape)
    return (tuple(range(rank)),), {axis: _selection(window, 0)}


def _rows(node: MNNode, graph: MNGraph, average: bool) -> Iterator[list[_Row]]:
    """Yield the long words of the result, those with equally many taps together."""
    found = _window(node, graph)
    assert found is not None
    axis, window = found
    along, _ = _first_taps(node, graph, 0)
    taps: dict[int, list[int]] = {}
    factors: dict[int, float] = {}
    for tap in range(window.taps.shape[1]):
        picked = {axis: _selection(window, tap)}
        for goal, at in copied_addresses(node, graph, 0, along, picked).get(0, ()):
            taps.setdefault(goal, []).append(at)
    if average:
        for count in set(window.counts):
            chosen = np.array([own == count for own in window.counts])
            sources = tuple(np.where(chosen, 0, -1).tolist())
            picked = {axis: Selection(sources, (0,) * len(sources))}
            for goal, _ in copied_addresses(node, graph, 0, along, picked).get(0, ()):
                factors[goal] = 1 / count
    groups: dict[int, list[_Row]] = {}
    for goal, own in sorted(taps.items()):
        groups.setdefault(len(own), []).append(_Row(goal, tuple(own), factors.get(goal, 1.0)))
    yield from groups.values()


def _constant(value: float, at: int, target: Target) -> Line:
    bits = int(np.float32(value).view(np.uint32))
    return single_step(
        "alu", "imm", (Literal(bits),), vector(Scratch("grf1"), (at,) * target.cycles)
    )


_MAX = {
    MNDtype.FLOAT: _Joining("alu", "fmax", "lpassa"),
    MNDtype.DOUBLE: _Joining("alu", "dmax", "lpassa"),
    MNDtype.HALF: _Joining("alu", "hmax", "lpassa"),
}
_SUM = {MNDtype.FLOAT: _Joining("mau", "fvadd", "fvpassa")}

LAYERS = (
    Window("MaxPool", _MAX, MOVE, average=False),
    Window("AveragePool", _SUM, SUM, average=True),
)
