"""One product whose columns different readers take apart becomes one product for each reader.

Attention computes queries, keys and values as one product, and slices it. As three products, each
has the layout that suits its reader, and no slice moves words. The products have the same columns
and terms, so results have the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import onnx_ir as ir

from .replacing import DOMAINS, VIEWS, Made, constant_of, shape_of

#: The products that have columns and terms.
PRODUCTS = ("MatMul", "Gemm")


@dataclass(frozen=True)
class _Place:
    """Where the columns of the product are in a value.

    Index ``i`` of ``axis`` stands for columns ``i * inner`` to ``(i + 1) * inner``.
    """

    axis: int
    inner: int


@dataclass(frozen=True)
class _Part:
    """A range of an axis that a value is."""

    value: ir.Value
    start: int
    end: int


def split_products(model: ir.Model) -> None:
    """Split the products of the main graph by constant matrices, in place.

    The parts of the last value must not overlap, so nothing is computed twice. New nodes take over
    the source lines.
    """
    for product in list(model.graph):
        if product.op_type not in PRODUCTS or product.domain not in DOMAINS:
            continue
        matrix = constant_of(product.inputs[1])
        if matrix is None or matrix.ndim != 2 or flag(product, "transA"):
            continue
        columns = matrix.shape[0 if flag(product, "transB") else 1]
        added = [constant_of(one) for one in product.inputs[2:] if one is not None]
        if any(one is None or one.shape[-1:] != (columns,) for one in added):
            continue
        found = _chain(product)
        if found is not None:
            _rewrite(model.graph, product, *found)


def _chain(product: ir.Node) -> tuple[list[ir.Node], _Place, list[_Part]] | None:
    """Return the nodes between a product and its parts, the place of the columns, and the parts."""
    value = product.outputs[0]
    shape = shape_of(value)
    if shape is None:
        return None
    place, chain = _Place(len(shape) - 1, 1), list[ir.Node]()
    while True:
        users = [user.node for user in value.uses()]
        if value.is_graph_output() or not users:
            return None
        # Readers in the body of a control operator keep the value whole.
        if any(one.domain not in DOMAINS or one.graph is not product.graph for one in users):
            return None
        parts = _parts(value, users, place)
        if parts is not None:
            return chain, place, parts
        if len(users) != 1:
            return None
        moved = _through(users[0], value, place)
        if moved is None:
            return None
        chain.append(users[0])
        value, place = users[0].outputs[0], moved


def _through(node: ir.Node, value: ir.Value, place: _Place) -> _Place | None:
    """Return where the columns are behind a node; None if they cannot be taken apart there."""
    shape, result = shape_of(value), shape_of(node.outputs[0])
    if shape is None or result is None:
        return None
    if node.op_type == "Transpose":
        order = list(node.attributes.get_ints("perm", tuple(reversed(range(len(shape))))))
        return _Place(order.index(place.axis), place.inner)
    if node.op_type == "Add":
        other = node.inputs[1] if node.inputs[0] is value else node.inputs[0]
        data = constant_of(other)
        plain = place == _Place(len(shape) - 1, 1) and result == shape
        return place if plain and data is not None and data.shape == shape[-1:] else None
    if node.op_type not in VIEWS:
        return None
    above, size = prod(shape[: place.axis]), shape[place.axis]
    for axis, now in enumerate(result):
        if prod(result[:axis]) != above or now == 1 < size:
            continue
        if now == size:
            return _Place(axis, place.inner)
        # The axis is cut in two or more: its outermost part is taken apart.
        whole = size % now == 0 and any(
            prod(result[axis:end]) == size for end in range(axis, len(result) + 1)
        )
        return _Place(axis, place.inner * (size // now)) if whole else None
    return None


def _parts(value: ir.Value, users: Sequence[ir.Node], place: _Place) -> list[_Part] | None:
    """Return the parts that the readers of a value take; None if they do not take parts of it."""
    shape = shape_of(value)
    assert shape is not None
    size, out = shape[place.axis], list[_Part]()
    for user in users:
        found = _parts_of(user, value, place.axis, shape)
        if found is None:
            return None
        out += found
    ranges = sorted((part.start, part.end) for part in out)
    apart = all(a[1] <= b[0] for a, b in pairwise(ranges))
    whole = any(start == 0 and end == size for start, end in ranges)
    return out if len(out) > 1 and apart and not whole else None


def _parts_of(
    user: ir.Node, value: ir.Value, axis: int, shape: tuple[int, ...]
) -> list[_Part] | None:
    if user.inputs[0] is not value or value in user.inputs[1:]:
        return None
    if user.op_type == "Slice":
        return _part_of_slice(user, axis, shape)
    find = {"Gather": _part_of_gather, "Split": _parts_of_split}.get(user.op_type)
    if find is None or user.attributes.get_int("axis", 0) % len(shape) != axis:
        return None
    return find(user, axis, shape[axis])


def _part_of_gather(user: ir.Node, axis: int, size: int) -> list[_Part] | None:
    index = constant_of(user.inputs[1])
    if index is None or index.size != 1 or index.ndim > 1:
        return None
    at = int(index.reshape(())) % size
    return [_Part(user.outputs[0], at, at + 1)]


def _parts_of_split(user: ir.Node, axis: int, size: int) -> list[_Part] | None:
    sizes = [shape_of(out) for out in user.outputs]
    ends = np.cumsum([one[axis] for one in sizes if one is not None]).tolist()
    if len(ends) != len(sizes) or ends[-1] != size:
        return None
    return [
        _Part(out, start, end)
        for out, start, end in zip(user.outputs, [0, *ends], ends, strict=False)
        if out.uses() or out.is_graph_output()
    ]


def _part_of_slice(user: ir.Node, axis: int, shape: tuple[int, ...]) -> list[_Part] | None:
    arrays = [constant_of(one) for one in user.inputs[1:]]
    found = [array for array in arrays if array is not None and array.size == 1]
    if len(found) < len(arrays) or len(found) < 3:
        return None
    start, end, along, *steps = (int(array.reshape(())) for array in found)
    if along % len(shape) != axis or any(step != 1 for step in steps):
        return None
    start, end, _ = slice(start, end).indices(shape[axis])
    return [_Part(user.outputs[0], start, end)] if start < end else None


def _rewrite(
    graph: ir.Graph,
    product: ir.Node,
    chain: Sequence[ir.Node],
    place: _Place,
    parts: Sequence[_Part],
) -> None:
    readers = list(dict.fromkeys(part.value.producer() for part in parts))
    for number, part in enumerate(parts):
        made = Made(product, f"{number}")
        made.take_over(_computed(made, chain, place, part), part.value)
    for node in (*readers, *reversed(chain), product):
        assert node is not None
        graph.remove(node, safe=True)


def _computed(made: Made, chain: Sequence[ir.Node], place: _Place, part: _Part) -> ir.Value:
    """Write the nodes that compute one part."""
    columns, product = slice(part.start * place.inner, part.end * place.inner), made.like

    def parameter(value: ir.Value | None, axis: int) -> ir.Value:
        data = constant_of(value)
        assert data is not None
        return made.constant(data[(slice(None),) * axis + (columns,)])

    matrix = parameter(product.inputs[1], 0 if flag(product, "transB") else 1)
    added = [one for one in product.inputs[2:] if one is not None]
    bias = [parameter(one, len(shape_of(one) or (0,)) - 1) for one in added]
    width = columns.stop - columns.start
    shape = shape_of(product.outputs[0])
    assert shape is not None
    sizes = [*shape[:-1], width]
    given, facts = (product.inputs[0], matrix, *bias), product.attributes
    value = made(product.op_type, *given, shape=sizes, facts=facts)
    before, at = product.outputs[0], _Place(len(shape) - 1, 1)
    for node in chain:
        moved, shape = _through(node, before, at), shape_of(node.outputs[0])
        assert shape is not None
        assert moved is not None
        made.like, sizes = node, [*shape]
        sizes[moved.axis] = width // moved.inner
        if node.op_type in VIEWS:
            value = made.view(value, sizes)
        else:
            inputs = [value if one is before else parameter(one, 0) for one in node.inputs]
            value = made(node.op_type, *inputs, shape=sizes, facts=node.attributes)
        before, at = node.outputs[0], moved
    reader, shape = part.value.producer(), shape_of(part.value)
    assert reader is not None
    assert shape is not None
    made.like = reader
    return made.view(value, shape)


def flag(product: ir.Node, name: str) -> bool:
    """Whether a Gemm has the attribute; a MatMul has none."""
    return product.op_type == "Gemm" and bool(product.attributes.get_int(name, False))
