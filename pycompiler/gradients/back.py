"""Writes the nodes of one node's backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

from ..pfvm.composites.writer import Writer

#: Appends the gradients of a node's inputs; False for a form of the operator without a rule.
Rule = Callable[["Back"], bool]


@dataclass
class Back(Writer):
    """Collects the nodes that compute the gradients of one node's inputs."""

    #: the gradient of each output; empty where none arrives
    grads: Sequence[str] = ()
    #: whether each input needs a gradient
    wanted: Sequence[bool] = ()
    #: the gradients that the rule gave, by input
    found: dict[int, str] = field(default_factory=dict)

    @property
    def grad(self) -> str:
        """The gradient of the first output."""
        return self.grads[0]

    def wants(self, index: int) -> bool:
        """Whether an input needs a gradient."""
        return index < len(self.wanted) and self.wanted[index]

    def give(self, index: int, value: str) -> None:
        """Set the gradient of an input, in the shape of that input."""
        self.found[index] = value

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of an input."""
        return self.type(index).shape

    def result_shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the shape of an output."""
        return self.types[self.node.output[index]].shape

    def known(self, index: int) -> list[int] | None:
        """Return the integers of a constant input; None if it is left out or no constant."""
        name = self.input(index)
        if not name or name not in self.data:
            return None
        return [int(value) for value in np.asarray(self.data[name]).ravel()]

    def unbroadcast(self, value: str, given: Sequence[int], wanted: Sequence[int]) -> str:
        """Append the sum of ``value``, of shape ``given``, over the axes that were repeated."""
        if tuple(given) == tuple(wanted):
            return value
        more = len(given) - len(wanted)
        axes = list(range(more))
        axes += [more + a for a, size in enumerate(wanted) if size == 1 and given[more + a] != 1]
        if axes:
            value = self.op("ReduceSum", value, self.ints(axes), keepdims=1)
        return self.reshape(value, wanted) if more else value

    def give_each(self, index: int, value: str) -> None:
        """Set the gradient of an input that was broadcast to the shape of the output."""
        self.give(index, self.unbroadcast(value, self.result_shape(), self.shape(index)))

    def times(self, value: str, factor: float) -> str:
        """Append a product with a number."""
        return value if factor == 1.0 else self.op("Mul", value, self.number(factor))

    def number_like(self, index: int) -> str:
        """Return the name of a zero of the element type of an input."""
        elem = onnx.TensorProto.DataType.Value(self.type(index).elem.upper())
        dtype = helper.tensor_dtype_to_np_dtype(elem)
        return self.constant(np.zeros((), dtype=dtype), "zero")

    def where(self, condition: str, value: str) -> str:
        """Append ``value`` where ``condition`` holds, and 0 elsewhere."""
        return self.op("Where", condition, value, self.number(0.0))

    def turned(self, value: str, rank: int) -> str:
        """Append the transposition of the last two axes."""
        return self.op("Transpose", value, perm=[*range(rank - 2), rank - 1, rank - 2])
