"""The time-slice planner: values that do not fit LM are computed slice by slice.

Axes are cut by class (:mod:`.cut_classes`), so that a whole chain of operators processes one slice
before the next slice is loaded. To find how much LM a slice needs, the planner plans layouts again
for axes as long as one slice. Cuts become finer until the operands of every node fit. An axis that
a node reduces or contracts is cut last, because the results of its slices must be joined.

In DRAM a sliced value has a Time digit, the uppermost of its axis. Its slices are stored one after
the other.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import product
from typing import Protocol

from ...errors import NoSwitchError, PlanError
from ...graph.graph import Location, MNGraph, MNNode
from ...layers.base import layout_of
from ...layers.dram_transfer_plan import plan_transfer
from ...layers.switch.layer import SWITCH
from ...machine import Target
from ..overrides import Overrides, whole_overrides
from .cut_classes import Axes, Axis
from .cuts import ANCHORED, PADDING, Cuts
from .matrices import narrow_matrices
from .sliced_graph import (
    Like,
    TimeSlices,
    estimated_steps,
    steps_along,
    too_large,
    units,
    wide,
)

_ROUNDS = 60  # the most cuts that one search makes
_CLOSE = 8  # the most cuts that are laid out by the better planner
_CHUNKS = 4  # a transfer of fewer parts is not worth slices
_WORTH = 1 / 64  # cuts are tried if the nodes that they touch take this part of all steps
_WIDE = 3  # the most cuts of wide values that are tried
_COMMON = 64  # guess: a class of more values is cut only if it must be: all plans change with it
_HIDDEN = 1 / 32  # guess: the part of all steps that slices of matrices hide, at the least


class LayOut(Protocol):
    """A function that sets the layouts and locations of a graph.

    It uses a fast planner, and a better one for the ``last`` layouts. Without ``resolve`` the
    switches have no passes yet.
    """

    def __call__(
        self, graph: MNGraph, overrides: Overrides, *, resolve: bool = True, last: bool = False
    ) -> MNGraph:
        """Return the graph with layouts and locations; P0305 if a switch has no passes."""


def plan_time_slices(
    plain: MNGraph,
    planned: MNGraph | None,
    target: Target,
    lay_out: LayOut,
    *,
    mode: str = "auto",
    fraction: float = 1.0,
    overrides: Overrides | None = None,
    like: Like | None = None,
) -> TimeSlices:
    """Return the slices of a graph; ``plain`` is ``planned`` before it had layouts.

    ``planned`` is None if the whole graph cannot be laid out. ``lay_out`` lays out a graph.
    ``fraction`` is the part of LM that may be used.

    With ``mode`` ``fit``, values that do not fit are cut; with ``auto``, also values that are
    faster in slices; with ``off``, only the values that ``overrides`` name. A value that does not
    fit and cannot be cut stays whole, and the scheduler refuses it. P0306 for an override that
    cannot be followed. ``like`` has the cuts of a graph that has all parts of this one; they are
    taken if all fits then.
    """
    given = overrides or {}
    work = _Search(plain, target, partial(lay_out, overrides=whole_overrides(given)), fraction)
    if like is not None and (found := work.cut_like(like)):
        return found
    work.fix(given)
    fits = mode == "off" or (planned is not None and not any(too_large(planned, target, fraction)))
    if planned is not None and fits and not work.fixed:
        slices = TimeSlices(planned, plain, Axes(planned), {})
    else:
        slices = (work.fitted() if mode != "off" else None) or work.laid_out()
    if mode == "auto" and not given:
        slices = work.cut_wide(slices)
        slices = work.narrow_matrices(slices)
    slices = work.overlap_transfers(slices) if mode == "auto" else slices
    return work.with_final_layouts(slices) if slices.sizes else slices


class _Search(Cuts):
    """Cuts that become finer until everything fits, and cuts that make a program faster."""

    def cut_like(self, like: Like) -> TimeSlices | None:
        """Return slices of these sizes; None if something does not fit."""
        wanted: dict[Axis, int] = {}
        for axis, size in like.sizes.items():
            one = self.axes.of(axis)
            wanted[one] = min(size, wanted.get(one, size))
        self.sizes, self.batch = dict(wanted), like.batch and self.axes.of(like.batch)
        with suppress(NoSwitchError):
            slices = self.laid_out(last=True)
            if self.sizes == wanted and self._fits(slices):
                return slices
        self.sizes, self.batch = {}, None
        return None

    def fitted(self) -> TimeSlices | None:
        """Cut until everything fits, or as far as possible; None if layouts cannot be switched.

        The layouts are those of the planner that the option ``layout_planner`` names, else those of
        ``first_arrival``: they need more LM, so more values are cut. Slices that are mostly padding
        are better than none.
        """
        for padding, last in product((PADDING, 1), (True, False)):
            self.padding = padding
            self.sizes = {one: size for one, size in self.sizes.items() if one in self.fixed}
            self.pruned.clear()
            self.forbidden.clear()
            found = self._cut(last=last)
            if found is not None:
                return found
        return self.attempt()

    def _cut(self, *, last: bool) -> TimeSlices | None:
        """Cut only values that do not fit in the layouts of a planner; None if that fails."""
        before: dict[Axis, int] | None = None
        chosen: tuple[tuple[Axis, int], ...] = ()
        undone: list[Axis] = []
        for _ in range(_CLOSE if last else _ROUNDS):
            asked = dict(self.sizes)
            rough = self.laid_out(resolve=False, last=last)
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
                return self.attempt(last=last)
            now = dict(self.sizes)
            if now == before:
                # The layouts of the last cut undid it. If that happens again, cut another axis.
                undone += dict(chosen)
                self.pruned.update(one for one in undone if undone.count(one) > 1)
                self.forbidden.update(chosen)
            tries = (self.choose(node, rough, factor) for factor, node in over)
            chosen = next(filter(None, tries), ())
            if not chosen:
                break
            before = now
            self.sizes.update(chosen)
        return None

    def _fits(self, slices: TimeSlices) -> bool:
        """Whether the operands of every node fit LM together."""
        return not any(too_large(slices.graph, self.target, self.fraction))

    def with_final_layouts(self, slices: TimeSlices) -> TimeSlices:
        """Lay out the slices for the last time; keep the result if it fits and is faster."""
        sizes = dict(self.sizes)
        try:
            last = self.laid_out(last=True)
        except NoSwitchError:
            return slices
        fits = self.sizes == sizes and self._fits(last)
        steps = [estimated_steps(one, self.target) for one in (slices, last)]
        return last if fits and steps[1] < steps[0] else slices

    def _over(self, rough: TimeSlices) -> list[tuple[float, MNNode]]:
        """Return the nodes that exceed LM with their factors, largest first; switches come last."""
        over = too_large(rough.graph, self.target, self.fraction)
        return sorted(over, key=lambda it: (it[1].op == SWITCH, -it[0]))

    # -- cuts of what fits, kept if the estimated steps become fewer ------------------------------

    def cut_wide(self, slices: TimeSlices) -> TimeSlices:
        """Cut values that leave no room for others, if the program gets faster.

        An operator that fills both LMs sends everything else to DRAM, and the search finds few
        layouts that fit.
        """
        pruned = set(self.pruned)
        self.pruned |= {one for one, members in self.members.items() if len(members) > _COMMON}
        for _ in range(_WIDE):
            over = sorted(wide(slices, self.target, self.fraction), key=lambda it: -it[0])
            tries = (self.choose(node, slices, factor) for factor, node in over)
            chosen = next(filter(None, tries), ())
            if not chosen:
                break
            before, new = dict(self.sizes), {one for one, _ in chosen}
            self.sizes.update(chosen)
            faster = self._faster(slices, new, before)
            self.pruned |= new if faster is None else set()
            slices = faster or slices
        self.pruned = pruned
        return slices

    def narrow_matrices(self, slices: TimeSlices) -> TimeSlices:
        """Cut matrices so that the columns of a slice fit every L1B, if the program gets faster.

        Rows then need not leave their L1B, not even for a wide product.
        """
        tried = [before := dict(self.sizes)]
        for inner in (True, False):
            self.sizes = narrow_matrices(self, inner=inner)
            if not self.sizes or self.sizes in tried:
                continue
            tried.append(dict(self.sizes))
            new = {one for one, size in self.sizes.items() if size != before.get(one)}
            faster = self._faster(slices, new, before, _HIDDEN)
            if faster is not None:
                slices, before = faster, dict(self.sizes)
        self.sizes = before
        return slices

    def _faster(
        self,
        slices: TimeSlices,
        classes: set[Axis],
        before: dict[Axis, int],
        hidden: float = 0.0,
    ) -> TimeSlices | None:
        """Lay out the graph with other cuts of some classes.

        None, and the sizes ``before``, if it does not fit or does not get faster than ``slices``,
        where the cuts hide the part ``hidden`` of all steps.
        """
        if self._may_gain(slices, classes):
            # Slices may have no way between layouts, or none that goes with forced ones.
            with suppress(PlanError):
                candidate = self.laid_out(last=True)
                steps = [estimated_steps(one, self.target) for one in (slices, candidate)]
                if steps[1] < (1 + hidden) * steps[0] and self._fits(candidate):
                    return candidate
        self.sizes = before
        return None

    def _may_gain(self, slices: TimeSlices, classes: set[Axis]) -> bool:
        """Whether the nodes along some classes take so long that cuts of these may be worth it.

        A cut changes little for other nodes.
        """
        theirs = {
            slices.axes.of(axis)
            for one in classes
            for axis in self.members[one]
            if axis[0] in slices.graph.values
        }
        steps = steps_along(slices, self.target, theirs)
        return steps > _WORTH * estimated_steps(slices, self.target)

    def overlap_transfers(self, slices: TimeSlices) -> TimeSlices:
        """Cut the classes of elementwise operators and reductions so that transfers overlap work.

        A slice is then as large as one buffer of L2BM. While it is computed, the next slice moves
        to L2BM and the slice before it moves to DRAM. A cut is kept only if values in DRAM have the
        same digits on the units as before.
        """
        for one in list(self.members):
            chunks = self._chunks(slices, one)
            free = chunks >= _CHUNKS and not self.axes.ops.get(one, set()) & ANCHORED
            factor = chunks if free and self._may_gain(slices, {one}) else 0
            while factor >= _CHUNKS:
                size = self.finer(one, factor)
                if size is not None:
                    before = dict(self.sizes)
                    self.sizes[one] = size
                    finer = self.attempt()
                    if finer is not None and units(finer) == units(slices):
                        slices = finer
                        break
                    self.sizes = before
                factor //= 2
        return slices

    def _chunks(self, slices: TimeSlices, one: Axis) -> int:
        """Return the most parts in which a DRAM value of a class is moved; 0 for joined classes."""
        if one in self.axes.joined:
            return 0
        names = {name for name, _ in self.members[one]}
        values = [slices.graph.values[name] for name in names if name in slices.graph.values]
        counts = [
            len(plan_transfer(layout_of(value), self.target).chunks)
            for value in values
            if value.location is Location.DRAM
        ]
        return max(counts, default=0)
