"""Reshapes, Slices and Concats of rows in DRAM become MNCoreRecut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import onnx

from ..graph.graph import MNNode, TensorType
from ..pfvm.composites.writer import is_in_dram
from ..pfvm.session import Array
from ..pfvm.source import source_of

#: The graph's own operator; its layer explains it.
RECUT = "MNCoreRecut"


def recuts(
    protos: Mapping[str, onnx.NodeProto],
    types: Mapping[str, TensorType],
    data: Mapping[str, Array],
) -> dict[str, MNNode]:
    """Return the recuts that take the place of nodes which composites have marked, by name."""
    out: dict[str, MNNode] = {}
    for name, proto in protos.items():
        if not is_in_dram(proto):
            continue
        inputs, runs = list(proto.input[:1]), list[int]()
        goal = types[proto.output[0]].shape
        if proto.op_type == "Reshape":
            runs = [0, 0, 0, prod(goal)]
        elif proto.op_type == "Slice":
            length = types[inputs[0]].shape[-1]
            start = int(data[proto.input[1]].reshape(-1)[0])
            for row in range(prod(goal[:-1])):
                runs += [0, row * length + start, row * goal[-1], goal[-1]]
        elif proto.op_type == "Gather":
            length = types[inputs[0]].shape[-1]
            picked = list(_picked(data[proto.input[1]].tolist()))
            for row in range(prod(goal[:-1])):
                for start, to, count in picked:
                    runs += [0, row * length + start, row * goal[-1] + to, count]
        else:
            inputs = list(dict.fromkeys(proto.input))
            for row in range(prod(goal[:-1])):
                to = row * goal[-1]
                for own in proto.input:
                    size = types[own].shape[-1]
                    runs += [inputs.index(own), row * size, to, size]
                    to += size
        facts = (("runs", tuple(runs)),)
        out[name] = MNNode(
            name, RECUT, tuple(inputs), tuple(proto.output), facts, source=source_of(proto)
        )
    return out


def _picked(places: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the first place, the first element of the result and the length of each run."""
    begin = 0
    for number in range(1, len(places) + 1):
        if number == len(places) or places[number] != places[number - 1] + 1:
            yield places[begin], begin, number - begin
            begin = number
