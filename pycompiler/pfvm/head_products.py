"""Products whose columns or terms are cut into heads get an axis of heads.

Attention computes the columns of all heads as one axis, cuts it into heads, and joins the heads
again for its last product. Layouts cut axes at powers of two. If the width of a head has few
factors two, the digits of a layout do not end where heads end, and the cut moves every word, if
there is a way at all. With an axis of heads in the matrix, which costs nothing, no axis is ever cut
or joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import onnx_ir as ir

from .held import Array
from .replacing import DOMAINS, VIEWS, Made, constant_of, only_user, shape_of
from .split_products import PRODUCTS, flag


@dataclass(eq=False)
class Atom:
    """A factor of an axis that the views of a chain move as a whole."""

    size: int


class Atoms:
    """The atoms of a value, in the order of its elements, and how views have moved them."""

    def __init__(self, shape: Sequence[int]):
        #: The atoms of each axis of the first value.
        self.axes = [[Atom(size)] if size > 1 else [] for size in shape]
        #: The atoms of each axis of the value behind the views so far.
        self.now = [list(axis) for axis in self.axes]

    def take(self, node: ir.Node) -> bool:
        """Follow a view; False if it cuts an axis where atoms cannot be cut."""
        if node.op_type == "Transpose":
            order = node.attributes.get_ints("perm", tuple(reversed(range(len(self.now)))))
            self.now = [self.now[axis] for axis in order]
            return True
        shape = shape_of(node.outputs[0])
        return node.op_type in VIEWS and shape is not None and self._regroup(shape)

    def _regroup(self, shape: Sequence[int]) -> bool:
        rest = [atom for axis in self.now for atom in axis]
        cuts: list[tuple[Atom, Atom, Atom]] = []
        out: list[list[Atom]] = []
        for size in shape:
            own: list[Atom] = []
            while size > 1:
                atom = rest.pop(0)
                if size % atom.size:
                    if atom.size % size:
                        return False
                    outer, inner = Atom(size), Atom(atom.size // size)
                    cuts.append((atom, outer, inner))
                    rest.insert(0, inner)
                    atom = outer
                own.append(atom)
                size //= atom.size
            out.append(own)
        self.now = out
        for atom, outer, inner in cuts:
            for axis in self.axes:
                if atom in axis:
                    at = axis.index(atom)
                    axis[at : at + 1] = [outer, inner]
        return True


def use_heads(model: ir.Model) -> None:
    """Give the products of the main graph by constant matrices an axis of heads, in place.

    New nodes take over the source lines. Sums over heads are added in another order than before.
    """
    for product in list(model.graph):
        if product.graph is model.graph and _matrix(product) is not None:
            _cut_columns(model.graph, product)
    for product in list(model.graph):
        if product.graph is model.graph and _matrix(product) is not None:
            _join_terms(model.graph, product)


def _matrix(product: ir.Node) -> Array | None:
    """Return the constant matrix of a product, terms by columns."""
    if product.op_type not in PRODUCTS or product.domain not in DOMAINS:
        return None
    matrix = constant_of(product.inputs[1])
    plain = all(product.attributes.get_float(n, 1.0) == 1.0 for n in ("alpha", "beta"))
    if matrix is None or matrix.ndim != 2 or not plain or flag(product, "transA"):
        return None
    return matrix.T if flag(product, "transB") else matrix


def _awkward(heads: Sequence[Atom], value: Sequence[Sequence[Atom]]) -> bool:
    """Whether an axis has heads that the layouts of ``value``, its other form, cut badly.

    The odd part of their width is larger than the even part, and the heads stand apart: otherwise
    one layout of the joined elements serves both forms.
    """
    width = heads[-1].size if len(heads) > 1 else 1
    order = [id(atom) for axis in value for atom in axis]
    places = [order.index(id(atom)) for atom in heads]
    apart = any(later != place + 1 for place, later in pairwise(places))
    return apart and (width & -width) ** 2 < width


def _cut_columns(graph: ir.Graph, product: ir.Node) -> None:
    """Replace a product and the views behind it, which cut its columns into heads."""
    matrix = _matrix(product)
    shape, rows_shape = shape_of(product.outputs[0]), shape_of(product.inputs[0])
    if matrix is None or shape is None or rows_shape is None:
        return
    if (behind := _behind(product, shape, graph)) is None:
        return
    chain, added, atoms = behind
    heads, result = atoms.axes[-1], shape_of(chain[-1].outputs[0])
    if result is None or not _awkward(heads, atoms.now):
        return
    made = Made(product, "heads")
    *outer, width = heads
    rows = [atom for axis in atoms.axes[:-1] for atom in axis] or [Atom(1)]
    counts, sizes = _sizes(outer), _sizes(rows)
    x = made.view(product.inputs[0], [1] * len(outer) + sizes + [rows_shape[-1]])
    ones = [1] * (len(rows) - 1)
    parts = np.moveaxis(matrix.reshape(len(matrix), *counts, width.size), 0, -2)
    weights = made.constant(parts.reshape(*counts, *ones, len(matrix), width.size))
    value = made("MatMul", x, weights, shape=[*counts, *sizes, width.size])
    for one in added:
        assert one is not None
        bias = made.constant(one.reshape(*counts, 1, *ones, width.size))
        value = made("Add", value, bias, shape=[*counts, *sizes, width.size])
    order = [atom for axis in atoms.now for atom in axis]
    value = transposed(made, value, [*outer, *rows, width], order)
    made.put(made.view(value, result), chain)


def _behind(
    product: ir.Node, shape: Sequence[int], graph: ir.Graph
) -> tuple[list[ir.Node], list[Array | None], Atoms] | None:
    """Return a product with the sum and the views behind it, what is added to it, and its atoms.

    None if that is no constant for each column.
    """
    added = [constant_of(one) for one in product.inputs[2:] if one is not None]
    chain = [product]
    user = only_user(product.outputs[0], graph)
    if user is not None and user.op_type == "Add" and not added:
        other = user.inputs[1] if user.inputs[0] is product.outputs[0] else user.inputs[0]
        added.append(constant_of(other))
        chain.append(user)
        user = only_user(user.outputs[0], graph)
    if any(one is None or one.shape != tuple(shape[-1:]) for one in added):
        return None
    atoms = Atoms(shape)
    while user is not None and user.inputs[0] is chain[-1].outputs[0] and atoms.take(user):
        chain.append(user)
        user = only_user(user.outputs[0], graph)
    return chain, added, atoms


def _join_terms(graph: ir.Graph, product: ir.Node) -> None:
    """Replace a product and the views in front of it, which join the heads of its terms."""
    matrix, before = _matrix(product), _before(product, graph)
    if matrix is None or before is None:
        return
    chain, atoms = before
    heads, source = atoms.now[-1], chain[-1].inputs[0]
    result = shape_of(product.outputs[0])
    if not _awkward(heads, atoms.axes) or result is None or source is None:
        return
    made = Made(product, "heads")
    *outer, width = heads
    rows = [atom for axis in atoms.now[:-1] for atom in axis]
    order = [atom for axis in atoms.axes for atom in axis]
    if not rows:
        rows = [Atom(1)]
        order = [*rows, *order]
    x = made.view(source, _sizes(order))
    x = transposed(made, x, order, [*outer, *rows, width])
    counts, sizes = _sizes(outer), _sizes(rows)
    ones = [1] * (len(rows) - 1)
    weights = made.constant(matrix.reshape(*counts, *ones, width.size, matrix.shape[1]))
    found = made("MatMul", x, weights, shape=[*counts, *sizes, matrix.shape[1]])
    axes = made.constant(np.arange(len(outer), dtype=np.int64))
    found = made("ReduceSum", found, axes, shape=[*sizes, matrix.shape[1]], keepdims=0)
    biases = [one for one in product.inputs[2:] if one is not None]
    # A row is added in front of the view, which may then join the views behind the product.
    rowed = [one for one in biases if len(shape_of(one) or (1, 1)) == 1]
    for bias in rowed:
        found = made("Add", found, bias, shape=[*sizes, matrix.shape[1]])
    found = made.view(found, result)
    for bias in biases:
        if bias not in rowed:
            found = made("Add", found, bias, shape=result)
    made.put(found, chain[::-1])


def _before(product: ir.Node, graph: ir.Graph) -> tuple[list[ir.Node], Atoms] | None:
    """Return a product and the views in front of it that nothing else reads, the last one first."""
    chain = [product]
    while (value := chain[-1].inputs[0]) is not None and (node := value.producer()) is not None:
        views = node.op_type == "Transpose" or node.op_type in VIEWS
        if not views or node.domain not in DOMAINS or only_user(value, graph) is not chain[-1]:
            break
        chain.append(node)
    while len(chain) > 1:
        shape = shape_of(chain[-1].inputs[0])
        atoms = Atoms(shape) if shape is not None else None
        if atoms is not None and all(atoms.take(node) for node in reversed(chain[1:])):
            return chain, atoms
        chain.pop()
    return None


def _sizes(atoms: Iterable[Atom]) -> list[int]:
    return [atom.size for atom in atoms]


def transposed(made: Made, value: ir.Value, have: Sequence[Atom], want: Sequence[Atom]) -> ir.Value:
    """Return a value with the axes ``have`` in another order."""
    # Atoms of one element stand nowhere in particular.
    place = {id(atom): number for number, atom in enumerate(have)}
    order = [place[id(atom)] for atom in want]
    order = [number for number in range(len(have)) if number not in order] + order
    if order == sorted(order):
        return value
    shape = shape_of(value)
    assert shape is not None
    return made("Transpose", value, shape=[shape[axis] for axis in order], perm=order)
