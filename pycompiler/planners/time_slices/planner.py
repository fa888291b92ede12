"""The time-slice planner: what does not fit LM is worked on slice by slice.

Axes are cut by class (:mod:`.cut_classes`), so that a whole chain of operators works on one slice
before the next one comes. The planner lays out the graph again with axes as long as one slice: that
is how it knows what a slice needs. Cuts become finer until every node finds room for its operands.
An axis that a node reduces or contracts is cut last: what the slices leave is joined.

In DRAM a sliced value has a Time digit, the uppermost of its axis; its slices lie one behind the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Protocol

from ...errors import PycompilerError, error
from ...graph.graph import Location, MNGraph, MNNode, MNValue, TensorType
from ...layers.base import layout_of
from ...layers.dram_transfer_plan import plan_transfer
from ...layers.operators import LAYERS
from ...layers.switch.layer import SWITCH
from ...machine import Target
from ..overrides import Overrides, wanted_slices, whole_overrides
from .cut_classes import Axes, Axis
from .product_tiles import best_tiles
from .sliced_graph import TimeSlices, crowded, estimated_steps, excess, too_large, units

_ROUNDS = 60  # of cutting finer
_WASTE = 8  # slices may add one part in so many to an axis as padding
_TRIES = 4  # of cutting what has brought nothing again, each time twice as fine
_CHUNKS = 4  # transfers of fewer parts are not worth slices


class LayOut(Protocol):
    """Sets layouts and locations of a graph: at once, or with care if they are the ``last``.

    Without ``resolve`` switches have no passes yet.
    """

    def __call__(
        self, graph: MNGraph, overrides: Overrides, *, resolve: bool = True, last: bool = False
    ) -> MNGraph:
        """Return the graph. P0305 where a switch has no passes."""


#: What is wrong with slices: nodes, and by what factor they are too large.
Measure = Callable[["TimeSlices", Target, float], Iterator[tuple[float, MNNode]]]


def plan_time_slices(
    plain: MNGraph,
    planned: MNGraph | None,
    target: Target,
    lay_out: LayOut,
    *,
    mode: str = "auto",
    share: float = 1.0,
    overrides: Overrides | None = None,
) -> TimeSlices:
    """Return the slices of a graph; ``plain`` is ``planned`` before it had layouts.

    ``planned`` None means that the whole graph cannot be laid out.

    ``lay_out`` lays out a graph. ``share`` of LM may be used. ``mode`` ``fit`` cuts what does not
    fit, ``auto`` also what is faster in slices, ``off`` only what ``overrides`` say. What cannot be
    cut stays as it is, for the scheduler to refuse. P0306 for an override that cannot be followed.
    """
    given = overrides or {}
    work = _Cutting(plain, target, partial(lay_out, overrides=whole_overrides(given)), share)
    work.fix(given)
    fits = mode == "off" or (planned is not None and not any(too_large(planned, target, share)))
    if planned is not None and fits and not work.fixed:
        found = TimeSlices(planned, plain, Axes(planned), {})
    else:
        found = work.run(finer=mode != "off")
    found = work.stream(found) if mode == "auto" else found
    return work.settled(found) if found.sizes else found


class _Cutting:
    """Cuts of the classes of a graph, by the classes' names, as they become finer."""

    def __init__(
        self, plain: MNGraph, target: Target, lay_out: Callable[..., MNGraph], share: float
    ):
        self.plain, self.target, self.lay_out, self.share = plain, target, lay_out, share
        self.axes = Axes(plain)
        self.sizes: dict[Axis, int] = {}
        #: Classes that overrides cut: the value and axis they name, and the number of slices.
        self.fixed: dict[Axis, tuple[str, int, int]] = {}
        #: Classes whose cut has brought nothing.
        self.useless: set[Axis] = set()
        #: How much finer than necessary to cut.
        self.haste = 1
        self.members: dict[Axis, list[Axis]] = {}
        for name in plain.device_values():
            for number, one in self.axes.of_value(name):
                self.members.setdefault(one, []).append((name, number))

    def fix(self, overrides: Overrides) -> None:
        """Follow the overrides. P0306."""
        for name, cuts in wanted_slices(overrides).items():
            for number, count in cuts.items():
                shape = self.plain.values[name].shape
                if number >= len(shape) or name not in self.plain.device_values():
                    raise error("P0306", value=name, reason=f"it has no axis {number} to cut")
                one = self.axes.of((name, number))
                if one in self.axes.rigid:
                    reason = f"axis {number} stays whole: {self.axes.rigid[one]}"
                    raise error("P0306", value=name, reason=reason)
                size = -(-shape[number] // count)
                if size < 2 or self.sizes.get(one, size) != size or not self._legal(one, size):
                    reason = f"axis {number} has no {count} slices"
                    raise error("P0306", value=name, reason=reason)
                self.sizes[one] = size
                self.fixed[one] = name, number, count

    def run(self, *, finer: bool) -> TimeSlices:
        """Cut until everything fits, or nothing more can be cut."""
        if not finer:
            return self._laid_out()
        found = self._refined(self._started(), excess)
        while self.useless and self.haste < 1 << _TRIES:
            if not any(excess(found, self.target, self.share)):
                break
            # Slices of a size that fewer units divide keep their share: another size may not.
            self.haste *= 2
            self.useless.clear()
            found = self._refined(found, excess)
        self.haste = 1
        return self._refined(found, crowded) if found.sizes else found

    def _refined(self, found: TimeSlices, measure: Measure) -> TimeSlices:
        """Cut for the node for which ``measure`` is worst, until it yields none."""
        before: tuple[dict[Axis, int], TimeSlices, tuple[Axis, ...], float] | None = None
        for _ in range(_ROUNDS):
            over = sorted(measure(found, self.target, self.share), key=lambda it: -it[0])
            if not over:
                break
            factor, worst = over[0]
            if before is not None and factor >= before[3]:
                # The last cut has brought nothing.
                self.sizes, found = before[:2]
                self.useless.update(before[2])
                before = None
                continue
            chosen = self._choose(worst, found, factor)
            if not chosen:
                break
            before = dict(self.sizes), found, tuple(one for one, _ in chosen), factor
            for one, size in chosen:
                if size < self._now(one):
                    self.sizes.pop(one, None)
                    self.sizes[one] = size
            # Layouts that cannot be switched are as bad as a cut that brings nothing.
            found = self._attempt() or before[1]
        return found

    def stream(self, found: TimeSlices) -> TimeSlices:
        """Cut what elementwise operators and reductions pass on so fine that transfers overlap.

        A slice then is what one buffer of L2BM takes: the next one is on its way to L2BM and the
        one before on its way to DRAM while it is worked on. The units must share it as before.
        """
        for one in list(self.members):
            chunks = self._chunks(found, one)
            factor = chunks
            while factor >= _CHUNKS:
                size = self._finer(one, factor)
                if size is not None and not self.axes.ops.get(one, set()) & _ANCHORED:
                    before = dict(self.sizes)
                    self.sizes[one] = size
                    finer = self._attempt()
                    if finer is not None and units(finer) == units(found):
                        found = finer
                        break
                    self.sizes = before
                factor //= 2
        return found

    def settled(self, found: TimeSlices) -> TimeSlices:
        """Lay out the slices for the last time; keep that if everything fits and it is faster."""
        sizes = dict(self.sizes)
        try:
            last = self._laid_out(last=True)
        except PycompilerError as problem:
            if problem.code != "P0305":
                raise
            return found
        fits = self.sizes == sizes and not any(excess(last, self.target, self.share))
        steps = [estimated_steps(one, self.target) for one in (found, last)]
        return last if fits and steps[1] < steps[0] else found

    def _chunks(self, found: TimeSlices, one: Axis) -> int:
        """Return in how many parts the values of a class in DRAM are transferred; 0 if joined."""
        if one in self.axes.joined:
            return 0
        names = {name for name, _ in self.members[one]}
        values = [found.graph.values[name] for name in names if name in found.graph.values]
        counts = [
            len(plan_transfer(layout_of(value), self.target).chunks)
            for value in values
            if value.location is Location.DRAM
        ]
        return max(counts, default=0)

    def _started(self) -> TimeSlices:
        """Lay out the graph, with cuts where even that needs some. P0305.

        What a node needs is known before its operands can be switched: nodes that need too much
        come first, then the largest values.
        """
        found: TimeSlices | None = None
        for _ in range(_ROUNDS):
            found = self._attempt()
            if found is not None:
                break
            chosen = self._for_the_worst() or self._largest()
            if not chosen:
                break
            self.sizes.update(chosen)
        return found or self._laid_out()

    def _for_the_worst(self) -> tuple[tuple[Axis, int], ...]:
        """Return cuts for the node that needs most, if one needs too much; switches come last.

        Cuts are halves: layouts of what is shorter may need far less.
        """
        rough = self._laid_out(resolve=False)
        over = sorted(
            excess(rough, self.target, self.share), key=lambda it: (it[1].op == SWITCH, -it[0])
        )
        for factor, node in over:
            chosen = self._choose(node, rough, min(factor, 2.0))
            if chosen:
                return chosen
        return ()

    def _largest(self) -> tuple[tuple[Axis, int], ...]:
        """Return a finer cut of the class that has the most elements, joined classes last."""
        best: tuple[tuple[bool, int], Axis, int] | None = None
        for one, members in self.members.items():
            size = self._finer(one, 2.0)
            if size is None:
                continue
            elements = 0
            for name, _ in members:
                cut = (self._now(other) for _, other in self.axes.of_value(name))
                elements = max(elements, prod(cut))
            rank = one not in self.axes.joined, elements
            if best is None or rank > best[0]:
                best = rank, one, size
        return () if best is None else (best[1:],)

    # -- one set of cuts -----------------------------------------------------------------------

    def _laid_out(self, *, resolve: bool = True, last: bool = False) -> TimeSlices:
        """Lay out the graph of one slice; slices become longer where a layout pads them."""
        while True:
            graph = self.lay_out(self._shrunk(), resolve=resolve, last=last)
            axes = Axes(graph)
            names = {one: self._name_in(graph, one) for one in self.sizes}
            # What is joined comes innermost, so that a sum is complete before the next begins.
            inner = sorted(self.sizes, key=lambda one: one in self.axes.joined)
            sizes = {axes.of(names[one]): self.sizes[one] for one in inner}
            made = TimeSlices(graph, self.plain, axes, sizes)
            longer = self._padded(made, names)
            if not longer:
                return made
            for one, size in longer.items():
                if size < self.axes.size(one) and self._even(one, size):
                    self.sizes[one] = size
                elif one in self.fixed:
                    name, number, count = self.fixed[one]
                    reason = f"in its layout, axis {number} has no {count} slices"
                    raise error("P0306", value=name, reason=reason)
                else:
                    del self.sizes[one]

    def _attempt(self) -> TimeSlices | None:
        """Lay out the graph if its layouts can be switched."""
        try:
            return self._laid_out()
        except PycompilerError as problem:
            if problem.code != "P0305":
                raise
            return None

    def _shrunk(self) -> MNGraph:
        values: dict[str, MNValue] = {}
        for one, size in self.sizes.items():
            for name, number in self.members[one]:
                value = values.get(name, self.plain.values[name])
                shape = (*value.shape[:number], size, *value.shape[number + 1 :])
                values[name] = replace(value, type=TensorType(value.type.elem, shape))
        return self.plain.with_values(values)

    def _name_in(self, graph: MNGraph, one: Axis) -> Axis:
        """Return an axis of the class that ``graph`` has too."""
        return next(axis for axis in self.members[one] if axis[0] in graph.values)

    def _padded(self, made: TimeSlices, names: Mapping[Axis, Axis]) -> dict[Axis, int]:
        """Return longer slices where the layout of a value in DRAM reaches further than one."""
        ours = {made.axes.of(name): one for one, name in names.items()}
        longer: dict[Axis, int] = {}
        for name, value in made.graph.values.items():
            if value.location is not Location.DRAM:
                continue
            for number, one in made.cut_axes(name):
                reach = layout_of(value).padded_shape[number]
                if reach > made.sizes[one]:
                    longer[ours[one]] = max(reach, longer.get(ours[one], 0))
        return longer

    # -- the next cut --------------------------------------------------------------------------

    def _choose(
        self, node: MNNode, found: TimeSlices, factor: float
    ) -> tuple[tuple[Axis, int], ...]:
        """Return what to cut for ``node``: classes and sizes of slices; nothing if nothing can be.

        Several sizes come at once where a node contracts an axis: its operands share classes.
        """
        ours = {
            found.axes.of(axis): one
            for one, members in self.members.items()
            for axis in members
            if axis[0] in found.graph.values
        }
        cuts = [
            (ours[one], cut)
            for one, cut in found.axes.of_node(node)
            if one in ours and self._finer(ours[one], 1.0) is not None
        ]
        if LAYERS[node.op].anchored and any(cut.joins for _, cut in cuts):
            tiles = best_tiles(
                node,
                found.graph,
                self.target,
                [(one, cut, (self._now(one), *self._halves(one))) for one, cut in cuts],
                self.share,
            )
            if tiles:
                return tiles
        best: tuple[tuple[bool, int, int, int], Axis] | None = None
        for one, cut in cuts:
            words = sum(found.graph.values[name].num_lw or 0 for name, _ in cut.axes)
            place = min(number for _, number in cut.axes)
            rank = one not in self.axes.joined, words, -place, self._now(one)
            if best is None or rank > best[0]:
                best = rank, one
        if best is None:
            return ()
        # Another cut will have to do the rest if this one cannot do it all.
        size = self._finer(best[1], factor * self.haste) or self._finer(best[1], 1.0)
        assert size is not None
        return ((best[1], size),)

    def _now(self, one: Axis) -> int:
        return self.sizes.get(one, self.axes.size(one))

    def _halves(self, one: Axis) -> Iterator[int]:
        """Yield sizes of slices, each half of the one before or less."""
        size = self._finer(one, 2.0)
        while size is not None:
            yield size
            most = size // 2
            size = next((found for found in self._sizes(one, most) if found <= most), None)

    def _finer(self, one: Axis, factor: float) -> int | None:
        """Return a size of slices that is smaller by at least ``factor``, if there is one."""
        if one in self.axes.rigid or one in self.fixed or one in self.useless:
            return None
        now = self._now(one)
        most = min(int(now / factor), now - 1)
        return next((size for size in self._sizes(one, most) if size < now), None)

    def _sizes(self, one: Axis, most: int) -> Iterator[int]:
        """Yield sizes of slices up to ``most``: the roundest first, or the longest legal ones."""
        unit = 1 << max(most, 1).bit_length() - 1
        while unit > 1:
            size = most // unit * unit
            if size > 1 and self._legal(one, size):
                yield size
            unit //= 2
        yield from (size for size in range(most, 1, -1) if self._legal(one, size))

    def _legal(self, one: Axis, size: int) -> bool:
        """Whether slices of ``size`` add little padding, and none where it would do harm."""
        whole = self.axes.size(one)
        return self._even(one, size) and -whole % size * _WASTE <= whole

    def _even(self, one: Axis, size: int) -> bool:
        """Whether the last slice may be as long as it would be: some nodes know no shorter ones."""
        fixed = one in self.axes.joined and self.axes.ops[one] & _ANCHORED
        return not fixed or self.axes.size(one) % size == 0


#: Operators that join slices but know nothing of shorter ones.
_ANCHORED = frozenset(name for name, layer in LAYERS.items() if layer.anchored)
