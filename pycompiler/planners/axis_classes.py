"""Axis classes: the layouts of values that elementwise operators and reductions connect.

Axes with the same index in an operator form a *class*: they get the same digits everywhere. Two
classes *meet* when one operator has axes of both; then they may not share a digit of the machine.
The machine's digits are the prime factors of its counts. Digits that no axis of a value uses hold
copies of the value.

Classes get their digits operator by operator, the largest operator first. A digit is given to an
axis whose length it divides, minor axes first. If there is none, the longest axis gets it, because
that axis needs the least padding. The rest of an axis is in Addr.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from ..graph.digits import PrimeDigit, all_ranges, copy_entries, machine_digits, merged, primes
from ..graph.disjoint_sets import DisjointSets
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode, MNValue
from ..graph.layout import Layout, Level, SubAxis
from ..layers.base import Frame
from ..layers.operators import LAYERS
from ..layers.switch.layer import SWITCH
from ..machine import Target
from .halves import word_axes
from .switch_insertion import is_anchored

#: The ``order`` of classes that no layout has put in order.
_UNORDERED = 1 << 30


@dataclass(eq=False)
class AxisClass:
    """Axes that share their digits.

    ``digits`` run from minor to major, and ``rest`` is the size that is left for Addr. ``placed``
    says that the digits are decided. ``exact`` says that a frame lists one of the axes as exact
    (see :class:`Frame`). ``number`` counts the classes in the order of creation. Classes with a
    smaller ``order`` have smaller strides in Addr; among equals, later axes of a value do.
    """

    size: int
    rest: int
    digits: list[SubAxis] = field(default_factory=list)
    placed: bool = False
    exact: bool = False
    number: int = 0
    order: int = _UNORDERED


@dataclass(eq=False)
class Region:
    """Classes that meet, the nodes that work over them, and the values with axes in them."""

    classes: list[AxisClass] = field(default_factory=list)
    nodes: list[MNNode] = field(default_factory=list)
    values: dict[str, None] = field(default_factory=dict)


class Classes:
    """The classes of a graph's elementwise operators and reductions, and their digits."""

    def __init__(self, graph: MNGraph, target: Target):
        self.graph, self.target = graph, target
        self.joined = DisjointSets[tuple[str, int]]()
        self.frames: list[tuple[MNNode, Frame]] = []
        for node in graph.device_nodes():
            if is_anchored(node) or node.op == SWITCH:
                continue
            frame = LAYERS[node.op].frame(node, graph)
            self.frames.append((node, frame))
            for name, axes in frame.values:
                for axis, along in enumerate(axes):
                    if along is not None and frame.shape[along] > 1:
                        self.joined.join((name, axis), (f"{node.name}\n", along))
        self.classes: dict[tuple[str, int], AxisClass] = {}
        self.meets: dict[AxisClass, set[AxisClass]] = {}
        # For each class, the numbers of elements per long word of its values. If they differ, the
        # words of one value cannot lie as those of another, and the class gets no digit on W.
        self.widths: dict[AxisClass, set[int]] = {}
        # Axes of halves that get no digit on W: nothing moves a single half within a long word.
        self.unpacked: set[AxisClass] = set()
        # The classes of each operator. Larger operators first; the graph's order decides between
        # equals.
        self._own = {
            node.name: self._classes_of(node, frame)
            for node, frame in sorted(self.frames, key=lambda item: -prod(item[1].shape))
        }
        self._axes: dict[str, tuple[AxisClass | None, ...]] = {}
        self._turn = {name: turn for turn, name in enumerate(self._own)}
        for name, kept in word_axes(graph).items():
            for axis, found in enumerate(self._at(graph.values[name])):
                if found is not None and axis != kept:
                    self.unpacked.add(found)

    def spread(self, nodes: Collection[MNNode] | None = None) -> None:
        """Give digits to the axes of ``nodes``, or of all nodes, larger operators first."""
        names = self._own if nodes is None else [n.name for n in nodes if n.name in self._own]
        for name in sorted(names, key=self._turn.__getitem__):
            self._spread(self._own[name])

    def adopt(self, value: MNValue, layout: Layout, only: Collection[int] | None = None) -> bool:
        """Give the axes of ``value`` the digits of ``layout``; False if they cannot have them.

        With ``only``, only the axes with these numbers change.
        """
        known = set(machine_digits(self.target, value.dtype.words_per_long))
        wanted: dict[AxisClass, list[SubAxis]] = {}
        for axis, subs in enumerate(layout.axes):
            one = self._at(value)[axis]
            if one is None or (only is not None and axis not in only):
                continue
            if one.placed or one in wanted:
                return False
            found: list[SubAxis] = []
            for sub in reversed(subs):
                if sub.level is Level.ADDR:
                    found.append(SubAxis(sub.size, Level.ADDR, 0))
                    continue
                for digit in primes(sub.size):
                    found.append(SubAxis(digit.size, sub.level, sub.stride * digit.stride))
            if any(d.level is not Level.ADDR and d not in known for d in found):
                return False
            plain = len(self.widths[one]) > 1 or one in self.unpacked
            if plain and any(d.level is Level.W for d in found):
                return False
            wanted[one] = found
        for one, digits in wanted.items():
            one.digits, one.placed = digits, True
            one.rest = -(-one.size // prod(digit.size for digit in digits))
        if only is None:
            self._put_in_order(value, layout)
        return True

    def _put_in_order(self, value: MNValue, layout: Layout) -> None:
        """Give the classes of a value the order that its axes have in Addr."""
        strides = [
            min((sub.stride for sub in subs if sub.level is Level.ADDR), default=None)
            for subs in layout.axes
        ]
        known = sorted((stride, axis) for axis, stride in enumerate(strides) if stride is not None)
        for order, (_, axis) in enumerate(known):
            one = self._at(value)[axis]
            if one is not None:
                one.order = order

    def repeat(self, value: MNValue, region: Region) -> None:
        """Give what ``value`` has on each axis to the values of a region that have its shape.

        Only classes without digits get them. So all layers of a network that use the same mask get
        the same layouts.
        """
        for name in region.values:
            other = self.graph.values[name]
            if (other.shape, other.dtype) != (value.shape, value.dtype):
                continue
            for one, found in zip(self._at(value), self._at(other), strict=True):
                if one is None or found is None or found.placed or not one.placed:
                    continue
                alike = self.widths[found] == self.widths[one]
                units = [digit for digit in one.digits if digit.level is not Level.ADDR]
                if alike and all(self._free(found, digit) for digit in units):
                    found.digits, found.rest, found.placed = list(one.digits), one.rest, True
                    found.order = one.order

    # -- regions -----------------------------------------------------------------------------

    def regions(self) -> list[Region]:
        """Return the regions in graph order: the classes that meet, directly or through others."""
        found: dict[AxisClass, Region] = {}
        out: list[Region] = []
        for node, frame in self.frames:
            own = self._own[node.name]
            for one in own:
                if one not in found:
                    out.append(Region())
                    out[-1].classes += (reached := self._reached(one))
                    found |= dict.fromkeys(reached, out[-1])
            if own:
                found[own[0]].nodes.append(node)
                found[own[0]].values |= {
                    name: None for name, _ in frame.values if any(self._at(self.graph.values[name]))
                }
        return out

    def _reached(self, one: AxisClass) -> list[AxisClass]:
        reached, waiting = {one: None}, [one]
        while waiting:
            for other in sorted(self.meets[waiting.pop()], key=lambda c: c.number):
                if other not in reached:
                    reached[other] = None
                    waiting.append(other)
        return list(reached)

    def clear(self, region: Region) -> None:
        """Take the digits of the classes of a region away."""
        for one in region.classes:
            one.digits, one.rest, one.placed, one.order = [], one.size, False, _UNORDERED

    def digits_of(self, region: Region) -> tuple[object, ...]:
        """Return digits and order of the region's classes; they are equal for equal layouts."""
        local = [one for one in region.classes if one.rest > 1 or _has_addresses(one)]
        ranked = sorted(local, key=lambda one: one.order)
        return (*(tuple(one.digits) for one in region.classes), *(one.number for one in ranked))

    # -- classes -----------------------------------------------------------------------------

    def _classes_of(self, node: MNNode, frame: Frame) -> list[AxisClass]:
        """List the classes of the frame's axes longer than 1, minor first; note that they meet."""
        found: list[AxisClass] = []
        for axis in reversed(range(len(frame.shape))):
            size = frame.shape[axis]
            if size > 1:
                root = self.joined.root((f"{node.name}\n", axis))
                new = AxisClass(size, size, number=len(self.classes))
                found.append(self.classes.setdefault(root, new))
                found[-1].exact |= axis in frame.exact
        widths = {self.graph.values[name].dtype.words_per_long for name, _ in frame.values}
        for one in found:
            self.meets.setdefault(one, set()).update(other for other in found if other is not one)
            self.widths.setdefault(one, set()).update(widths)
        return found

    # -- digits ------------------------------------------------------------------------------

    def _spread(self, classes: list[AxisClass]) -> None:
        """Give digits to the classes of one operator that have none yet."""
        new = [one for one in classes if not one.placed]
        if not new:
            return
        widths = set().union(*(self.widths[one] for one in classes))
        packed = widths.pop() if len(widths) == 1 else 1
        for digit in machine_digits(self.target, packed):
            share = prod(one.rest for one in classes)
            # A PE works on at least one vector, so more PEs would only hold copies.
            if digit.level is not Level.W and share <= self.target.cycles:
                break
            free = [one for one in new if one.rest > 1 and self._free(one, digit)]
            if free:
                chosen = _taker(free, digit)
                chosen.digits.append(digit)
                chosen.rest = -(-chosen.rest // digit.size)
        for one in new:
            one.placed = True

    def _free(self, one: AxisClass, digit: SubAxis) -> bool:
        if digit.level is Level.W and one in self.unpacked:
            return False
        return all(digit not in other.digits for other in self.meets[one])

    # -- layouts -----------------------------------------------------------------------------

    def lay_out(self, names: Iterable[str]) -> dict[str, Layout]:
        """Return the layouts of values that follow from the digits of their classes."""
        keys = {n: (self._at(self.graph.values[n]), self.graph.values[n].dtype) for n in names}
        made = {key: self._made(*key) for key in dict.fromkeys(keys.values())}
        return {name: made[key] for name, key in keys.items()}

    def _at(self, value: MNValue) -> tuple[AxisClass | None, ...]:
        """Return the class of each axis of a value; None for axes without one."""
        if value.name not in self._axes:
            roots = (self.joined.root((value.name, axis)) for axis in range(len(value.shape)))
            self._axes[value.name] = tuple(self.classes.get(root) for root in roots)
        return self._axes[value.name]

    def _made(self, classes: Sequence[AxisClass | None], dtype: MNDtype) -> Layout:
        axes: list[tuple[SubAxis, ...]] = [()] * len(classes)
        words = dtype.words_per_long
        stride, used = 1, set[SubAxis]()
        own = [(axis, one) for axis, one in enumerate(classes) if one is not None][::-1]
        for axis, found in sorted(own, key=lambda item: item[1].order):
            subs: list[SubAxis] = []
            for digit in (*found.digits, SubAxis(found.rest, Level.ADDR, 0)):
                if digit.level is Level.ADDR or (digit.level is Level.W and words == 1):
                    # Elements as wide as a long word have no W level; their digit is in Addr.
                    if digit.size > 1:
                        subs.append(SubAxis(digit.size, Level.ADDR, stride))
                        stride *= digit.size
                else:
                    used.add(digit)
                    subs.append(digit)
            axes[axis] = tuple(reversed(merged(subs)))
        free: dict[Level, list[PrimeDigit]] = {}
        for digit in machine_digits(self.target, words):
            if digit not in used:
                free.setdefault(digit.level, []).append(PrimeDigit(digit.stride, digit.size))
        ranges = all_ranges(self.target.level_range, dtype)
        return Layout(tuple(axes), tuple(copy_entries(free, ranges)))


def _taker(free: Sequence[AxisClass], digit: SubAxis) -> AxisClass:
    """Return the class that gets a digit, of those that may have it."""
    even = [one for one in free if one.rest % digit.size == 0]
    if even:
        # An axis that is reduced is best kept within a PE (words are part of a PE).
        return min(even, key=lambda one: one.exact and digit.level is not Level.W)
    # Padding of a reduced axis must be filled, so other axes come first.
    return max(free, key=lambda one: (not one.exact, one.rest))


def _has_addresses(one: AxisClass) -> bool:
    return any(digit.level is Level.ADDR for digit in one.digits)
