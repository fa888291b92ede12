"""Picking by index: as a Gather, or by comparing the index with every place of the axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx
from onnx import helper

from ...graph.dtypes import device_dtype, onnx_elem_type
from ...graph.graph import TensorType
from ..device_functions import LOOKUP
from ..held import Array
from ..well_formed import MOST_ELEMENTS
from . import in_dram, long_axes
from .writer import MOST_PLACES, MOVED, NUMBERS, Writer, axis_of

_LONG = onnx.TensorProto.INT64
#: So many picks from a long table are compared with all places: its pieces would not pay.
_FEW = 4


def _picked(write: Writer, table: str, index: str, axis: int, rank: int, size: int) -> str:
    """Append the elements of ``table`` at place ``index`` of ``axis``, as a masked sum.

    Both have ``rank`` axes. On ``axis``, ``index`` has size 1 and ``table`` has size ``size``.
    """
    elem = write.type(1).elem
    dtype = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(elem.upper()))
    wide = [size if place == axis else 1 for place in range(rank)]
    places = write.constant(np.arange(size, dtype=dtype).reshape(wide), "places")
    index = from_the_front(write, index, elem, size)
    chosen = write.op("Where", write.op("Equal", index, places), table, write.number(0.0))
    return write.op("ReduceSum", chosen, write.ints([axis]), keepdims=0)


def unsqueezed(write: Writer, value: str, axes: Sequence[int]) -> str:
    """Append axes of size 1."""
    return write.op("Unsqueeze", value, write.ints(axes)) if axes else value


def gather(write: Writer) -> str | bool:
    """Write a pick by known places, a Gather, or a comparison of places."""
    table, index = write.type(0), write.type(1)
    axis = axis_of(write, 0)
    name = write.node.input[1]
    given, size = write.data.get(name), table.shape[axis]
    shape = (*table.shape[:axis], *index.shape, *table.shape[axis + 1 :])
    if given is not None and given.size and long_axes.needs_dram(write, table.shape, axis, 1):
        places = given.reshape(-1) % size
        found = in_dram.pick(write, write.node.input[0], table.shape, axis, places)
        if found is not None:
            return write.op("Reshape", found, write.ints(shape))
    fits = given is not None and max(given.size, size) <= write.rows
    if given is not None and (given.size == 1 or (given.size and fits)):
        part = write.pick(write.node.input[0], axis, given.reshape(-1) % size)
        return write.op("Reshape", part, write.ints(shape))
    return gathered(write, name, index, axis)


def gather_nd(write: Writer) -> str | bool:
    """Merge the axes that the index picks from, and the numbers of the index, then gather."""
    table, index = write.type(0), write.type(1)
    count, inner = index.shape[-1], len(index.shape) - 1
    batches = int(write.attribute("batch_dims", 0))
    if not count or 0 in (*table.shape, *index.shape):
        return False
    if batches:
        return _gathered_in_batches(write, batches)
    name, numbers = write.node.input[1], TensorType(index.elem, index.shape[:-1])
    if name in write.data and (one := _picked_by_axes(write, table.shape, write.data[name])):
        return one
    if count == 1:
        return gathered(write, write.op("Squeeze", name, write.ints([inner])), numbers, 0)
    found = _merged(write, table.shape[:count])
    merged = TensorType(table.elem, (prod(table.shape[:count]), *table.shape[count:]))
    value = write.op("Reshape", write.node.input[0], write.ints(merged.shape))
    return gathered(write, found, numbers, 0, (value, merged))


def _merged(write: Writer, sizes: Sequence[int]) -> str:
    """Append the numbers of the index as one number each, for an axis merged of ``sizes``."""
    name, index = write.node.input[1], write.type(1)
    inner, found = len(index.shape) - 1, ""
    for place, size in enumerate(sizes):
        part = write.op("Slice", name, *(write.ints([v]) for v in (place, place + 1, inner)))
        part = write.op("Squeeze", part, write.ints([inner]))
        part = from_the_front(write, part, index.elem, size)
        if found:
            found = write.op("Mul", found, _number(write, index.elem, size))
        found = write.op("Add", found, part) if found else part
    return found


def _gathered_in_batches(write: Writer, batches: int) -> str | bool:
    """Merge the axes of the batches with those that the index picks from, and gather there."""
    table, index = write.type(0), write.type(1)
    outer, inner = index.shape[:batches], index.shape[batches:-1]
    sizes, rest = table.shape[batches:][: index.shape[-1]], table.shape[batches:][index.shape[-1] :]
    kind = helper.tensor_dtype_to_np_dtype(onnx_elem_type(index.elem))
    own = np.arange(prod(outer), dtype=kind) * prod(sizes)
    own = own.reshape(*outer, *[1] * len(inner))
    found = write.op("Add", _merged(write, sizes), write.constant(own, "batch"))
    merged = TensorType(table.elem, (prod(outer) * prod(sizes), *rest))
    value = write.op("Reshape", write.node.input[0], write.ints(merged.shape))
    return gathered(write, found, TensorType(index.elem, index.shape[:-1]), 0, (value, merged))


def _picked_by_axes(write: Writer, shape: Sequence[int], index: Array) -> str | bool:
    """Append a pick along each axis if axis ``n`` of the result alone tells index ``n``."""
    count, outer = index.shape[-1], index.shape[:-1]
    if len(outer) != count or 0 in outer or max(*outer, *shape[:count]) > write.rows:
        return False
    lists = []
    for axis in range(count):
        own = np.moveaxis(index[..., axis], axis, 0).reshape(outer[axis], -1)
        if (own != own[:, :1]).any():
            return False
        lists.append(own[:, 0] % shape[axis])
    value = write.node.input[0]
    for axis, places in enumerate(lists):
        value = write.pick(value, axis, places)
    return write.op("Identity", value)


def gathered(
    write: Writer,
    index: str,
    type: TensorType,
    axis: int,
    table: tuple[str, TensorType] | None = None,
) -> str | bool:
    """Append the elements that ``index``, of ``type``, picks from ``axis`` of the table.

    Rows of a long table of parameters stay a Gather. Any other long table is compared with the
    index place by place, or cut into pieces that a PE can hold. False if its element type forbids
    that, or if there are too many places.
    """
    value, whole = table or (write.node.input[0], write.type(0))
    shape, inner = whole.shape, len(type.shape)
    if 0 not in (*shape, *type.shape) and shape[axis] <= write.rows:
        counted = from_the_front(write, index, type.elem, shape[axis])
        return write.op("Gather", value, counted, axis=axis)
    if table is None and axis == 0 and (rows := _looked_up(write, index, type, whole)):
        return rows
    if whole.elem not in NUMBERS:
        return False
    few = prod(type.shape) <= _FEW
    if few or write.is_slice(prod((*shape, *type.shape))):
        rank = len(shape) + inner
        after = len(shape) - axis - 1
        # Axes: those before ``axis``, those of the index, ``axis`` itself, those after it.
        wide = unsqueezed(write, value, range(axis, axis + inner))
        places = [*range(axis), axis + inner, *range(rank - after, rank)]
        wide_index = unsqueezed(write, index, places)
        return _picked(write, wide, wide_index, axis + inner, rank, shape[axis])
    return _from_pieces(write, index, type, axis, value, shape)


def _from_pieces(
    write: Writer, index: str, type: TensorType, axis: int, value: str, shape: Sequence[int]
) -> str | bool:
    """Append what the pieces of a table have at the place within a piece; choose the right piece.

    Pieces are a power of two, so that they can lie on units. False if there are too many places.
    """
    if not write.rows or 0 in type.shape or shape[axis] > MOST_PLACES:
        return False
    columns = 1 << (write.rows.bit_length() - 1)
    rows = 1 << (-(-shape[axis] // columns) - 1).bit_length()
    more = rows * columns - shape[axis]
    if not write.is_slice(rows * prod((*shape, *type.shape)) // shape[axis]):
        return False
    if more:
        value = long_axes.pad(write, value, shape, axis, (0, more))
    value = write.reshape(value, (*shape[:axis], rows, columns, *shape[axis + 1 :]))
    place = write.cast(from_the_front(write, index, type.elem, shape[axis]), "float")
    row = write.op("Floor", write.op("Mul", place, _single(write, 1 / columns)))
    column = write.op("Sub", place, write.op("Mul", row, _single(write, columns)))
    found = write.op("Gather", value, write.cast(column, "int32"), axis=axis + 1)
    inner, behind = len(type.shape), len(shape) - axis - 1
    wide = [rows, *[1] * (inner + behind)]
    numbers = write.constant(np.arange(rows, dtype=np.float32).reshape(wide), "rows")
    row = unsqueezed(write, row, range(inner, inner + behind))
    chosen = write.op("Where", write.op("Equal", row, numbers), found, write.number(0.0))
    return write.op("ReduceSum", chosen, write.ints([axis]), keepdims=0)


def _single(write: Writer, value: float) -> str:
    return write.constant(np.asarray(value, np.float32), "number")


def _looked_up(write: Writer, index: str, type: TensorType, table: TensorType) -> str | bool:
    """Append a lookup of the rows of a matrix that is given; False if there is no such matrix."""
    name, width = write.node.input[0], prod(table.shape[1:])
    if 0 in (*table.shape, *type.shape) or table.elem not in MOVED:
        return False
    if width > write.longest_row * device_dtype(table.elem).words_per_long:
        return False
    if name in write.data and len(table.shape) != 2:
        name = write.constant(write.data[name].reshape(table.shape[0], width), "rows")
    elif name not in write.data and not (len(table.shape) == 2 and _picked_only(write, name)):
        return False
    counted = from_the_front(write, index, type.elem, table.shape[0])
    whole = bool(type.shape) and len(table.shape) == 2
    if not type.shape:
        counted = write.op("Reshape", counted, write.ints([1]))
    with write.as_one(LOOKUP, name, counted):
        rows = write.op("Gather", name, counted, axis=0)
    if whole:
        return rows
    return write.op("Reshape", rows, write.ints([*type.shape, *table.shape[1:]]))


def _picked_only(write: Writer, table: str) -> bool:
    """Whether ``table`` is an input of which all nodes pick rows, so that it can stay in DRAM."""

    def picks(node: onnx.NodeProto) -> bool:
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
        if node.op_type != "Gather" or axis % 2 or table in node.input[1:]:
            return False
        # A single known place is a Slice.
        index = node.input[1]
        return index in write.given or index in write.makers or prod(write.types[index].shape) != 1

    readers = (node for node in write.makers.values() if table in node.input)
    return table in write.given and all(picks(node) for node in readers)


def from_the_front(write: Writer, index: str, elem: str, size: int) -> str:
    """Append the index with ``size`` added where it counts from the end."""
    given = write.data.get(index)
    if given is not None:
        return write.constant(np.where(given < 0, given + size, given).astype(given.dtype), "index")
    below = write.op("Less", index, _number(write, elem, 0))
    whole = _number(write, elem, size)
    return write.op("Where", below, write.op("Add", index, whole), index)


def _number(write: Writer, elem: str, value: int) -> str:
    """Return the name of a constant of an integer type."""
    dtype = helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(elem.upper()))
    return write.constant(np.asarray(value, dtype=dtype), "number")


def gather_elements(write: Writer) -> str | bool:
    """Pick from each line along the axis by the line's own index."""
    table, index = write.type(0), write.type(1)
    axis = axis_of(write, 0)
    if prod(index.shape) * table.shape[axis] > MOST_ELEMENTS:
        return False
    value = write.node.input[0]
    for place, (own, wanted) in enumerate(zip(table.shape, index.shape, strict=True)):
        if place != axis and own != wanted:
            value = write.op("Slice", value, *(write.ints([v]) for v in (0, wanted, place)))
    wide = unsqueezed(write, value, [axis])
    wide_index = unsqueezed(write, write.node.input[1], [axis + 1])
    rank = len(table.shape) + 1
    found = _picked(write, wide, wide_index, axis + 1, rank, table.shape[axis])
    return write.op("Identity", found)


def one_hot(write: Writer) -> str | bool:
    """Compare the index with every place."""
    index, own = write.type(0), write.node.input[0]
    depth = write.data.get(write.node.input[1])
    if depth is None or write.type(2).elem not in (*NUMBERS, "bool"):
        return False
    if index.elem not in ("int64", "int32"):
        own, index = write.op("Cast", own, to=_LONG), TensorType("int64", index.shape)
    size, rank = int(depth.reshape(-1)[0]), len(index.shape) + 1
    axis = int(write.attribute("axis", -1)) % rank
    wide = [size if place == axis else 1 for place in range(rank)]
    places = write.constant(np.arange(size).reshape(wide).astype(index.elem), "places")
    own = from_the_front(write, own, index.elem, size)
    same = write.op("Equal", unsqueezed(write, own, [axis]), places)
    off, on = (write.reshape(write.cut(write.node.input[2], [0], [n], [n + 1]), []) for n in (0, 1))
    return write.op("Where", same, on, off)


def extreme_index(write: Writer) -> str | bool:
    """Find the first or last place of the extreme element; places are computed as floats."""
    shape = write.type(0).shape
    axis = axis_of(write, 0)
    if not shape or shape[axis] > MOST_PLACES:
        return False
    size = shape[axis]
    reduce = "ReduceMax" if write.node.op_type == "ArgMax" else "ReduceMin"
    last = int(write.attribute("select_last_index", 0))
    value = write.node.input[0]
    best = write.op(reduce, value, write.ints([axis]), keepdims=1)
    wide = [size if place == axis else 1 for place in range(len(shape))]
    places = write.constant(np.arange(size, dtype=np.float32).reshape(wide), "places")
    nowhere = write.constant(np.asarray(-1 if last else size, np.float32), "nowhere")
    where = write.op("Where", write.op("Equal", value, best), places, nowhere)
    keep = int(write.attribute("keepdims", 1))
    nearest = "ReduceMax" if last else "ReduceMin"
    found = write.op(nearest, where, write.ints([axis]), keepdims=keep)
    return write.op("Cast", found, to=_LONG)
