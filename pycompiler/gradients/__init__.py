"""Differentiation of ONNX models: one rule per operator, without torch."""

from .differentiate import RULES, differentiable, differentiate

__all__ = ["RULES", "differentiable", "differentiate"]
