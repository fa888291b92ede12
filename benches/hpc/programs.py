"""What a program of the table is, and the list of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator], np.ndarray]
#: An input: its shape, if its elements are normal numbers, or what draws it.
Input = tuple[int, ...] | Draw
#: A function of `torch` or `numpy` and of arrays by name; it returns one array or a tuple.
Function = Callable[..., Any]


@dataclass(frozen=True)
class Program:
    """A function, its inputs by name, and the function that numpy runs.

    ``through_compile`` says that the function is one of numpy, and that torch traces it.
    """

    name: str
    function: Function
    reference: Function
    inputs: dict[str, Input]
    through_compile: bool = False

    def arrays(self, dtype: type[np.floating[Any]]) -> dict[str, np.ndarray]:
        """Draw the inputs, always the same; floats have ``dtype``, integers stay int64."""
        rng = np.random.default_rng(7)
        drawn = {
            name: given(rng) if callable(given) else rng.standard_normal(given)
            for name, given in self.inputs.items()
        }
        return {n: a.astype(dtype) if a.dtype.kind == "f" else a for n, a in drawn.items()}

    @property
    def size(self) -> str:
        """The shapes of the inputs as text, equal ones once."""
        shapes = [a.shape for a in self.arrays(np.float64).values()]
        texts = ("x".join(map(str, shape)) or "1" for shape in dict.fromkeys(shapes))
        return ", ".join(texts)


PROGRAMS: dict[str, Program] = {}


def program(
    name: str,
    reference: Function | None = None,
    through_compile: bool = False,
    **inputs: Input,
) -> Callable[[Function], Function]:
    """Put a function into the list under ``name``; ``reference`` is another text for numpy."""

    def add(function: Function) -> Function:
        assert name not in PROGRAMS, name
        PROGRAMS[name] = Program(name, function, reference or function, inputs, through_compile)
        return function

    return add


def copied(array: Any) -> Any:
    """Return a copy of a tensor or an array, for writes in place."""
    return array.copy() if isinstance(array, np.ndarray) else array.clone()


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Draw:
    """Draw numbers between two ends."""
    return lambda rng: rng.uniform(low, high, shape)


def whole(limit: int, *shape: int) -> Draw:
    """Draw integers from 0 to below ``limit``."""
    return lambda rng: rng.integers(0, limit, shape)


def positive_definite(*shape: int) -> Draw:
    """Draw symmetric matrices whose smallest eigenvalue is at least their size."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        a = rng.standard_normal(shape)
        return a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])

    return draw


def dominant(*shape: int) -> Draw:
    """Draw matrices whose diagonal is larger than the rest of its row."""
    return lambda rng: rng.uniform(-1, 1, shape) + 2 * shape[-1] * np.eye(shape[-1])
