"""Variances behind convolutions in half do not wait for the mean.

A BatchNorm in training adds up the squared differences from the mean. So this sum over all pictures
waits for the one of the mean, and each of the two crosses all L2Bs by two MVs. The sum of the
squares, less the mean times the sum, is the same number, and both sums run at the same time. The
differences are left to the way back.

Where a mean is far larger than the deviation, the second form loses bits: the variance has a
relative error of about ``2**-24 * (mean / deviation)**2``. Up to means of 90 deviations this is
below ``2**-11``, the error that each factor of a product in half has. A bias could make the mean
as large as it likes, so a convolution must have none. What stays below zero becomes zero.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ..graph.edit import Edit
from ..graph.graph import MNGraph, MNNode, Side
from ..layers.functions.arithmetic import FACTOR, SHARE
from ..layers.products.roles import precision_of
from ..layers.view import VIEWS
from ..machine import WORDS_PER_LONG, Target
from ..pfvm.names import fresh
from ..pfvm.session import Array
from .halves import CONVOLUTIONS


def part_variances(
    graph: MNGraph, target: Target, exact: Collection[str], data: Mapping[str, Array]
) -> MNGraph:
    """Compute such variances from the sums of values and of squares.

    ``exact`` values keep all bits. ``data`` has the elements of constants.
    """
    made, readers, edit = graph.producers(), graph.readers(), Edit(graph)
    given = {*exact, *(name for _, name in graph.outputs)}
    search = _Search(graph, target, made, readers, data)
    values = dict(graph.values)
    for squares in graph.device_nodes():
        found = search.sums(squares)
        if found is None or not given.isdisjoint(found.names):
            continue
        total = found.total.outputs[0]
        parts = [fresh(f"{total}.{part}", values) for part in ("squares", "of_mean", "less")]
        edit.values |= {part: replace(values[total], name=part) for part in parts}
        values |= edit.values
        sum_of_squares, of_mean, less = parts
        own = replace(found.total, outputs=(sum_of_squares,))
        steps = (
            replace(squares, inputs=(found.values, found.values)),
            own,
            MNNode(of_mean, "Mul", (found.sum, found.mean), (of_mean,)).near(own),
            MNNode(less, "Sub", (sum_of_squares, of_mean), (less,)).near(own),
            MNNode(total, "Relu", (less,), (total,)).near(own),
        )
        # The squares come directly behind the values, what needs the mean where the sum was.
        edit.behind[made[found.values].name] += steps[:2]
        edit.behind[found.total.name] += steps[2:]
        edit.gone |= {squares.name, found.total.name}
        if len(readers[squares.inputs[0]]) == 1 and squares.inputs[0] not in given:
            edit.gone.add(made[squares.inputs[0]].name)
    return edit.done()


@dataclass(frozen=True)
class _Sums:
    """Values, their sum and mean, and the node that adds up the squared differences."""

    values: str
    sum: str
    mean: str
    total: MNNode
    #: the values whose bits change
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Search:
    graph: MNGraph
    target: Target
    made: Mapping[str, MNNode]
    readers: Mapping[str, Sequence[MNNode]]
    data: Mapping[str, Array]

    def sums(self, squares: MNNode) -> _Sums | None:
        """Return what belongs to a product of differences from a mean with themselves."""
        differences = self._node(squares.inputs[0], "Sub")
        if squares.op != "Mul" or len(set(squares.inputs)) > 1 or differences is None:
            return None
        readers = self.readers.get(squares.outputs[0], ())
        values, subtracted = differences.inputs
        mean = self.made.get(self._viewed(subtracted))
        if mean is None or mean.op not in ("Mul", SHARE):
            return None
        first = self._node(mean.inputs[0], "ReduceSum")
        if first is None or first.inputs[0] != values:
            return None
        if len(readers) != 1 or readers[0].op != "ReduceSum":
            return None
        total = readers[0]
        if dict(total.attributes) != dict(first.attributes) or not self._by_halves(values):
            return None
        nodes = (self.made[values], first, mean, differences, squares, total)
        if {(one.side, one.segment) for one in nodes} != {(Side.DEVICE, squares.segment)}:
            return None
        records = self.graph.values
        shape, axes = records[values].shape, dict(first.attributes).get("axes")
        sums = {records[one.outputs[0]].shape for one in (first, mean, total)}
        if not isinstance(axes, tuple) or 0 not in axes or len(sums) > 1:
            return None
        left = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        under = records[subtracted].shape
        # Views may exchange axes: only one axis may be left.
        if sum(size > 1 for size in left) > 1:
            return None
        if (1,) * (len(left) - len(under)) + tuple(under) != left:
            return None
        share = 1 / prod(shape[int(axis)] for axis in axes)
        if self._factor(mean) not in (share, float(np.float32(share))):
            return None
        names = squares.outputs[0], total.outputs[0]
        return _Sums(values, first.outputs[0], mean.outputs[0], total, names)

    def _factor(self, product: MNNode) -> object:
        """Return the number that a product multiplies by; None if it is no constant."""
        if product.op == SHARE:
            return dict(product.attributes)[FACTOR]
        number = self.data.get(product.inputs[1])
        return None if number is None or number.size != 1 else float(number.item())

    def _by_halves(self, name: str) -> bool:
        """Whether a convolution in half without bias made a value."""
        product = self.made.get(self._viewed(name))
        if product is None or product.op not in CONVOLUTIONS:
            return False
        biased = len([one for one in product.inputs if one]) > 2
        return not biased and precision_of(product, self.target).words > WORDS_PER_LONG

    def _node(self, name: str, op: str) -> MNNode | None:
        found = self.made.get(name)
        return found if found is not None and found.op == op else None

    def _viewed(self, name: str) -> str:
        """Return the value that ``name`` is a view of."""
        while name in self.made and self.made[name].op in VIEWS:
            name = self.made[name].inputs[0]
        return name
