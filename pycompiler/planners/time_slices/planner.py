"""The time-slice planner: values that do not fit LM are computed slice by slice.

Axes are cut by class (:mod:`.cut_classes`), so that a whole chain of operators processes one slice
before the next slice is loaded. To find how much LM a slice needs, the planner plans layouts again
for axes as long as one slice. Cuts become finer until the operands of every node fit. An axis that
a node reduces or contracts is cut last, because the results of its slices must be joined.

In DRAM a sliced value has a Time digit, the uppermost of its axis. Its slices are stored one after
the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Protocol

from ...errors import NoSwitchError
from ...graph.graph import MNGraph, MNNode
from ...layers.switch.layer import SWITCH
from ...machine import Target
from ..overrides import Overrides, whole_overrides
from .cut_classes import Axes, Axis
from .faster_cuts import FasterCuts
from .sliced_graph import TimeSlices, crowded, estimated_steps, excess, too_large

_ROUNDS = 60  # the most cuts that one search makes
_TRIES = 4  # how often useless cuts are tried again, each time twice as fine
_CLOSE = 8  # the most cuts that are laid out by the better planner


class LayOut(Protocol):
    """A function that sets the layouts and locations of a graph.

    It uses a fast planner, and a better one for the ``last`` layouts. Without ``resolve`` the
    switches have no passes yet.
    """

    def __call__(
        self, graph: MNGraph, overrides: Overrides, *, resolve: bool = True, last: bool = False
    ) -> MNGraph:
        """Return the graph with layouts and locations; P0305 if a switch has no passes."""


#: Yields the nodes for which the slices are too large, and the factor by which they are.
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

    ``planned`` is None if the whole graph cannot be laid out. ``lay_out`` lays out a graph.
    ``share`` is the part of LM that may be used.

    With ``mode`` ``fit``, values that do not fit are cut; with ``auto``, also values that are
    faster in slices; with ``off``, only the values that ``overrides`` name. A value that does not
    fit and cannot be cut stays whole, and the scheduler refuses it. P0306 for an override that
    cannot be followed.
    """
    given = overrides or {}
    work = _Search(plain, target, partial(lay_out, overrides=whole_overrides(given)), share)
    work.fix(given)
    fits = mode == "off" or (planned is not None and not any(too_large(planned, target, share)))
    if planned is not None and fits and not work.fixed:
        found = TimeSlices(planned, plain, Axes(planned), {})
    else:
        fitted = work.cut_for_final_layouts() if mode != "off" else None
        found = fitted or work.run(finer=mode != "off")
    if mode == "auto" and not given:
        found = work.cut_wide(found)
        found = work.narrow_matrices(found)
    found = work.overlap_transfers(found) if mode == "auto" else found
    return work.with_final_layouts(found) if found.sizes else found


class _Search(FasterCuts):
    """Cuts that become finer until everything fits."""

    def cut_for_final_layouts(self) -> TimeSlices | None:
        """Cut only values that do not fit in the final layouts; None if that fails.

        These are the layouts of the planner that the option ``layout_planner`` names. Those of
        ``first_arrival`` need more LM than those of ``lpz``, so more values would be cut.
        """
        if self.fixed:
            return None
        before: dict[Axis, int] | None = None
        chosen: tuple[tuple[Axis, int], ...] = ()
        undone: list[Axis] = []
        for _ in range(_CLOSE):
            asked = dict(self.sizes)
            rough = self.laid_out(resolve=False, last=True)
            # Layouts in DRAM may have made slices longer, and padded the axis. The size that was
            # asked for would become as long again.
            padded = [one for one, size in self.sizes.items() if not self._legal(one, size)]
            self.forbidden.update((one, asked[one]) for one in padded if one in asked)
            shorter = {one: self.finer(one, 1.0) for one in padded}
            if any(shorter.values()):
                self.sizes |= {one: size for one, size in shorter.items() if size}
                continue
            over = self._over(rough)
            if not over:
                try:
                    return self.laid_out(last=True)
                except NoSwitchError:
                    break
            now = dict(self.sizes)
            if now == before:
                # The layouts of the last cut undid it. If that happens again, cut another axis.
                undone += dict(chosen)
                self.useless.update(one for one in undone if undone.count(one) > 1)
                self.forbidden.update(chosen)
            tries = (self.choose(node, rough, factor, few=True) for factor, node in over)
            chosen = next((found for found in tries if found), ())
            if not chosen:
                break
            before = now
            self.sizes.update(chosen)
        self.sizes.clear()
        self.useless.clear()
        return None

    def run(self, *, finer: bool) -> TimeSlices:
        """Cut until everything fits, or until nothing more can be cut."""
        if not finer:
            return self.laid_out()
        found = self._hastened(self._started())
        if self.waste > 1 and any(excess(found, self.target, self.share)):
            self._allow_padding()
            found = self._hastened(found)
        return self._refined(found, crowded) if found.sizes else found

    def _hastened(self, found: TimeSlices) -> TimeSlices:
        """Cut until everything fits; where a cut does not help, try much finer ones."""
        found = self._refined(found, excess)
        while self.useless and self.haste < 1 << _TRIES:
            if not any(excess(found, self.target, self.share)):
                break
            # A smaller slice may lie on fewer units, so that a PE's share stays the same. A much
            # smaller one may still help.
            self.haste *= 2
            self.useless.clear()
            found = self._refined(found, excess)
        self.haste = 1
        return found

    def _allow_padding(self) -> None:
        """Allow slices that are mostly padding, which are better than none."""
        self.waste = 1
        self.forbidden.clear()
        self.useless.clear()

    def _refined(self, found: TimeSlices, measure: Measure) -> TimeSlices:
        """Cut for the node with the largest factor of ``measure``, until it yields no node."""
        before: tuple[dict[Axis, int], TimeSlices, tuple[Axis, ...], str, float] | None = None
        for _ in range(_ROUNDS):
            over = sorted(measure(found, self.target, self.share), key=lambda it: -it[0])
            if not over:
                break
            factor, worst = over[0]
            factors = {node.name: own for own, node in reversed(over)}
            if before is not None and (
                factor > before[4] or factors.get(before[3], 0.0) >= before[4]
            ):
                # The last cut did not help. If it did, another node may still be as much too large.
                self.sizes, found = before[:2]
                self.useless.update(before[2])
                before = None
                continue
            chosen = self.choose(worst, found, factor)
            if not chosen:
                break
            classes = tuple(one for one, _ in chosen)
            before = dict(self.sizes), found, classes, worst.name, factor
            for one, size in chosen:
                if size < self.now(one):
                    self.sizes.pop(one, None)
                    self.sizes[one] = size
            # If the layouts cannot be switched, the cut counts as one that did not help.
            found = self.attempt() or before[1]
        return found

    def with_final_layouts(self, found: TimeSlices) -> TimeSlices:
        """Lay out the slices for the last time; keep the result if it fits and is faster."""
        sizes = dict(self.sizes)
        try:
            last = self.laid_out(last=True)
        except NoSwitchError:
            return found
        fits = self.sizes == sizes and not any(excess(last, self.target, self.share))
        steps = [estimated_steps(one, self.target) for one in (found, last)]
        return last if fits and steps[1] < steps[0] else found

    def _started(self) -> TimeSlices:
        """Lay out the graph, and cut it if that is impossible without cuts.

        The LM that a node needs is known before its operands can be switched. So cuts for nodes
        that need too much come first, then cuts of the largest values. P0305 if no cut helps.
        """
        found: TimeSlices | None = None
        before: dict[Axis, int] | None = None
        chosen: tuple[tuple[Axis, int], ...] = ()
        for _ in range(_ROUNDS):
            found = self.attempt()
            if found is not None:
                break
            if self.sizes == before:
                # Layouts in DRAM padded the slices of the last cut to what they were before.
                self.forbidden.update(chosen)
            before = dict(self.sizes)
            chosen = self._cut_largest_excess() or self._cut_largest_class()
            if not chosen and self.waste > 1:
                self._allow_padding()
                self.sizes = {one: size for one, size in self.sizes.items() if one in self.fixed}
            elif not chosen:
                break
            self.sizes.update(chosen)
        return found or self.laid_out()

    def _over(self, rough: TimeSlices) -> list[tuple[float, MNNode]]:
        """Return the nodes that exceed LM with their factors, largest first; switches come last."""
        found = excess(rough, self.target, self.share)
        return sorted(found, key=lambda it: (it[1].op == SWITCH, -it[0]))

    def _cut_largest_excess(self) -> tuple[tuple[Axis, int], ...]:
        """Return cuts for the node that exceeds LM most, if one does; switches come last.

        Slices become at most half as long, because layouts of shorter values may need far less.
        """
        rough = self.laid_out(resolve=False)
        for factor, node in self._over(rough):
            chosen = self.choose(node, rough, min(factor, 2.0))
            if chosen:
                return chosen
        return ()

    def _cut_largest_class(self) -> tuple[tuple[Axis, int], ...]:
        """Return a finer cut of the class that has the most elements, joined classes last."""
        best: tuple[tuple[bool, int], Axis, int] | None = None
        for one, members in self.members.items():
            size = self.finer(one, 2.0)
            if size is None:
                continue
            elements = 0
            for name, _ in members:
                cut = (
                    self.now(other) * self.axes.factor((name, number))
                    for number, other in self.axes.of_value(name)
                )
                elements = max(elements, prod(cut))
            rank = one not in self.axes.joined, elements
            if best is None or rank > best[0]:
                best = rank, one, size
        return () if best is None else (best[1:],)
