"""Sequences of several lengths: ReverseSequence, and TensorScatter, which writes into caches."""

from __future__ import annotations

import numpy as np

from ...graph.graph import TensorType
from .picking import gathered
from .scattering import MOST_UPDATES
from .writer import Writer, axis_of


def reverse(write: Writer) -> str | bool:
    """Gather the elements of all sequences, as rows of one table of both axes."""
    shape, lengths = write.type(0).shape, write.node.input[1]
    time = int(write.attribute("time_axis", 0))
    if {time, int(write.attribute("batch_axis", 1))} != {0, 1} or 0 in shape:
        return False
    wide, count = ([-1, 1], [1, -1])[:: 1 if time == 0 else -1], shape[time]

    def numbers(size: int, axis: int, step: int = 1) -> str:
        return write.constant(np.arange(size).reshape(wide[axis]) * step, "numbers")

    own, last = numbers(count, 0), write.reshape(lengths, wide[1])
    turned = write.op("Sub", write.op("Sub", last, write.constant(np.asarray(1), "one")), own)
    place = write.op("Where", write.op("Less", own, last), turned, own)
    # The number of a row: one axis moves on by 1, the other one by the size of the second axis.
    row, batch = (shape[1], 1) if time == 0 else (1, count)
    if row > 1:
        place = write.op("Mul", place, write.constant(np.asarray(row), "size"))
    place = write.op("Add", place, numbers(shape[1 - time], 1, batch))
    table = TensorType(write.type(0).elem, (shape[0] * shape[1], *shape[2:]))
    value = write.reshape(write.node.input[0], table.shape)
    places = TensorType("int64", shape[:2])
    return gathered(write, place, places, 0, (value, table))


def tensor_scatter(write: Writer) -> str | bool:
    """Write the update into each cache of the batch, from a place of its own on.

    Places that the compiler knows are joined parts; others are compared with all places.
    """
    value, update, first = (*write.node.input, "")[:3]
    shape, count = write.type(0).shape, write.type(1).shape
    axis = axis_of(write, -2)
    if not axis or 0 in (*shape, *count):
        return False
    size = shape[axis]
    circular = write.attribute("mode", b"linear") == b"circular"
    known = write.data.get(first, None if first else np.zeros(1, np.int64))
    if known is not None and len(set(known.reshape(-1).tolist())) == 1:
        start = int(known.reshape(-1)[0])
        return _joined(write, axis, start % size if circular else start)
    if count[axis] > MOST_UPDATES:
        return False

    def along(own: int, place: int) -> list[int]:
        return [own if at == place else 1 for at in range(len(shape))]

    def number(value: int) -> str:
        return write.constant(np.asarray(value), "number")

    own = write.op("Mod", first, number(size)) if circular else first
    begin = write.reshape(own, along(shape[0], 0))
    places = write.constant(np.arange(size).reshape(along(size, axis)), "places")
    for step in range(count[axis]):
        goal = write.op("Add", begin, number(step)) if step else begin
        if circular and step:
            round_again = write.op("Sub", goal, number(size))
            goal = write.op("Where", write.op("Less", goal, number(size)), goal, round_again)
        own = write.cut(update, [axis], [step], [step + 1]) if count[axis] > 1 else update
        value = write.op("Where", write.op("Equal", places, goal), own, value)
    return write.op("Identity", value)


def _joined(write: Writer, axis: int, start: int) -> str:
    """Append the update between what is before and behind it; its end may come round."""
    (value, update), size = write.node.input[:2], write.type(0).shape[axis]
    end = start + write.type(1).shape[axis]
    over = max(0, end - size)
    parts = [
        (update, size - start, size - start + over),
        (value, over, start),
        (update, 0, end - over - start),
        (value, end, size),
    ]
    used = [write.cut(name, [axis], [low], [high]) for name, low, high in parts if low < high]
    if len(used) > 1:
        return write.op("Concat", *used, axis=axis)
    return write.op("Identity", update)
