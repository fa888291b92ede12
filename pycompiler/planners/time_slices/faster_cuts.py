"""Cuts that make a program faster, of values that would fit LM whole."""

from __future__ import annotations

from contextlib import suppress

from ...errors import PlanError
from ...graph.graph import Location
from ...layers.base import layout_of
from ...layers.dram_transfer_plan import plan_transfer
from .cut_classes import Axis
from .cuts import ANCHORED, Cuts
from .matrices import narrow_matrices
from .sliced_graph import TimeSlices, estimated_steps, excess, steps_along, units, wide

_CHUNKS = 4  # a transfer of fewer parts is not worth slices
_WORTH = 1 / 64  # cuts are tried if the nodes that they touch take this part of all steps
_WIDE = 3  # the most cuts of wide values that are tried


class FasterCuts(Cuts):
    """Cuts that are kept if the estimated steps become fewer."""

    def cut_wide(self, found: TimeSlices) -> TimeSlices:
        """Cut values that leave no room for others, if the program gets faster.

        An operator that fills both LMs sends everything else to DRAM, and the search finds few
        layouts that fit.
        """
        useless = set(self.useless)
        for _ in range(_WIDE):
            over = sorted(wide(found, self.target, self.share), key=lambda it: -it[0])
            tries = (self.choose(node, found, factor, few=True) for factor, node in over)
            chosen = next((one for one in tries if one), ())
            if not chosen:
                break
            before, new = dict(self.sizes), {one for one, _ in chosen}
            self.sizes.update(chosen)
            made = self._faster(found, new, before)
            self.useless |= new if made is None else set()
            found = made or found
        self.useless = useless
        return found

    def narrow_matrices(self, found: TimeSlices) -> TimeSlices:
        """Cut matrices so that the columns of a slice fit every L1B, if the program gets faster.

        Rows then need not leave their L1B, not even for a wide product.
        """
        before = dict(self.sizes)
        tried = [before]
        for inner in (True, False):
            self.sizes = narrow_matrices(self, inner=inner)
            if not self.sizes or self.sizes in tried:
                continue
            tried.append(dict(self.sizes))
            new = {one for one, size in self.sizes.items() if size != before.get(one)}
            made = self._faster(found, new, before)
            if made is not None:
                found, before = made, dict(self.sizes)
        self.sizes = before
        return found

    def _faster(
        self, found: TimeSlices, classes: set[Axis], before: dict[Axis, int]
    ) -> TimeSlices | None:
        """Lay out the graph with other cuts of some classes.

        None, and the sizes ``before``, if it does not fit or does not get faster than ``found``.
        """
        if self._may_gain(found, classes):
            # Slices may have no way between layouts, or none that goes with forced ones.
            with suppress(PlanError):
                made = self.laid_out(last=True)
                steps = [estimated_steps(one, self.target) for one in (found, made)]
                if steps[1] < steps[0] and not any(excess(made, self.target, self.share)):
                    return made
        self.sizes = before
        return None

    def _may_gain(self, found: TimeSlices, classes: set[Axis]) -> bool:
        """Whether the nodes along some classes take so long that cuts of these may be worth it.

        A cut changes little for other nodes.
        """
        theirs = {
            found.axes.of(axis)
            for one in classes
            for axis in self.members[one]
            if axis[0] in found.graph.values
        }
        return steps_along(found, self.target, theirs) > _WORTH * estimated_steps(
            found, self.target
        )

    def overlap_transfers(self, found: TimeSlices) -> TimeSlices:
        """Cut the classes of elementwise operators and reductions so that transfers overlap work.

        A slice is then as large as one buffer of L2BM. While it is computed, the next slice moves
        to L2BM and the slice before it moves to DRAM. A cut is kept only if values in DRAM have the
        same digits on the units as before.
        """
        for one in list(self.members):
            chunks = self._chunks(found, one)
            free = chunks >= _CHUNKS and not self.axes.ops.get(one, set()) & ANCHORED
            factor = chunks if free and self._may_gain(found, {one}) else 0
            while factor >= _CHUNKS:
                size = self.finer(one, factor)
                if size is not None:
                    before = dict(self.sizes)
                    self.sizes[one] = size
                    finer = self.attempt()
                    if finer is not None and units(finer) == units(found):
                        found = finer
                        break
                    self.sizes = before
                factor //= 2
        return found

    def _chunks(self, found: TimeSlices, one: Axis) -> int:
        """Return the most parts in which a DRAM value of a class is moved; 0 for joined classes."""
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
