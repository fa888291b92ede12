"""Writes recurrent layers as steps of plain operators, which all have rules.

The products with the inputs of all steps are one product. Each step then adds the product with the
state before it. A layer in both directions is two such chains.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx

from ..graph.graph import TensorType
from ..pfvm.composites.writer import Writer
from ..pfvm.names import all_names
from ..pfvm.session import Array

_INPUT, _WEIGHT, _STATE_WEIGHT, _BIAS, _LENGTHS, _STATE, _CELL, _PEEPHOLES = range(8)
#: For each layer the number of its gates, and its activations by default.
_LAYERS = {"LSTM": (4, "Sigmoid Tanh Tanh"), "GRU": (3, "Sigmoid Tanh"), "RNN": (1, "Tanh")}
RECURRENT = frozenset(_LAYERS)


def written_as_steps(
    model: onnx.ModelProto, types: dict[str, TensorType], chosen: Collection[str]
) -> onnx.ModelProto:
    """Write out those recurrent layers whose first result is in ``chosen``.

    Layers with lengths of their own, peepholes, clipping, other activations or the batch in front
    stay.
    """
    taken = all_names(model.graph)
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    for node in model.graph.node:
        own = next(filter(None, node.output), "") in chosen and node.op_type in RECURRENT
        writer = _Layer(node, types, taken, {})
        if own and writer.write():
            nodes += writer.nodes
            constants += writer.constants
        else:
            nodes.append(node)
    if len(nodes) == len(model.graph.node):
        return model
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.extend(nodes)
    out.graph.initializer.extend(constants)
    return out


class _Layer(Writer):
    """Writes one layer."""

    def write(self) -> bool:
        """Append the nodes of the layer; False for a form that stays."""
        if not self._plain():
            return False
        steps, batch, _ = self.type(_INPUT).shape
        directions, _, size = self.type(_STATE_WEIGHT).shape
        sequences, states, cells = [], [], []
        for number in range(directions):
            backwards = number == 1 or self._text("direction", "forward") == "reverse"
            shape = steps, batch, size
            outs, state, cell = self._chain(number, shape, backwards)
            sequences.append(self._joined(outs, 0, [steps, 1, batch, size]))
            states.append(state)
            cells.append(cell)
        self._result(0, sequences, 1)
        self._result(1, [self.reshape(s, [1, batch, size]) for s in states], 0)
        if self.node.op_type == "LSTM":
            self._result(2, [self.reshape(c, [1, batch, size]) for c in cells], 0)
        return True

    def _plain(self) -> bool:
        _, activations = _LAYERS[self.node.op_type]
        directions = self.type(_WEIGHT).shape[0]
        given = [bytes(one).decode() for one in self.attribute("activations", [])]
        usual = activations.split() * directions
        if self.node.op_type == "RNN" and given == ["Relu"] * directions:
            usual = given
        options = (self.attribute(name, 0) for name in ("clip", "input_forget", "layout"))
        more = (self._name(index) for index in (_LENGTHS, _PEEPHOLES))
        return (not given or given == usual) and not any(options) and not any(more)

    def _text(self, name: str, default: str) -> str:
        return bytes(self.attribute(name, default.encode())).decode()

    def _name(self, index: int) -> str:
        return self.node.input[index] if index < len(self.node.input) else ""

    def _part(self, name: str, number: int, shape: list[int]) -> str:
        """Append the part of an operand for one direction, without the axis of directions."""
        return self.reshape(self.cut(name, [0], [number], [number + 1]), shape)

    def _joined(self, parts: list[str], axis: int, shape: list[int]) -> str:
        whole = parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)
        return self.reshape(whole, shape)

    def _result(self, index: int, parts: list[str], axis: int) -> None:
        name = self.node.output[index] if index < len(self.node.output) else ""
        if name and len(parts) == 1:
            self.op("Identity", parts[0], result=name)
        elif name:
            self.op("Concat", *parts, result=name, axis=axis)

    def _start(self, index: int, number: int, shape: list[int]) -> str:
        name = self._name(index)
        if name:
            return self._part(name, number, shape)
        return self.constant(np.zeros(shape, dtype=np.float32), "zeros")

    def _chain(
        self, number: int, shape: tuple[int, int, int], backwards: bool
    ) -> tuple[list[str], str, str]:
        """Append the steps of one direction; return its results in order and its last state."""
        steps, batch, size = shape
        gates, _ = _LAYERS[self.node.op_type]
        width = self.type(_WEIGHT).shape[2]
        weight = self._part(self.node.input[_WEIGHT], number, [gates * size, width])
        own = self._part(self.node.input[_STATE_WEIGHT], number, [gates * size, size])
        flat = self.reshape(self.node.input[_INPUT], [steps * batch, width])
        given = self.op("MatMul", flat, self.op("Transpose", weight, perm=[1, 0]))
        bias = self._name(_BIAS)
        more: Array | str = np.zeros(gates * size, dtype=np.float32)
        if bias:
            both = self._part(bias, number, [2, gates * size])
            given = self.op("Add", given, self._part(both, 0, [gates * size]))
            more = self._part(both, 1, [gates * size])
        more = more if isinstance(more, str) else self.constant(more, "zeros")
        given = self.reshape(given, [steps, batch, gates * size])
        own = self.op("Transpose", own, perm=[1, 0])
        state = self._start(_STATE, number, [batch, size])
        cell = self._start(_CELL, number, [batch, size]) if gates == 4 else ""
        outs: list[str] = []
        for step in reversed(range(steps)) if backwards else range(steps):
            now = self._part(given, step, [batch, gates * size])
            kept = self.op("Add", self.op("MatMul", state, own), more)
            state, cell = self._step(now, kept, state, cell, size, (own, more))
            outs.append(state)
        return (outs[::-1] if backwards else outs), state, cell

    def _step(
        self, now: str, kept: str, state: str, cell: str, size: int, after: tuple[str, str]
    ) -> tuple[str, str]:
        """Append a step: ``now`` comes from the input, ``kept`` from the state before.

        ``after`` are the weights and the bias of the state.
        """

        def gate(value: str, number: int) -> str:
            return self.cut(value, [1], [number * size], [(number + 1) * size])

        def sigmoid(number: int) -> str:
            return self.op("Sigmoid", self.op("Add", gate(now, number), gate(kept, number)))

        kind = self.node.op_type
        if kind == "RNN":
            given = [bytes(one).decode() for one in self.attribute("activations", [])]
            return self.op((given or ["Tanh"])[0], self.op("Add", now, kept)), ""
        if kind == "LSTM":
            taken, shown, held = (sigmoid(number) for number in range(3))
            new = self.op("Tanh", self.op("Add", gate(now, 3), gate(kept, 3)))
            cell = self.op("Add", self.op("Mul", held, cell), self.op("Mul", taken, new))
            return self.op("Mul", shown, self.op("Tanh", cell)), cell
        held, reset = sigmoid(0), sigmoid(1)
        before = self.op("Mul", reset, gate(kept, 2))
        if not self.attribute("linear_before_reset", 0):
            own, more = after
            end = [2 * size], [3 * size]
            before = self.op("MatMul", self.op("Mul", reset, state), self.cut(own, [1], *end))
            before = self.op("Add", before, self.cut(more, [0], *end))
        new = self.op("Tanh", self.op("Add", gate(now, 2), before))
        # z * h + (1 - z) * n, with one product less.
        moved = self.op("Mul", held, self.op("Sub", state, new))
        return self.op("Add", new, moved), ""
