"""The cuts of a graph: how long slices are along each class, and the graph laid out for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ...errors import NoSwitchError, error
from ...graph.graph import Location, MNGraph, MNValue, TensorType
from ...layers.base import layout_of
from ...layers.operators import LAYERS
from ...machine import Target
from ..overrides import Overrides, wanted_slices
from .cut_classes import Axes, Axis
from .sliced_graph import TimeSlices

_WASTE = 8  # slices may add one part in so many to an axis as padding


class Cuts:
    """The size of the slices along each class of a graph; classes have the names of ``plain``."""

    def __init__(
        self, plain: MNGraph, target: Target, lay_out: Callable[..., MNGraph], share: float
    ):
        self.plain, self.target, self.lay_out, self.share = plain, target, lay_out, share
        self.axes = Axes(plain)
        self.sizes: dict[Axis, int] = {}
        #: Classes that overrides cut: the value and axis they name, and the number of slices.
        self.fixed: dict[Axis, tuple[str, int, int]] = {}
        #: Classes that must not be cut finer, since that has brought nothing.
        self.useless: set[Axis] = set()
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

    # -- one set of cuts -----------------------------------------------------------------------

    def laid_out(self, *, resolve: bool = True, last: bool = False) -> TimeSlices:
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

    def attempt(self) -> TimeSlices | None:
        """Lay out the graph if its layouts can be switched."""
        try:
            return self.laid_out()
        except NoSwitchError:
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

    # -- sizes of slices ---------------------------------------------------------------------

    def now(self, one: Axis) -> int:
        """Return the size of slices along a class; the whole length where it is not cut."""
        return self.sizes.get(one, self.axes.size(one))

    def halves(self, one: Axis) -> Iterator[int]:
        """Yield sizes of slices, each half of the one before or less."""
        size = self.finer(one, 2.0)
        while size is not None:
            yield size
            most = size // 2
            size = next((found for found in self._sizes(one, most) if found <= most), None)

    def finer(self, one: Axis, factor: float) -> int | None:
        """Return a size of slices that is smaller by at least ``factor``, if there is one."""
        if one in self.axes.rigid or one in self.fixed or one in self.useless:
            return None
        now = self.now(one)
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
        fixed = one in self.axes.joined and self.axes.ops[one] & ANCHORED
        return not fixed or self.axes.size(one) % size == 0


#: Operators that join slices but know nothing of shorter ones.
ANCHORED = frozenset(name for name, layer in LAYERS.items() if layer.anchored)
