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

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ..graph.draft import Edit
from ..graph.graph import MNNode
from ..graph.rewrite import Part, Pattern, Rewrite
from ..layers.functions.arithmetic import FACTOR, SHARE
from ..layers.products.roles import precision_of
from ..layers.view import VIEWS
from ..machine import WORDS_PER_LONG
from ..pfvm.names import fresh
from .halves import CONVOLUTIONS


def _parted(nodes: Sequence[MNNode], part: Part) -> Edit | None:
    """Write the sum of (x - mean)^2 as sum(x^2) - mean * sum(x), and at least zero."""
    total, squares, differences = nodes
    values, subtracted = differences.inputs
    found = _sum_and_mean(nodes, values, subtracted, part)
    if len(set(squares.inputs)) > 1 or found is None or total.outputs[0] in part.kept:
        return None
    first, mean = found
    result, known, edit = total.outputs[0], dict(part.values), Edit()
    parts = [fresh(f"{result}.{name}", known) for name in ("squares", "of_mean", "less")]
    edit.values = {name: replace(part.values[result], name=name) for name in parts}
    sum_of_squares, of_mean, less = parts
    own = replace(total, outputs=(sum_of_squares,))
    sum_of, mean_of = first.outputs[0], mean.outputs[0]
    # The squares come directly behind the values, what needs the mean where the sum was.
    maker = part.draft.maker(values)
    assert maker is not None
    edit.behind[maker.name] += (replace(squares, inputs=(values, values)), own)
    edit.behind[total.name] += (
        MNNode(of_mean, "Mul", (sum_of, mean_of), (of_mean,)).near(own),
        MNNode(less, "Sub", (sum_of_squares, of_mean), (less,)).near(own),
        MNNode(result, "Relu", (less,), (result,)).near(own),
    )
    edit.gone |= {squares.name, total.name}
    if len(part.draft.readers(squares.inputs[0])) == 1 and squares.inputs[0] not in part.kept:
        edit.gone.add(differences.name)
    return edit


def _sum_and_mean(
    nodes: Sequence[MNNode], values: str, subtracted: str, part: Part
) -> tuple[MNNode, MNNode] | None:
    """Return the nodes of the sum and of the mean of ``values``, from which they differ."""
    total, squares, _ = nodes
    mean = part.draft.maker(_viewed(subtracted, part))
    if mean is None or mean.op not in ("Mul", SHARE):
        return None
    first, maker = part.draft.maker(mean.inputs[0]), part.draft.maker(values)
    if first is None or maker is None or first.op != "ReduceSum" or first.inputs[0] != values:
        return None
    if dict(total.attributes) != dict(first.attributes) or not _by_halves(values, part):
        return None
    if any(
        (one.side, one.segment) != (squares.side, squares.segment) for one in (maker, first, mean)
    ):
        return None
    records = part.values
    shape, axes = records[values].shape, dict(first.attributes).get("axes")
    sums = [records[one.outputs[0]].shape for one in (first, mean, total)]
    if not isinstance(axes, tuple) or 0 not in axes or sums != sums[:1] * 3:
        return None
    left = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    under = records[subtracted].shape
    # Views may exchange axes: only one axis may be left.
    if prod(left) > max(left):
        return None
    if (1,) * (len(left) - len(under)) + tuple(under) != left:
        return None
    fraction = prod(left) / prod(shape)
    known = _factor(mean, part) in (fraction, float(np.float32(fraction)))
    return (first, mean) if known else None


def _factor(product: MNNode, part: Part) -> object:
    """Return the number that a product multiplies by; None if it is no constant."""
    if product.op == SHARE:
        return dict(product.attributes)[FACTOR]
    number = part.facts.data.get(product.inputs[1])
    return None if number is None or number.size != 1 else float(number.item())


def _by_halves(name: str, part: Part) -> bool:
    """Whether a convolution in half without bias made a value."""
    product = part.draft.maker(_viewed(name, part))
    if product is None or product.op not in CONVOLUTIONS:
        return False
    biased = len([one for one in product.inputs if one]) > 2
    return not biased and precision_of(product, part.facts.target).words > WORDS_PER_LONG


def _viewed(name: str, part: Part) -> str:
    """Return the value that ``name`` is a view of."""
    while (maker := part.draft.maker(name)) is not None and maker.op in VIEWS:
        name = maker.inputs[0]
    return name


_DIFFERENCES = Pattern(frozenset({"Sub"}), only=False)
PART_VARIANCES = Rewrite(
    "part_variances",
    "the variance has a relative error of about 2^-24 (mean / deviation)^2",
    Pattern(frozenset({"ReduceSum"}), (Pattern(frozenset({"Mul"}), (_DIFFERENCES,)),)),
    _parted,
)
