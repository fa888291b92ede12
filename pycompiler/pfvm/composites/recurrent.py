"""Writes recurrent layers as steps of plain operators.

The products with the inputs of all steps are one product. Each step then adds the product with the
state before it. A layer in both directions is two such chains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from ...graph.dtypes import onnx_elem_type
from ..held import Array
from ..recurrent_layers import LAYERS, activations_of
from .writer import Writer

_INPUT, _WEIGHT, _STATE_WEIGHT, _BIAS, _LENGTHS, _STATE, _CELL, _PEEPHOLES = range(8)
#: The most steps that a compile writes out, over both directions.
MOST_STEPS = 128


def recurrent(write: Writer) -> bool:
    """Write out a layer that has few steps."""
    layer = Recurrent(write.node, write.types, write.taken, write.data, write.target)
    directions = write.type(_WEIGHT).shape[0]
    if layer.steps * directions > MOST_STEPS:
        return False
    layer.write()
    write.nodes += layer.nodes
    write.constants += layer.constants
    return True


class Recurrent(Writer):
    """Writes one layer."""

    def write(self) -> None:
        """Append the nodes of the layer."""
        steps, batch = self.steps, self._batch
        directions, _, size = self.type(_STATE_WEIGHT).shape
        sequences, states, cells = [], [], []
        for number in range(directions):
            backwards = number == 1 or self._text("direction", "forward") == "reverse"
            shape = steps, batch, size
            outs, state, cell = self._chain(number, shape, backwards)
            outs = outs or [self._zeros([0, size])]
            whole = outs[0] if len(outs) == 1 else self.op("Concat", *outs, axis=0)
            sequences.append(self.reshape(whole, [steps, 1, batch, size]))
            states.append(state)
            cells.append(cell)
        self._result(0, sequences, 1, [2, 0, 1, 3])
        self._result(1, [self.reshape(s, [1, batch, size]) for s in states], 0, [1, 0, 2])
        if self.node.op_type == "LSTM":
            self._result(2, [self.reshape(c, [1, batch, size]) for c in cells], 0, [1, 0, 2])

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.type(_INPUT).shape[1 if self._batch_first else 0]

    @property
    def _batch(self) -> int:
        return self.type(_INPUT).shape[0 if self._batch_first else 1]

    @property
    def _batch_first(self) -> bool:
        return bool(self.attribute("layout", 0))

    def _activated(self, value: str, number: int, place: int) -> str:
        """Append activation ``place`` of a direction, of a value clipped unless it is a cell."""
        clip = self.single("clip", 0.0)
        if clip > 0 and place < 2:
            value = self.op("Min", self.op("Max", value, self.number(-clip)), self.number(clip))
        directions = self.type(_WEIGHT).shape[0]
        found = activations_of(
            self.node.op_type,
            directions,
            [bytes(one).decode() for one in self.attribute("activations", [])],
            *(self.attribute(f"activation_{key}", []) for key in ("alpha", "beta")),
        )
        name, numbers = found[number * (len(found) // directions) + place]
        facts: dict[str, Any] = dict(numbers)
        if name == "Affine":
            value = self.op("Mul", value, self.number(numbers["alpha"]))
            return self.op("Add", value, self.number(numbers["beta"]))
        if name == "ScaledTanh":
            value = self.op("Tanh", self.op("Mul", value, self.number(numbers["beta"])))
            return self.op("Mul", value, self.number(numbers["alpha"]))
        return self.op(name, value, **facts)

    def _text(self, name: str, default: str) -> str:
        return bytes(self.attribute(name, default.encode())).decode()

    def _part(self, name: str, number: int, shape: list[int]) -> str:
        """Append the part of an operand for one direction, without the axis of directions."""
        return self.reshape(self.cut(name, [0], [number], [number + 1]), shape)

    def _result(self, index: int, parts: list[str], axis: int, turned: list[int]) -> None:
        """Write a result; ``turned`` is the order of its axes if the batch comes first."""
        name = self.node.output[index] if index < len(self.node.output) else ""
        if not name:
            return
        whole = parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)
        if self._batch_first:
            self.op("Transpose", whole, result=name, perm=turned)
        else:
            self.op("Identity", whole, result=name)

    def _zeros(self, shape: list[int]) -> str:
        elem = onnx_elem_type(self.type(_INPUT).elem)
        zeros: Array = np.zeros(shape, dtype=helper.tensor_dtype_to_np_dtype(elem))
        return self.constant(zeros, "zeros")

    def _start(self, index: int, number: int, shape: list[int]) -> str:
        name = self.input(index)
        if not name:
            return self._zeros(shape)
        if self._batch_first:
            name = self.op("Transpose", name, perm=[1, 0, 2])
        return self._part(name, number, shape)

    def _chain(
        self, number: int, shape: tuple[int, int, int], backwards: bool
    ) -> tuple[list[str], str, str]:
        """Append the steps of one direction; return its results in order and its last state."""
        steps, batch, size = shape
        gates, _ = LAYERS[self.node.op_type]
        width = self.type(_WEIGHT).shape[2]
        weight = self._part(self.node.input[_WEIGHT], number, [gates * size, width])
        own = self._part(self.node.input[_STATE_WEIGHT], number, [gates * size, size])
        value = self.node.input[_INPUT]
        if self._batch_first:
            value = self.op("Transpose", value, perm=[1, 0, 2])
        flat = self.reshape(value, [steps * batch, width])
        given = self.op("MatMul", flat, self.op("Transpose", weight, perm=[1, 0]))
        bias = self.input(_BIAS)
        more = ""
        if bias:
            both = self._part(bias, number, [2, gates * size])
            given = self.op("Add", given, self._part(both, 0, [gates * size]))
            more = self._part(both, 1, [gates * size])
        more = more or self._zeros([gates * size])
        given = self.reshape(given, [steps, batch, gates * size])
        own = self.op("Transpose", own, perm=[1, 0])
        state = self._start(_STATE, number, [batch, size])
        cell = self._start(_CELL, number, [batch, size]) if gates == 4 else ""
        lengths, peepholes = self.input(_LENGTHS), self.input(_PEEPHOLES)
        if lengths:
            lengths = self.reshape(lengths, [batch, 1])
        looks = [self._part(peepholes, number, [3 * size])] if peepholes else []
        outs: list[str] = []
        for step in reversed(range(steps)) if backwards else range(steps):
            now = self._part(given, step, [batch, gates * size])
            kept = self.op("Add", self.op("MatMul", state, own), more)
            before = state, cell
            state, cell = self._step(number, now, kept, state, cell, size, (own, more), looks)
            outs.append(state)
            if lengths:
                # Rows that are shorter keep their state, and their results are 0.
                within = self.op("Less", self.constant(np.array(step, np.int32), "step"), lengths)
                outs[-1] = self.op("Where", within, state, self._zeros([1, 1]))
                state, cell = (
                    self.op("Where", within, new, old) if new else ""
                    for new, old in zip((state, cell), before, strict=True)
                )
        return (outs[::-1] if backwards else outs), state, cell

    def _step(
        self,
        number: int,
        now: str,
        kept: str,
        state: str,
        cell: str,
        size: int,
        after: tuple[str, str],
        looks: list[str],
    ) -> tuple[str, str]:
        """Append a step of direction ``number``.

        ``now`` comes from the input, ``kept`` from the state before.

        ``after`` are the weights and the bias of the state, ``looks`` the peepholes if there are.
        """

        def gate(value: str, place: int) -> str:
            return self.cut(value, [1], [place * size], [(place + 1) * size])

        def opened(place: int, seen: str = "") -> str:
            total = self.op("Add", gate(now, place), gate(kept, place))
            for look in looks:
                own = self.cut(look, [0], [place * size], [(place + 1) * size])
                total = self.op("Add", total, self.op("Mul", own, seen))
            return self._activated(total, number, 0)

        kind = self.node.op_type
        if kind == "RNN":
            return self._activated(self.op("Add", now, kept), number, 0), ""
        if kind == "LSTM":
            taken = opened(0, cell)
            coupled = self.attribute("input_forget", 0)
            held = self.op("Sub", self.number(1.0), taken) if coupled else opened(2, cell)
            new = self._activated(self.op("Add", gate(now, 3), gate(kept, 3)), number, 1)
            cell = self.op("Add", self.op("Mul", held, cell), self.op("Mul", taken, new))
            return self.op("Mul", opened(1, cell), self._activated(cell, number, 2)), cell
        held, reset = opened(0), opened(1)
        before = self.op("Mul", reset, gate(kept, 2))
        if not self.attribute("linear_before_reset", 0):
            own, more = after
            end = [2 * size], [3 * size]
            before = self.op("MatMul", self.op("Mul", reset, state), self.cut(own, [1], *end))
            before = self.op("Add", before, self.cut(more, [0], *end))
        new = self._activated(self.op("Add", gate(now, 2), before), number, 1)
        # z * h + (1 - z) * n, with one product less.
        moved = self.op("Mul", held, self.op("Sub", state, new))
        return self.op("Add", new, moved), ""
