"""LSTM, GRU and RNN for onnx's reference evaluator, in every form of the standard.

onnx's own classes ignore lengths of sequences, `clip`, `input_forget` and activations, and have not
all directions. onnxruntime has neither batches in front nor doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from .held import Array

_Activation = tuple[str, dict[str, float]]

#: For each layer the number of its gates, and its activations by default.
LAYERS = {"LSTM": (4, "Sigmoid Tanh Tanh"), "GRU": (3, "Sigmoid Tanh"), "RNN": (1, "Tanh")}
#: The activations, with the numbers that they take. The standard gives no defaults for some, or
#: onnxruntime takes others.
_NUMBERS: Mapping[str, dict[str, float]] = {
    "Relu": {},
    "Tanh": {},
    "Sigmoid": {},
    "Affine": {"alpha": np.nan, "beta": np.nan},
    "LeakyRelu": {"alpha": 0.01},
    "ThresholdedRelu": {"alpha": np.nan},
    "ScaledTanh": {"alpha": np.nan, "beta": np.nan},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Elu": {"alpha": 1.0},
    "Softsign": {},
    "Softplus": {},
}
#: Their names in lower case: the case does not count.
ACTIVATIONS = {name.lower(): name for name in _NUMBERS}
_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "Relu": lambda x: np.maximum(x, 0),
    "Tanh": np.tanh,
    "Sigmoid": lambda x: (1 + np.tanh(x / 2)) / 2,
    "Affine": lambda x, alpha, beta: alpha * x + beta,
    "LeakyRelu": lambda x, alpha: np.where(x >= 0, x, alpha * x),
    "ThresholdedRelu": lambda x, alpha: np.where(x > alpha, x, 0),
    "ScaledTanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "HardSigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "Elu": lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "Softsign": lambda x: x / (1 + abs(x)),
    "Softplus": lambda x: np.logaddexp(x, 0),
}


def activations_of(
    op: str, directions: int, given: Sequence[str], alpha: Sequence[float], beta: Sequence[float]
) -> list[_Activation]:
    """Return the activations of all directions with their numbers; case does not count.

    An activation takes the next of ``alpha`` and of ``beta`` if it has such a number.
    """
    left = {"alpha": list(alpha), "beta": list(beta)}
    found = []
    for text in given or LAYERS[op][1].split() * directions:
        name = ACTIVATIONS[text.lower()]
        numbers = {
            key: float(left[key].pop(0)) if left[key] else default
            for key, default in _NUMBERS[name].items()
        }
        found.append((name, numbers))
    return found


class _Recurrent(OpRun):
    op_domain = ""
    onnx_node: Any
    n_outputs: int

    def _run(self, *inputs: Any, **facts: Any) -> tuple[Array, ...]:
        given = [*inputs, *[None] * (8 - len(inputs))]
        x, weight, own, bias, lengths, state, cell, looks = given
        op, kind = self.onnx_node.op_type, x.dtype
        turned = bool(facts.get("layout"))
        if turned:
            x, state, cell = (None if a is None else a.swapaxes(0, 1) for a in (x, state, cell))
        (steps, batch, _), (directions, _, size) = x.shape, own.shape
        zeros = np.zeros((directions, batch, size), kind)
        lengths = np.full(batch, steps) if lengths is None else lengths
        names = [n.decode() if isinstance(n, bytes) else n for n in facts.get("activations") or ()]
        chosen = activations_of(
            op,
            directions,
            names,
            *(facts.get(f"activation_{key}") or () for key in ("alpha", "beta")),
        )
        each = len(chosen) // directions
        made = []
        for way in range(directions):
            one = _Direction(
                op,
                facts,
                chosen[way * each : (way + 1) * each],
                (weight[way], own[way]),
                np.zeros(2 * len(weight[way]), kind) if bias is None else bias[way],
                np.zeros(3 * size, kind) if looks is None else looks[way],
            )
            start = (zeros if state is None else state)[way], (zeros if cell is None else cell)[way]
            backwards = way == 1 or facts.get("direction") in ("reverse", b"reverse")
            made.append(one.run(x, *start, lengths, backwards))
        outs, states, cells = (np.stack(parts).astype(kind) for parts in zip(*made, strict=True))
        outs = outs.swapaxes(0, 1)
        if turned:
            outs, states = outs.transpose(2, 0, 1, 3), states.swapaxes(0, 1)
            cells = cells.swapaxes(0, 1)
        return (outs, states, cells)[: len(self.onnx_node.output)]


class _Direction:
    """One direction of a layer."""

    def __init__(
        self,
        op: str,
        facts: Mapping[str, Any],
        activations: Sequence[_Activation],
        weights: tuple[Array, Array],
        bias: Array,
        looks: Array,
    ):
        self.op, self.facts, self.activations = op, facts, activations
        self.weight, self.own = weights
        self.first, self.second = np.split(bias, 2)
        self.looks = np.split(looks, 3)

    def run(
        self, x: Array, state: Array, cell: Array, lengths: Array, backwards: bool
    ) -> tuple[Array, Array, Array]:
        """Return the results of all steps, and the last state and cell."""
        outs = np.zeros((len(x), *state.shape), x.dtype)
        for step in reversed(range(len(x))) if backwards else range(len(x)):
            within = (step < np.asarray(lengths))[:, None]
            new, kept = self.step(x[step], state, cell)
            outs[step] = np.where(within, new, 0)
            state, cell = np.where(within, new, state), np.where(within, kept, cell)
        return outs, state, cell

    def step(self, x: Array, state: Array, cell: Array) -> tuple[Array, Array]:
        """Return the next state and cell."""
        now = x @ self.weight.T + self.first
        then = state @ self.own.T + self.second
        gates = LAYERS[self.op][0]
        ours, theirs = np.split(now, gates, 1), np.split(then, gates, 1)
        if self.op == "RNN":
            return self.activated(0, now + then), cell
        if self.op == "GRU":
            held, reset = (self.activated(0, ours[i] + theirs[i]) for i in (0, 1))
            if self.facts.get("linear_before_reset"):
                before = reset * theirs[2]
            else:
                size = state.shape[1]
                before = (reset * state) @ self.own[2 * size :].T + self.second[2 * size :]
            new = self.activated(1, ours[2] + before)
            return (1 - held) * new + held * state, cell
        look_in, look_out, look_forget = self.looks
        taken = self.activated(0, ours[0] + theirs[0] + look_in * cell)
        held = 1 - taken
        if not self.facts.get("input_forget"):
            held = self.activated(0, ours[2] + theirs[2] + look_forget * cell)
        cell = held * cell + taken * self.activated(1, ours[3] + theirs[3])
        shown = self.activated(0, ours[1] + theirs[1] + look_out * cell)
        return shown * self.activated(2, cell), cell

    def activated(self, place: int, value: Array) -> Array:
        """Return an activation of a value, which is clipped unless it is a cell."""
        clip = float(self.facts.get("clip") or 0.0)
        name, numbers = self.activations[place]
        if clip > 0 and place < 2:
            value = np.clip(value, -clip, clip)
        return _FUNCTIONS[name](value, **numbers)


class LSTM(_Recurrent):
    """The layer LSTM."""


class GRU(_Recurrent):
    """The layer GRU."""


class RNN(_Recurrent):
    """The layer RNN."""
