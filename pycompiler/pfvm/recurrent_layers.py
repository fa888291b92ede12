"""The forms of LSTM, GRU and RNN: their gates and activations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

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
