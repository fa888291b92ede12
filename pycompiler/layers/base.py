"""The interface of a layer: the implementation of one operator on the device.

The helpers at the end compare layouts and compute addresses for all layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ..code.lines import Fragment
from ..code.nest import Nest, expand, stages
from ..cost.sequence import Stage, steps_of, waiting_steps
from ..graph.digits import agrees
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode, MNValue
from ..graph.layout import Layout, Layouts, Level, SubAxis, Ways
from ..graph.plan import Plan
from ..graph.verify import layout_ranges
from ..machine import IntArray, Target
from ..tolerance import MOVE


@dataclass(frozen=True)
class Frame:
    """The iteration space of a node, and the frame axis of each axis of its values.

    ``shape`` has the size of each frame axis, in elements. ``values`` pairs a value's name with one
    frame axis per axis of the value. The axis is None where the value has size 1 and is repeated.
    Axes in ``exact`` should have no padding: other axes get padding first.
    """

    shape: tuple[int, ...]
    values: tuple[tuple[str, tuple[int | None, ...]], ...]
    exact: tuple[int, ...] = ()


@dataclass(frozen=True)
class Placement:
    """The banks (LM0 or LM1) of the distinct inputs, in order, and of the outputs.

    An input that the layer reads in DRAM has the location DRAM. ``inplace`` is the index of the
    input that output 0 may overwrite. ``mirrors`` says that LM0 and LM1 may be exchanged.
    """

    inputs: tuple[Location, ...]
    outputs: tuple[Location, ...]
    inplace: int | None = None
    mirrors: bool = True


_Placed = TypeVar("_Placed", bound=Placement)


def mirrored(placement: _Placed) -> _Placed:
    """Return the placement with LM0 and LM1 exchanged, or unchanged if ``mirrors`` is false."""
    if not placement.mirrors:
        return placement
    other = {Location.LM0: Location.LM1, Location.LM1: Location.LM0}
    inputs, outputs = (
        tuple(other.get(bank, bank) for bank in banks)
        for banks in (placement.inputs, placement.outputs)
    )
    return replace(placement, inputs=inputs, outputs=outputs)


@dataclass(frozen=True)
class Cut:
    """An axis along which a node may work slice by slice.

    ``axes`` names each value that has the axis, with the axis's number in that value. If the result
    lacks the axis, the operator ``joins`` combines the results of the slices. An axis may be longer
    than another one by a factor: then its slices are.
    """

    axes: tuple[tuple[str, int], ...]
    joins: str | None = None


class Layer(ABC):
    """The implementation of one operator on the device. Stateless; one object per operator.

    The pass ``side`` calls :meth:`unsupported`, the layout planner :meth:`layouts`,
    :meth:`candidates`, :meth:`frame` and :meth:`cost`, the time-slice planner :meth:`cuts`, the
    schedulers :meth:`place`, the pass ``emit`` :meth:`emit`. The verifier, the planners and node
    simulation call :meth:`refusals`.
    """

    #: ONNX operator name (or the graph's own name, for transfers)
    op: str
    #: device dtypes that the operator computes in; a layer that only moves elements takes all
    dtypes: frozenset[MNDtype] = frozenset(MNDtype) - {MNDtype.UNKNOWN}
    #: whether it also works on halves that the compiler stores between convolutions
    halves: bool = False
    #: attributes that the operator understands
    attributes: frozenset[str] = frozenset()
    #: row of the tolerance table
    error: str = MOVE
    #: a restriction, shown on the page of operators
    note: str = ""
    #: whether the layer names the layouts of its operands itself (see :meth:`layouts`)
    anchored: bool = False
    #: whether a value that an anchored layer reads twice gets two layouts
    apart: bool = False
    #: whether an anchored layer compares all digits of its operands, also those that no index uses
    rigid: bool = False
    #: the schedules that the plan of a node may name; without any, a node has no plan
    schedules: tuple[type[Plan], ...] = ()
    #: places of the inputs that the layer reads in DRAM
    in_dram: frozenset[int] = frozenset()

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Return why the node cannot run on the device, None if it can.

        ``dtypes`` are the device dtypes of its inputs, then of its outputs.
        """
        for name, _ in node.attributes:
            if name not in self.attributes:
                return f"{self.op} has no attribute `{name}` on the device"
        for dtype in dtypes:
            if dtype not in self.dtypes:
                known = ", ".join(sorted(d.value for d in self.dtypes))
                return f"{self.op} computes in {known} on the device, not in {dtype.value}"
        return None

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Return the layouts of the operands of an anchored node.

        ``hints`` are the layouts that inputs have. An operand that may have any layout is left
        out.
        """
        return {}

    def candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield layouts of all operands of an anchored node, close to ``hints``.

        Hints are layouts of inputs and outputs that the neighbours could produce or would accept.
        """
        yield self.layouts(node, graph, target, hints)

    def across_groups(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield layouts of all operands of an anchored node whose sums cross groups, or go there.

        They are candidates beside those of :meth:`candidates`.
        """
        return iter(())

    def late_candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield more layouts of all operands, close to ``hints``.

        They are tried at the end, when the neighbours have the layouts that are chosen.
        """
        return iter(())

    def variants(self, node: MNNode, graph: MNGraph, target: Target, layouts: Layouts) -> Ways:
        """Yield other layouts of the results of an anchored node, beside those of its operands.

        They are tried at the end, when operands have the layouts that are chosen.
        """
        return iter(())

    @abstractmethod
    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Return the iteration space. Value axes on one frame axis must have equal digits."""

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes along which the node may work slice by slice."""
        frame = self.frame(node, graph)
        for number, size in enumerate(frame.shape):
            if size > 1:
                places = ((n, axes.index(number)) for n, axes in frame.values if number in axes)
                yield Cut(tuple(places))

    @abstractmethod
    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Return the banks that the node prefers for its operands and results."""

    def steps_in(
        self, node: MNNode, graph: MNGraph, placement: Placement, target: Target
    ) -> int | None:
        """Return the steps of the code if operands and results lie in these banks.

        None if the layer accepts only the banks of :meth:`place` and their mirror image.
        """
        return None

    @abstractmethod
    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield the reasons why this layer does not accept the layouts and locations of a node."""

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code of the node. Its addresses are relative to those of the values."""
        return ()

    def scattered(self, node: MNNode) -> bool:
        """Whether merging places the node's lines one by one, with lines of others between them."""
        return False

    def stages(self, node: MNNode, graph: MNGraph, target: Target) -> list[Stage]:
        """Return what the code takes, stage by stage."""
        found = stages(self.code(node, graph, target), target)
        return [one.packed() for one in found] if self.scattered(node) else found

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Return the steps of the node's code, with hazards and waits for MVs.

        MVs of nodes whose lines are scattered run ahead.
        """
        count = steps_of if self.scattered(node) else waiting_steps
        steps = count(stages(self.code(node, graph, target), target), target)
        return steps + self.hazards(node, graph, target)

    def hazards(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Return the steps that hazards between lines take, as far as the estimate has them."""
        return 0

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return the lines of the node's code."""
        return Fragment(tuple(expand(self.code(node, graph, target))))


class UntiedAxes(Layer):
    """A layer whose operands have layouts of their own."""

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Return a frame without axes: the layouts are independent of each other."""
        return Frame((), ())


class Picks(UntiedAxes):
    """A layer that picks rows of a table, its first operand, by integers, its second one."""

    note = "an index past the end picks the last row"
    anchored = True
    apart = True

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Return why the node cannot run on the device; None if it can."""
        if node.inputs[0] == node.inputs[1]:
            return f"{self.op} from the index itself"
        if dtypes[1] not in (MNDtype.INT, MNDtype.LONG):
            return f"{self.op} by indices of {dtypes[1].value}"
        return super().unsupported(node, graph, (dtypes[0], dtypes[2]))


class SameAxes(Layer):
    """A layer whose result has the axes of its only input."""

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Return a frame with the axes of the input."""
        shape = graph.values[node.inputs[0]].shape
        axes = tuple(range(len(shape)))
        return Frame(shape, ((node.inputs[0], axes), (node.outputs[0], axes)))


class OtherLm(Layer):
    """A layer that reads one LM and writes the other."""

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Read one LM, write the other: every step uses both. Further results are in DRAM."""
        aside = (Location.DRAM,) * (len(node.outputs) - 1)
        return Placement((Location.LM0,), (Location.LM1, *aside))


def banks_of(node: MNNode, place: Placement) -> dict[str, Location]:
    """Map the distinct inputs of a node and its outputs to their banks."""
    names = distinct([name for name in node.inputs if name])
    return dict(zip((*names, *node.outputs), (*place.inputs, *place.outputs), strict=False))


def layout_of(value: MNValue) -> Layout:
    """Return the layout of a planned value."""
    assert value.layout is not None, f"`{value.name}` has no layout"
    return value.layout


def outside_lm(names: Iterable[str], graph: MNGraph) -> Iterator[str]:
    """Yield a refusal if one of the values is not in LM."""
    if any(graph.values[n].location not in (Location.LM0, Location.LM1) for n in names if n):
        yield "an operand that is not in LM"


def not_apart(source: MNValue, result: MNValue) -> Iterator[str]:
    """Yield a refusal unless one of the values is in LM0 and the other in LM1."""
    if {source.location, result.location} != {Location.LM0, Location.LM1}:
        yield "operands that are not one in LM0 and one in LM1"


def other_layouts(wanted: Layouts, graph: MNGraph, target: Target) -> Iterator[str]:
    """Yield a refusal for each value whose elements do not lie as in its wanted layout."""
    for value, layout in ((graph.values[name], layout) for name, layout in wanted.items()):
        own = layout_of(value)
        if not agrees(own, layout, value.shape, value.dtype, target):
            yield f"`{value.name}` in layout {own}, only in {layout}"


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without repetitions, in order."""
    return tuple(dict.fromkeys(names))


def digits(axis: Sequence[SubAxis]) -> tuple[SubAxis, ...]:
    """Return the subaxes of an axis that have more than one digit value."""
    return tuple(sub for sub in axis if sub.size > 1)


def misfits(
    frame: Layout, operand: Layout, axes: Sequence[int | None], target: Target
) -> str | None:
    """Return why the operand's elements are not on the units that need them; None if they are.

    Along shared axes the digits must be the same, except for the strides of Addr digits. Along
    other axes the operand is repeated, so it must have copies on the unit digits of the frame.
    """
    shared = _shared(operand, axes)
    for number, subs in enumerate(frame.axes):
        wanted = digits(subs)
        if number in shared:
            have = shared[number]
            same = len(have) == len(wanted) and all(
                (a.size, a.level) == (b.size, b.level)
                and (a.stride == b.stride or a.level is Level.ADDR)
                for a, b in zip(have, wanted, strict=True)
            )
            if not same:
                return f"axis {number}: {SubAxis.__name__} {have} for {wanted}"
        else:
            for sub in wanted:
                if sub.level is not Level.ADDR and not _copied(operand, sub, target):
                    return f"axis {number}: not copied on {sub}"
    return None


def _shared(operand: Layout, axes: Sequence[int | None]) -> dict[int, tuple[SubAxis, ...]]:
    """Return the operand's digits per axis of the frame, for axes on which it has digits.

    An axis without digits has one element, which is repeated. The frame may still have digits on
    that axis: if the last time slice has one element, all their values but the first are padding.
    """
    found = zip(axes, map(digits, operand.axes), strict=True)
    return {axis: own for axis, own in found if axis is not None and own}


def _copied(layout: Layout, sub: SubAxis, target: Target) -> bool:
    ranges = {**layout_ranges(target), Level.W: sub.size, Level.TIME: 1, Level.ADDR: 0}
    for entry in layout.copies(ranges):
        within = (
            sub.stride % entry.stride == 0 and sub.stride * sub.size <= entry.stride * entry.size
        )
        if entry.level is sub.level and within:
            return True
    return sub.level is Level.W and not layout.on(Level.W)


def words_met(frame: Layout, operand: Mapping[int, Sequence[SubAxis]]) -> tuple[IntArray, IntArray]:
    """Return the long words in a PE that a frame's digits reach, and those of an operand there.

    ``operand`` has its digits for axes of the frame; an axis that is missing moves none.
    """
    at, meets = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for number, subs in enumerate(frame.axes):
        own = operand.get(number)
        for index, sub in enumerate(digits(subs)):
            if sub.level is Level.ADDR:
                digit = np.arange(sub.size, dtype=np.int64)
                stride = own[index].stride if own is not None else 0
                at = (at[:, None] + digit * sub.stride).reshape(-1)
                meets = (meets[:, None] + digit * stride).reshape(-1)
    return at, meets


def operand_addresses(
    frame: Layout, operand: Layout, axes: Sequence[int | None], num_lw: int, operand_lw: int
) -> IntArray:
    """Return, for every long word of the frame in a PE, the long word of the operand for it.

    ``num_lw`` and ``operand_lw`` are the long words of both per PE. Long words after those that the
    frame's digits reach only fill the last vector. They continue the pattern as long as the operand
    has long words.
    """
    at, meets = words_met(frame, _shared(operand, axes))
    out = np.zeros(num_lw, dtype=np.int64)
    out[at] = meets
    end = int(at.max()) + 1
    step = int(out[end - 1] - out[end - 2]) if end > 1 else int(num_lw == operand_lw)
    for word in range(end, num_lw):
        following = int(out[word - 1]) + step
        out[word] = following if following < operand_lw else 0
    return out
