"""How much memory a function needs for what it keeps between operators."""

from .plan import training_tensors
from .tensors import ACTIVATION, GRADIENT, KINDS, WEIGHT_GRADIENT, Tensor, tensors_of
from .uses import Use, lower_bound, packed, uses

__all__ = [
    "ACTIVATION",
    "GRADIENT",
    "KINDS",
    "WEIGHT_GRADIENT",
    "Tensor",
    "Use",
    "lower_bound",
    "packed",
    "tensors_of",
    "training_tensors",
    "uses",
]
