"""Scan and Loop with a known number of turns become their bodies, one after the other.

The device has no branches. A Loop is taken apart if its number of turns is a constant and its
condition stays true; a Scan if the length of its axis is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from .composites.writer import Rule, Writer, rewritten
from .declared import constants
from .held import array_of
from .known_shapes import known_types
from .names import bodies_of, nodes_of, own_names, rename
from .opsets import OLDEST, STANDARD, opset_of
from .prepare import until_settled

#: The most turns, and the most nodes that all turns of all loops may make.
_MOST_TURNS, _MOST_NODES = 128, 2048
#: Loops hold loops; deeper ones run on the host.
_DEEPEST = 4


@dataclass(frozen=True)
class _Turns:
    """How the body of a node is called.

    A body that is ``counted`` reads its turn and a condition, and gives a condition. It then reads
    the state and a part of each value of ``read``, with the axis and whether it begins at the end.
    It gives the state, and values that are joined along an axis, perhaps backwards (``joined``).
    """

    count: int
    state: tuple[str, ...]
    read: tuple[tuple[str, int, bool], ...]
    counted: bool
    joined: tuple[tuple[int, bool], ...]


def unrolled(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without loops of known lengths, also those inside of others."""
    return until_settled(model, unroll, _DEEPEST)


def unroll(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without the loops of its graph that can be taken apart.

    ``model`` has inferred types.
    """
    if opset_of(model) < OLDEST:
        return model
    types, known = known_types(model.graph), constants(model.graph)
    shapes, room = {name: shape for name, (_, shape) in types.items()}, _MOST_NODES

    def rule_of(node: onnx.NodeProto) -> Rule | None:
        nonlocal room
        turns_of = _RULES.get(node.op_type) if node.domain in STANDARD else None
        turns = None if turns_of is None else turns_of(node, shapes, known)
        if turns is None:
            return None
        size = sum(len(list(nodes_of(body))) for body in bodies_of(node))
        made = turns.count * (size + len(turns.read))
        if not 0 < turns.count <= _MOST_TURNS or made > room:
            return None
        room -= made
        return lambda write: _write(write, turns)

    return rewritten(model, {}, rule_of)


def _write(write: Writer, turns: _Turns) -> bool:
    """Append all turns of a loop."""
    node, (body,) = write.node, bodies_of(write.node)
    kept = {t.name: write.constant(array_of(t), t.name) for t in body.initializer}
    true = write.constant(np.array(True), "true") if turns.counted else ""
    state, joined = list(turns.state), [[] for _ in turns.joined]  # type: ignore[var-annotated]
    for turn in range(turns.count):
        given = [write.constant(np.array(turn), f"{turn}"), true] if turns.counted else []
        given += state
        for value, axis, backwards in turns.read:
            at = np.array(turns.count - 1 - turn if backwards else turn)
            given.append(write.op("Gather", value, write.constant(at, "at"), axis=axis))
        names = dict(zip((value.name for value in body.input), given, strict=True)) | kept
        made = _copy(write, body, names, f"{node.name or node.op_type}.{turn}")
        write.nodes += made.node
        results = [value.name for value in made.output][int(turns.counted) :]
        state = results[: len(state)]
        for values, one in zip(joined, results[len(state) :], strict=True):
            values.append(one)
    for value, name in zip(state, node.output, strict=False):
        if name:
            write.op("Identity", value, result=name)
    ends = zip(node.output[len(state) :], joined, turns.joined, strict=False)
    for name, values, (axis, backwards) in ends:
        if name:
            axes, ordered = write.ints([axis]), reversed(values) if backwards else values
            parts = [write.op("Unsqueeze", value, axes) for value in ordered]
            write.op("Concat", *parts, result=name, axis=axis)
    return True


def _copy(
    write: Writer, body: onnx.GraphProto, names: Mapping[str, str], stem: str
) -> onnx.GraphProto:
    """Return a body with the given names for its inputs and constants, and new ones for all."""
    made = onnx.GraphProto()
    made.CopyFrom(body)
    inner = own_names(made) - set(names) - {""}
    new = {name: write.name(f"{stem}.{name}") for name in sorted(inner)}
    rename(made, {**new, **names})
    for node in nodes_of(made):
        node.name = f"{stem}.{node.name or node.op_type}"
    return made


def _scan(
    node: onnx.NodeProto,
    shapes: Mapping[str, tuple[int, ...]],
    known: Mapping[str, onnx.TensorProto],
) -> _Turns | None:
    facts = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    count = int(facts["num_scan_inputs"])
    states = len(node.input) - count
    state, scanned = tuple(node.input[:states]), list(node.input[states:])
    outputs = len(bodies_of(node)[0].output) - states
    axes = [int(axis) for axis in facts.get("scan_input_axes", [0] * count)]
    backwards = [bool(way) for way in facts.get("scan_input_directions", [0] * count)]
    lengths = {shapes[n][axis] for n, axis in zip(scanned, axes, strict=True) if n in shapes}
    if len(lengths) != 1 or any(name not in shapes for name in scanned):
        return None
    joined = zip(
        (int(axis) for axis in facts.get("scan_output_axes", [0] * outputs)),
        (bool(way) for way in facts.get("scan_output_directions", [0] * outputs)),
        strict=True,
    )
    read = tuple(zip(scanned, axes, backwards, strict=True))
    return _Turns(lengths.pop(), state, read, False, tuple(joined))


def _loop(
    node: onnx.NodeProto,
    shapes: Mapping[str, tuple[int, ...]],
    known: Mapping[str, onnx.TensorProto],
) -> _Turns | None:
    trips, condition = (*node.input, "", "")[:2]
    (body,) = bodies_of(node)
    if trips not in known or (condition and not _is_true(known.get(condition))):
        return None
    if not _stays_true(body):
        return None
    state = tuple(node.input[2:])
    joined = ((0, False),) * (len(body.output) - 1 - len(state))
    count = int(array_of(known[trips]).reshape(-1)[0])
    return _Turns(count, state, (), True, joined)


def _is_true(tensor: onnx.TensorProto | None) -> bool:
    return tensor is not None and bool(array_of(tensor).all())


def _stays_true(body: onnx.GraphProto) -> bool:
    """Whether the condition that a body gives is the one that it got, or a constant."""
    name, given = body.output[0].name, body.input[1].name
    makers = {n.output[0]: n for n in body.node if n.op_type == "Identity" and not n.domain}
    while name in makers:
        name = makers[name].input[0]
    return name == given or _is_true(constants(body).get(name))


_RULES = {"Scan": _scan, "Loop": _loop}
