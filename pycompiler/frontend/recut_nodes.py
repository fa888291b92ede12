"""Reshapes, Slices, Gathers and Concats of rows in DRAM become MNCoreRecut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import onnx

from ..graph.graph import MNNode, TensorType
from ..graph.runs import RUNS, Run, followed
from ..pfvm.composites.writer import is_in_dram
from ..pfvm.session import Array
from ..pfvm.source import source_of

#: The graph's own operator; its layer explains it.
RECUT = "MNCoreRecut"


def recuts(
    protos: Mapping[str, onnx.NodeProto], types: Mapping[str, TensorType], data: Mapping[str, Array]
) -> dict[str, MNNode]:
    """Return the recuts that take the place of nodes which composites have marked, by name."""
    out: dict[str, MNNode] = {}
    for name, proto in protos.items():
        if not is_in_dram(proto):
            continue
        inputs = list(proto.input[:1])
        if proto.op_type == "Concat":
            inputs = list(dict.fromkeys(proto.input))
        runs = tuple(number for run in followed(_runs(proto, types, data)) for number in run)
        out[name] = MNNode(
            name,
            RECUT,
            tuple(inputs),
            tuple(proto.output),
            ((RUNS, runs),),
            source=source_of(proto),
        )
    return out


def _runs(
    proto: onnx.NodeProto, types: Mapping[str, TensorType], data: Mapping[str, Array]
) -> Iterator[Run]:
    """Yield the runs of a marked node in the order of the result."""
    goal = types[proto.output[0]].shape
    if proto.op_type == "Reshape":
        yield 0, 0, 0, prod(goal)
        return
    axis = next((a.i for a in proto.attribute if a.name == "axis"), 0) % len(goal)
    whole = types[proto.input[0]].shape
    parts: list[tuple[int, int, list[tuple[int, int]]]]  # input, length of its axis, stretches
    if proto.op_type == "Slice":
        start, stop, axis, *step = (int(data[name].reshape(-1)[0]) for name in proto.input[1:])
        places = range(whole[axis])[slice(start, stop, *step)]
        parts = [(0, whole[axis], list(_stretches(places)))]
    elif proto.op_type == "Gather":
        index = data[proto.input[1]].reshape(-1).tolist()
        parts = [(0, whole[axis], list(_stretches(index)))]
    else:
        numbers = {name: number for number, name in enumerate(dict.fromkeys(proto.input))}
        sizes = [types[name].shape[axis] for name in proto.input]
        own = zip(proto.input, sizes, strict=True)
        parts = [(numbers[name], size, [(0, size)]) for name, size in own]
    inner, to = prod(goal[axis + 1 :]), 0
    for row in range(prod(goal[:axis])):
        for source, size, stretches in parts:
            for first, count in stretches:
                yield source, (row * size + first) * inner, to, count * inner
                to += count * inner


def _stretches(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first place and the length of each run of places."""
    begin = 0
    for number in range(1, len(places) + 1):
        if number == len(places) or places[number] != places[number - 1] + 1:
            yield places[begin], number - begin
            begin = number
