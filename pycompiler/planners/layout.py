"""The layout planner for graphs that need no layout switch.

Axes that meet in an operator form a *class*: they get the same digits everywhere. Two classes
*meet* when one operator works over both; then they may not share a digit of the machine. The
machine's digits are the prime factors of its counts, so that any set of them leaves a set that
copies can fill. A value is copied on every digit its own axes do not have.

Classes are served from the largest operator down. Each digit goes to the axis it divides evenly,
minor axes first, else to the axis it wastes least on; what is left of an axis is Addr.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ..graph.graph import MNGraph, MNNode, MNValue, Stage
from ..graph.layout import UNIT_LEVELS, Broadcast, Layout, Level, SubAxis
from ..layers.base import Frame
from ..layers.registry import LAYERS
from ..machine import Target


@dataclass(frozen=True)
class Digit:
    """One prime factor of a level's count: ``size`` coordinates, ``stride`` apart."""

    level: Level
    size: int
    stride: int


@dataclass(eq=False)
class AxisClass:
    """Axes that share their digits; ``digits`` run from minor to major, ``rest`` is for Addr."""

    size: int
    rest: int
    digits: list[Digit] = field(default_factory=list)
    placed: bool = False


def machine_digits(target: Target, words: int) -> tuple[Digit, ...]:
    """All digits of the machine in the order they are given out: words, PEs, MABs, L1Bs, L2Bs."""
    counts = [(Level.W, words)]
    counts += [(lv, target.level_range[lv.value]) for lv in reversed(UNIT_LEVELS)]
    return tuple(
        Digit(level, size, stride) for level, count in counts for size, stride in _primes(count)
    )


def _primes(count: int) -> Iterator[tuple[int, int]]:
    """Prime factors of ``count`` and the product of those before each."""
    stride, factor = 1, 2
    while count > 1:
        while count % factor:
            factor += 1
        yield factor, stride
        stride, count = stride * factor, count // factor


def plan_layouts(graph: MNGraph, target: Target) -> MNGraph:
    """Set layout and num_lw of every value that the device touches."""
    on_device = graph.device_values()
    plan = _Plan(graph, target)
    values = {name: plan.lay_out(graph.values[name]) for name in sorted(on_device)}
    return graph.with_values(values, stage=Stage.LAYOUT)


class _Plan:
    def __init__(self, graph: MNGraph, target: Target):
        self.graph, self.target = graph, target
        self.parent: dict[tuple[str, int], tuple[str, int]] = {}
        self.frames: list[tuple[MNNode, Frame]] = []
        for node in graph.device_nodes():
            frame = LAYERS[node.op].frame(node, graph)
            self.frames.append((node, frame))
            for name, axes in frame.values:
                for axis, along in enumerate(axes):
                    if along is not None and frame.shape[along] > 1:
                        self._join((name, axis), (f"{node.name}\n", along))
        self.classes: dict[tuple[str, int], AxisClass] = {}
        self.meets: dict[AxisClass, set[AxisClass]] = {}
        # Elements per long word of the values of each class. Where they differ, words of one
        # value do not lie beside words of another: such classes stay off the W level.
        self.widths: dict[AxisClass, set[int]] = {}
        # Larger operators first; the order of the graph decides between equals.
        for node, frame in sorted(self.frames, key=lambda item: -prod(item[1].shape)):
            self._classes_of(node, frame)
        for node, frame in sorted(self.frames, key=lambda item: -prod(item[1].shape)):
            self._spread(self._classes_of(node, frame), node)

    # -- classes -----------------------------------------------------------------------------

    def _find(self, axis: tuple[str, int]) -> tuple[str, int]:
        root = axis
        while self.parent.get(root, root) != root:
            root = self.parent[root]
        while self.parent.get(axis, axis) != root:
            self.parent[axis], axis = root, self.parent[axis]
        return root

    def _join(self, one: tuple[str, int], other: tuple[str, int]) -> None:
        self.parent[self._find(one)] = self._find(other)

    def _classes_of(self, node: MNNode, frame: Frame) -> list[AxisClass]:
        """List the classes of the frame's axes longer than 1, minor first; note that they meet."""
        found: list[AxisClass] = []
        for axis in reversed(range(len(frame.shape))):
            size = frame.shape[axis]
            if size > 1:
                root = self._find((f"{node.name}\n", axis))
                found.append(self.classes.setdefault(root, AxisClass(size, size)))
        widths = {self.graph.values[name].dtype.words_per_long for name, _ in frame.values}
        for one in found:
            self.meets.setdefault(one, set()).update(other for other in found if other is not one)
            self.widths.setdefault(one, set()).update(widths)
        return found

    # -- digits ------------------------------------------------------------------------------

    def _spread(self, classes: list[AxisClass], node: MNNode) -> None:
        """Give digits to the classes of one operator that have none yet."""
        new = [one for one in classes if not one.placed]
        widths = set().union(*(self.widths[one] for one in classes))
        packed = widths.pop() if len(widths) == 1 else 1
        for digit in machine_digits(self.target, packed):
            share = prod(one.rest for one in classes)
            # One vector per PE is the least a PE works on: more PEs would only make copies.
            if digit.level is not Level.W and share <= self.target.cycles:
                break
            free = [one for one in new if one.rest > 1 and self._free(one, digit)]
            even = [one for one in free if one.rest % digit.size == 0]
            if not free:
                continue
            chosen = even[0] if even else max(free, key=lambda one: one.rest)
            chosen.digits.append(digit)
            chosen.rest = -(-chosen.rest // digit.size)
        for one in new:
            one.placed = True

    def _free(self, one: AxisClass, digit: Digit) -> bool:
        return all(digit not in other.digits for other in self.meets[one])

    # -- layouts -----------------------------------------------------------------------------

    def lay_out(self, value: MNValue) -> MNValue:
        """``value`` with the layout its classes give it."""
        axes: list[tuple[SubAxis, ...]] = []
        stride, used = 1, set[Digit]()
        for axis in reversed(range(len(value.shape))):
            found = self.classes.get(self._find((value.name, axis)))
            if found is None:
                axes.append(())
                continue
            used.update(found.digits)
            subaxes = _merged((d.size, d.level, d.stride) for d in found.digits)
            if found.rest > 1:
                subaxes.append(SubAxis(found.rest, Level.ADDR, stride))
                stride *= found.rest
            axes.append(tuple(reversed(subaxes)))
        words = value.dtype.words_per_long
        copies: list[Broadcast] = []
        for level in (Level.W, *reversed(UNIT_LEVELS)):
            digits = [d for d in machine_digits(self.target, words) if d.level is level]
            free = [d for d in digits if d not in used]
            if free and len(free) == len(digits):
                copies.append(Broadcast(level))
            else:
                runs = _merged((d.size, d.level, d.stride) for d in free)
                copies += [Broadcast(run.level, run.size, run.stride) for run in runs]
        layout = Layout(tuple(reversed(axes)), tuple(copies))
        return replace(value, layout=layout, num_lw=layout.num_lw(self.target.cycles))


def _merged(digits: Iterable[tuple[int, Level, int]]) -> list[SubAxis]:
    """Digits from minor to major, neighbours that continue each other made one."""
    out: list[SubAxis] = []
    for size, level, stride in digits:
        last = out[-1] if out else None
        if last is not None and last.level is level and last.stride * last.size == stride:
            out[-1] = SubAxis(last.size * size, level, last.stride)
        else:
            out.append(SubAxis(size, level, stride))
    return out
