"""Appends the step of an optimizer to a model with gradients.

The rate and the count of steps are inputs of the model, so the state has no scalars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log

import numpy as np

from .back import Back

#: The role of nodes that make a new value of a parameter or of a state (see differentiate.ROLE).
UPDATE = "update"


@dataclass(frozen=True)
class Group:
    """Parameters that an optimizer updates with the same settings.

    ``name`` begins the names of the group's inputs. ``kind`` is `sgd`, `adam` or `adamw`;
    ``settings`` are those of torch's optimizer. ``parameters`` maps the registered name of a
    parameter to the registered names of its state.
    """

    name: str
    kind: str
    settings: Mapping[str, float]
    parameters: Mapping[str, Mapping[str, str]]

    @property
    def rate(self) -> str:
        """The input with the learning rate: a float."""
        return f"{self.name}@mncore_learning_rate"

    @property
    def count(self) -> str:
        """The input with the number of steps that were done before: an int64."""
        return f"{self.name}@mncore_global_step"


@dataclass
class Step:
    """One group in one step; ``writer`` collects its nodes."""

    group: Group
    writer: Back
    _shared: dict[str, str] = field(default_factory=dict)

    def update(self, value: str, grad: str, state: Mapping[str, str]) -> dict[str, str]:
        """Append the update of a parameter; return the new values: `""` is the parameter's own."""
        settings = self.group.settings
        decay = settings["weight_decay"]
        if self.group.kind == "sgd":
            return self._sgd(value, self._decayed(grad, value, decay), state)
        if self.group.kind == "adam":
            return self._adam(value, self._decayed(grad, value, decay), state)
        w = self.writer
        if decay:
            less = w.op("Mul", value, w.times(self.group.rate, decay))
            return self._adam(w.op("Sub", value, less), grad, state)
        return self._adam(value, grad, state)

    def _decayed(self, grad: str, value: str, decay: float) -> str:
        w = self.writer
        return w.op("Add", grad, w.times(value, decay)) if decay else grad

    def _moved(self, value: str, move: str) -> str:
        return self.writer.op("Sub", value, self.writer.op("Mul", move, self.group.rate))

    def _sgd(self, value: str, grad: str, state: Mapping[str, str]) -> dict[str, str]:
        w, settings = self.writer, self.group.settings
        momentum, dampening = settings["momentum"], settings["dampening"]
        if not momentum:
            return {"": self._moved(value, grad)}
        new = w.times(grad, 1 - dampening)
        if dampening:  # torch's first step is not dampened
            new = w.op("Where", self._first(), grad, new)
        moved = w.op("Add", w.times(state["momentum_buffer"], momentum), new)
        goal = w.op("Add", grad, w.times(moved, momentum)) if settings["nesterov"] else moved
        return {"": self._moved(value, goal), "momentum_buffer": moved}

    def _adam(self, value: str, grad: str, state: Mapping[str, str]) -> dict[str, str]:
        w, settings = self.writer, self.group.settings
        beta1, beta2 = settings["beta1"], settings["beta2"]
        mean = w.op("Add", w.times(state["exp_avg"], beta1), w.times(grad, 1 - beta1))
        square = w.times(w.op("Mul", grad, grad), 1 - beta2)
        square = w.op("Add", w.times(state["exp_avg_sq"], beta2), square)
        size = self._once("size", lambda: w.op("Div", self.group.rate, self._correction(beta1)))
        root = self._once("root", lambda: w.op("Sqrt", self._correction(beta2)))
        scale = w.op("Div", w.op("Sqrt", square), root)
        scale = w.op("Add", scale, w.number(settings["eps"]))
        move = w.op("Div", w.op("Mul", mean, size), scale)
        return {"": w.op("Sub", value, move), "exp_avg": mean, "exp_avg_sq": square}

    def _first(self) -> str:
        w = self.writer
        zero = w.constant(np.zeros((), dtype=np.int64), "zero")
        return self._once("first", lambda: w.op("Equal", self.group.count, zero))

    def _correction(self, beta: float) -> str:
        """Append ``1 - beta^t`` for the step ``t``, from 1 on.

        Near 1, the difference would lose its digits. With ``u = t log(beta)`` it is
        ``-tanh(u / 2) (1 + e^u)``.
        """
        w = self.writer
        if not beta:
            return w.number(1.0)
        one = w.constant(np.ones((), dtype=np.int64), "one")
        count = self._once("count", lambda: w.op("Cast", w.op("Add", self.group.count, one), to=1))
        power = w.op("Mul", count, w.number(log(beta)))
        bent = w.op("Tanh", w.times(power, -0.5))
        return w.op("Mul", bent, w.op("Add", w.op("Exp", power), w.number(1.0)))

    def _once(self, what: str, make: object) -> str:
        if what not in self._shared:
            assert callable(make)
            self._shared[what] = make()
        return self._shared[what]
