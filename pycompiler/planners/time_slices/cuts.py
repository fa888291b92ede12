"""The cuts of a graph: the length of slices along each class, and the graph laid out for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil, gcd, lcm

from ...errors import NoSwitchError, error
from ...graph.dtypes import MNDtype
from ...graph.graph import Location, MNGraph, MNNode, MNValue, Side, TensorType
from ...layers.base import Cut, banks_of, layout_of
from ...layers.half_conversions import NARROW, WIDEN
from ...layers.operators import LAYERS
from ...layers.products.roles import SHORTER, precision, roles_of
from ...machine import Target
from ..overrides import Overrides, wanted_slices
from .cut_classes import Axes, Axis
from .product_tiles import best_tiles
from .sliced_graph import TimeSlices

#: guess: a class with more members by this factor than another one of a node is cut only if it must
#: be. The cut would change the program of all of them.
_SHARED = 8
PADDING = 8  # slices may pad an axis by at most 1/8 of its length, unless nothing else helps


class Cuts:
    """The size of slices along each class of a graph; classes are named by axes of ``plain``."""

    def __init__(
        self, plain: MNGraph, target: Target, lay_out: Callable[..., MNGraph], fraction: float
    ):
        self.plain, self.target, self.lay_out, self.fraction = plain, target, lay_out, fraction
        self.axes = Axes(plain)
        self.sizes: dict[Axis, int] = {}
        #: The class of the batch, if its parts go through the whole graph one after the other.
        self.batch: Axis | None = None
        #: Classes that overrides cut: the value and axis of the override, and the number of slices.
        self.fixed: dict[Axis, tuple[str, int, int]] = {}
        #: Classes that are not cut finer, because the last try did not help.
        self.pruned: set[Axis] = set()
        #: Sizes that did not work: an operator refused the last slice, or layouts undid the cut.
        self.forbidden: set[tuple[Axis, int]] = set()
        #: Slices may pad an axis by at most its length divided by this.
        self.padding = PADDING
        self.members: dict[Axis, list[Axis]] = {}
        for name in plain.device_values():
            for number, one in self.axes.of_value(name):
                self.members.setdefault(one, []).append((name, number))

    def fix(self, overrides: Overrides) -> None:
        """Set the cuts that overrides demand; P0306 if one is impossible."""
        for name, cuts in wanted_slices(overrides).items():
            for number, count in cuts.items():
                shape = self.plain.values[name].shape
                if number >= len(shape) or name not in self.plain.device_values():
                    raise error("P0306", value=name, reason=f"it has no axis {number} to cut")
                one = self.axes.of((name, number))
                if one in self.axes.rigid:
                    reason = f"axis {number} stays whole: {self.axes.rigid[one]}"
                    raise error("P0306", value=name, reason=reason)
                size = -(-self.axes.size(one) // count)
                if size < 2 or self.sizes.get(one, size) != size or not self._legal(one, size):
                    reason = f"axis {number} has no {count} slices"
                    raise error("P0306", value=name, reason=reason)
                self.sizes[one] = size
                self.fixed[one] = name, number, count

    # -- one set of cuts -----------------------------------------------------------------------

    def laid_out(self, *, resolve: bool = True, last: bool = False) -> TimeSlices:
        """Lay out the graph of one slice; a slice becomes longer if a layout in DRAM pads it.

        P0306 if an override forbids that.
        """
        while True:
            graph = self.lay_out(self.shrunk(self.sizes), resolve=resolve, last=last)
            graph = replace(graph, nodes=tuple(_plain(node) for node in graph.nodes))
            axes = Axes(graph)
            names = {one: self._name_in(graph, one) for one in self.sizes}
            # Joined classes are the innermost loops, so that a sum is complete before the next one
            # begins.
            inner = sorted(self.sizes, key=lambda one: one in self.axes.joined)
            sizes = {axes.of(names[one]): self.sizes[one] for one in inner}
            batch = axes.of(names[self.batch]) if self.batch in names else None
            made = TimeSlices(graph, self.plain, axes, sizes, batch)
            longer = self._padded(made, names)
            if not longer:
                refused = self._refused(made, names) - self.fixed.keys()
                if not refused:
                    return made
                for one in refused:
                    self.forbidden.add((one, self.sizes.pop(one)))
                continue
            for one, size in longer.items():
                allowed = self._even(one, size) and (one, size) not in self.forbidden
                if size < self.axes.size(one) and allowed:
                    self.sizes[one] = size
                elif one in self.fixed:
                    name, number, count = self.fixed[one]
                    reason = f"in its layout, axis {number} has no {count} slices"
                    raise error("P0306", value=name, reason=reason)
                else:
                    # Whoever asks for this size again would get a whole axis again.
                    self.forbidden.add((one, self.sizes.pop(one)))

    def attempt(self, *, last: bool = False) -> TimeSlices | None:
        """Lay out the graph; None if a layout switch has no passes."""
        try:
            return self.laid_out(last=last)
        except NoSwitchError:
            return None

    def shrunk(self, sizes: Mapping[Axis, int]) -> MNGraph:
        """Return the graph of one slice, without layouts, if classes have slices of ``sizes``."""
        values: dict[str, MNValue] = {}
        for one, size in sizes.items():
            for name, number in self.members[one]:
                value = values.get(name, self.plain.values[name])
                length = size * self.axes.factor((name, number))
                shape = (*value.shape[:number], length, *value.shape[number + 1 :])
                values[name] = replace(value, type=TensorType(value.type.elem, shape))
        nodes = tuple(self._told(node, sizes) for node in self.plain.nodes)
        return replace(self.plain.with_values(values), nodes=nodes)

    def _told(self, node: MNNode, sizes: Mapping[Axis, int]) -> MNNode:
        """Return a node with the number of terms in its last slice, if that is shorter."""
        if node.op not in _PRODUCTS or node.side is not Side.DEVICE:
            return node
        axis = node.inputs[0], roles_of(node, self.plain).a[2]
        one = self.axes.of(axis)
        if one not in sizes:
            return node
        short = self.axes.size(one) % sizes[one] * self.axes.factor(axis)
        return replace(node, attributes=(*node.attributes, (SHORTER, short))) if short else node

    def _name_in(self, graph: MNGraph, one: Axis) -> Axis:
        """Return an axis of the class whose value is also in ``graph``."""
        return next(axis for axis in self.members[one] if axis[0] in graph.values)

    def _padded(self, made: TimeSlices, names: Mapping[Axis, Axis]) -> dict[Axis, int]:
        """Return longer sizes for classes in which a layout in DRAM is longer than a slice."""
        ours = {made.axes.of(name): one for one, name in names.items()}
        longer: dict[Axis, int] = {}
        for name, value in made.graph.values.items():
            if value.location is not Location.DRAM:
                continue
            for number, one in made.cut_axes(name):
                factor = made.axes.factor((name, number))
                reach = -(-layout_of(value).padded_shape[number] // factor)
                if reach > made.sizes[one]:
                    longer[ours[one]] = max(reach, longer.get(ours[one], 0))
        return longer

    # -- sizes of slices ---------------------------------------------------------------------

    def now(self, one: Axis) -> int:
        """Return the size of slices along a class; the whole length if it is not cut."""
        return self.sizes.get(one, self.axes.size(one))

    def halves(self, one: Axis) -> Iterator[int]:
        """Yield sizes of slices, each at most half of the one before."""
        size = self.finer(one, 2.0)
        while size is not None:
            yield size
            most = size // 2
            size = next((found for found in self._sizes(one, most) if found <= most), None)

    def finer(self, one: Axis, factor: float) -> int | None:
        """Return a size of slices that is smaller by at least ``factor``; None if there is none."""
        if one in self.axes.rigid or one in self.fixed or one in self.pruned:
            return None
        now = self.now(one)
        most = min(int(now / factor), now - 1)
        return next((size for size in self._sizes(one, most) if size < now), None)

    def allows(self, one: Axis, size: int) -> bool:
        """Whether slices of a class may have this size, which is finer than now."""
        return size > 1 and self._legal(one, size)

    def _sizes(self, one: Axis, most: int) -> Iterator[int]:
        """Yield legal sizes up to ``most``: multiples of large powers of two first, then all.

        A layout may pad other sizes so much that nothing is gained. Slices of equal length come
        before others that are at most twice as long: a shorter one may waste most of its units.
        """
        whole = self.axes.size(one)
        near = list(self._rounded(one, most, most // 2))
        yield from sorted(near, key=lambda size: whole % size != 0)
        yield from (size for size in range(most // 2, 1, -1) if self._legal(one, size))

    def _rounded(self, one: Axis, most: int, least: int) -> Iterator[int]:
        """Yield legal sizes above ``least``, multiples of large powers of two first."""
        unit, seen = 1 << max(most, 1).bit_length() - 1, set[int]()
        while unit:
            for size in range(most // unit * unit, least, -unit):
                if size > 1 and size not in seen and self._legal(one, size):
                    yield size
                seen.add(size)
            unit //= 2

    def _legal(self, one: Axis, size: int) -> bool:
        """Whether slices of ``size`` add little padding, and none where padding is illegal."""
        whole = self.axes.size(one)
        fills = size % self._unit(one) == 0 and (one, size) not in self.forbidden
        return fills and self._even(one, size) and -whole % size * self.padding <= whole

    def _unit(self, one: Axis) -> int:
        """Return what slices of a class must be multiples of: halves that a product adds up."""
        if one not in self.axes.joined:
            return 1
        added = (axis for axis in self.members[one] if axis in self.axes.added)
        halves = (axis for axis in added if self.plain.values[axis[0]].dtype is MNDtype.HALF)
        packed = precision("half", self.target).packed
        return lcm(*(packed // gcd(packed, self.axes.factor(axis)) for axis in halves))

    def _even(self, one: Axis, size: int) -> bool:
        """Whether the last slice of a class may have the length that slices of ``size`` leave.

        Most anchored operators that join slices need slices of equal length.
        """
        fixed = one in self.axes.joined and self.axes.ops[one] & ANCHORED
        even = self.axes.size(one) % size == 0
        return even or not fixed or fixed <= _SHORTER

    def _refused(self, made: TimeSlices, names: Mapping[Axis, Axis]) -> set[Axis]:
        """Return the joined classes whose last slice is shorter, and refused by an operator."""
        refused: set[Axis] = set()
        values: dict[str, MNValue]
        for ours, name in names.items():
            one = made.axes.of(name)
            short = made.lengths[one] % made.sizes[one]
            if not short or one not in made.axes.joined:
                continue
            values = {}
            for value in made.graph.values.values():
                numbers = [number for number, cut in made.cut_axes(value.name) if cut == one]
                if numbers:
                    shape = tuple(
                        short * made.axes.factor((value.name, n)) if n in numbers else d
                        for n, d in enumerate(value.shape)
                    )
                    type = TensorType(value.type.elem, shape)
                    values[value.name] = replace(value, type=type)
            last = made.graph.with_values(values)
            for node in last.device_nodes():
                cut = any(name in values for name in (*node.inputs, *node.outputs))
                if cut and node.op in ANCHORED and self._refuses(node, last):
                    refused.add(ours)
        return refused

    def _refuses(self, node: MNNode, graph: MNGraph) -> bool:
        """Whether an operator refuses its operands where it wants them in LM."""
        layer = LAYERS[node.op]
        place = layer.place(node, graph)
        found = banks_of(node, place)
        values = {name: replace(graph.values[name], location=at) for name, at in found.items()}
        return any(layer.refusals(node, graph.with_values(values), self.target))

    # -- the next cut --------------------------------------------------------------------------

    def choose(
        self, node: MNNode, found: TimeSlices, factor: float
    ) -> tuple[tuple[Axis, int], ...]:
        """Return classes to cut for ``node``, with sizes of slices; empty if none can be cut.

        For an anchored node several classes may be cut at once, because its operands share classes.
        A cut that few other values share is better.
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
        if LAYERS[node.op].anchored and cuts:
            sizes = [(one, cut, (self.now(one), *self.halves(one))) for one, cut in cuts]
            least = min(len(self.members[one]) for one, _ in cuts)
            own = [it for it in sizes if len(self.members[it[0]]) <= _SHARED * least]
            for some in (own, sizes) if own != sizes else (sizes,):
                if tiles := best_tiles(node, found.graph, self.target, some, self.fraction):
                    return tiles
        if not cuts:
            return ()
        one, _ = max(cuts, key=lambda item: self._rank(item[0], item[1], found, factor))
        # If the class has no size that is small enough, take any finer one: later cuts do the rest.
        size = self.finer(one, factor) or self.finer(one, 1.0)
        assert size is not None
        return ((one, size),)

    def _rank(self, one: Axis, cut: Cut, found: TimeSlices, factor: float) -> tuple[int, ...]:
        """Return what is larger the better it is to cut a class."""
        words = sum(found.graph.values[name].num_lw or 0 for name, _ in cut.axes)
        place = min(number for _, number in cut.axes)
        shared = len(self.members[one]).bit_length()
        # A cut of an axis that lies in Addr leaves no unit without work.
        local = min(ceil(factor), *(found.local(*axis) for axis in cut.axes))
        return -shared, one not in self.axes.joined, words, local, -place, self.now(one)


#: Anchored operators. If they join slices, most cannot work on a shorter last slice.
ANCHORED = frozenset(name for name, layer in LAYERS.items() if layer.anchored)
#: Anchored operators that can: products clear what lies behind the last element of a contraction.
_PRODUCTS = frozenset({"MatMul", "Gemm"})
_SHORTER = _PRODUCTS | {NARROW, WIDEN}


def _plain(node: MNNode) -> MNNode:
    """Return a node without what was told to it for the layouts of slices."""
    own = tuple(fact for fact in node.attributes if fact[0] != SHORTER)
    return replace(node, attributes=own) if len(own) < len(node.attributes) else node
