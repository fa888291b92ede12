"""The time-slice planner: what does not fit LM is worked on slice by slice.

Axes are cut by class (:mod:`.cut_classes`), so that a whole chain of operators works on one slice
before the next one comes. The planner lays out the graph again with axes as long as one slice: that
is how it knows what a slice needs. Cuts become finer until every node finds room for its operands.
An axis that a node reduces or contracts is cut last: what the slices leave is joined.

In DRAM a sliced value has a Time digit, the uppermost of its axis; its slices lie one behind the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Protocol

from ...errors import NoSwitchError
from ...graph.graph import Location, MNGraph, MNNode
from ...layers.base import layout_of
from ...layers.dram_transfer_plan import plan_transfer
from ...layers.operators import LAYERS
from ...layers.switch.layer import SWITCH
from ...machine import Target
from ..overrides import Overrides, whole_overrides
from .cut_classes import Axes, Axis
from .cuts import ANCHORED, Cuts
from .product_tiles import best_tiles
from .sliced_graph import TimeSlices, crowded, estimated_steps, excess, too_large, units

_ROUNDS = 60  # of cutting finer
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
    work = _Search(plain, target, partial(lay_out, overrides=whole_overrides(given)), share)
    work.fix(given)
    fits = mode == "off" or (planned is not None and not any(too_large(planned, target, share)))
    if planned is not None and fits and not work.fixed:
        found = TimeSlices(planned, plain, Axes(planned), {})
    else:
        found = work.run(finer=mode != "off")
    found = work.stream(found) if mode == "auto" else found
    return work.settled(found) if found.sizes else found


class _Search(Cuts):
    """Cuts that become finer until everything fits."""

    #: How much finer than necessary to cut.
    haste = 1

    def run(self, *, finer: bool) -> TimeSlices:
        """Cut until everything fits, or nothing more can be cut."""
        if not finer:
            return self.laid_out()
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
                if size < self.now(one):
                    self.sizes.pop(one, None)
                    self.sizes[one] = size
            # Layouts that cannot be switched are as bad as a cut that brings nothing.
            found = self.attempt() or before[1]
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
                size = self.finer(one, factor)
                if size is not None and not self.axes.ops.get(one, set()) & ANCHORED:
                    before = dict(self.sizes)
                    self.sizes[one] = size
                    finer = self.attempt()
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
            last = self.laid_out(last=True)
        except NoSwitchError:
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
            found = self.attempt()
            if found is not None:
                break
            chosen = self._for_the_worst() or self._largest()
            if not chosen:
                break
            self.sizes.update(chosen)
        return found or self.laid_out()

    def _for_the_worst(self) -> tuple[tuple[Axis, int], ...]:
        """Return cuts for the node that needs most, if one needs too much; switches come last.

        Cuts are halves: layouts of what is shorter may need far less.
        """
        rough = self.laid_out(resolve=False)
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
            size = self.finer(one, 2.0)
            if size is None:
                continue
            elements = 0
            for name, _ in members:
                cut = (self.now(other) for _, other in self.axes.of_value(name))
                elements = max(elements, prod(cut))
            rank = one not in self.axes.joined, elements
            if best is None or rank > best[0]:
                best = rank, one, size
        return () if best is None else (best[1:],)

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
            if one in ours and self.finer(ours[one], 1.0) is not None
        ]
        if LAYERS[node.op].anchored and any(cut.joins for _, cut in cuts):
            tiles = best_tiles(
                node,
                found.graph,
                self.target,
                [(one, cut, (self.now(one), *self.halves(one))) for one, cut in cuts],
                self.share,
            )
            if tiles:
                return tiles
        best: tuple[tuple[bool, int, int, int], Axis] | None = None
        for one, cut in cuts:
            words = sum(found.graph.values[name].num_lw or 0 for name, _ in cut.axes)
            place = min(number for _, number in cut.axes)
            rank = one not in self.axes.joined, words, -place, self.now(one)
            if best is None or rank > best[0]:
                best = rank, one
        if best is None:
            return ()
        # Another cut will have to do the rest if this one cannot do it all.
        size = self.finer(best[1], factor * self.haste) or self.finer(best[1], 1.0)
        assert size is not None
        return ((best[1], size),)
