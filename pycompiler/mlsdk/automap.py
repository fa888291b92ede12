"""Functions over nested tuples, lists, dicts, named tuples and dataclasses.

Nested arguments are flattened to a dict of tensors named by their paths, and restored from it.
Arguments that are not tensors (numbers, texts, None, arrays of numpy) are part of the compiled
function: each call must repeat the values of compile time.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence, Set
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ..errors import error
from ..frontend.export import Function
from ..runtime.proxy import TensorProxy
from ..summary.performance import Performance
from .caches import leaves_of_caches, look_into_caches
from .function import CompiledFunction, TensorLike

Class = TypeVar("Class", bound=type)


def register_pytree_namedtuple(cls: Class) -> Class:
    """Let ``compile_automap`` look into a NamedTuple; a class decorator. P0704."""
    if not (isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")):
        raise error("P0704", name="cls", value=repr(cls), legal="a NamedTuple class")
    # torch looks into every named tuple, so there is nothing to register.
    return cls


def register_pytree_dataclass(cls: Class) -> Class:
    """Let ``compile_automap`` look into a dataclass; a class decorator. P0704."""
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise error("P0704", name="cls", value=repr(cls), legal="a dataclass")
    if cls not in pytree.SUPPORTED_NODES:
        pytree.register_dataclass(cls)
    return cls


class Arguments:
    """The arguments of a call: their structure, their tensors, and all other values.

    Arguments are named by the function's parameters, however they are passed. P0603 if the function
    does not take them, P0704 for a cache of transformers that torch cannot look into.
    """

    def __init__(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]):
        self._signature = _signature(function)
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as problem:
            signature = f"arguments that fit {self._signature}"
            raise error("P0603", problem=str(problem), signature=signature) from problem
        bound.apply_defaults()
        look_into_caches(bound.arguments)
        found, self.tree = pytree.tree_flatten_with_path(dict(bound.arguments))
        self._leaves: dict[str, Any] = {}
        for path, leaf in found:
            name = ".".join(map(_step, path))
            while name in self._leaves:  # a key with a dot
                name += "'"
            self._leaves[name] = _own(leaf)

    @property
    def tensors(self) -> dict[str, TensorLike]:
        """The tensors by name."""
        return {name: leaf for name, leaf in self._leaves.items() if _is_tensor(leaf)}

    def rebuilt(self, tensors: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments with other tensors."""
        leaves = [tensors.get(name, leaf) for name, leaf in self._leaves.items()]
        arguments = pytree.tree_unflatten(leaves, self.tree)
        bound = inspect.BoundArguments(self._signature, arguments)
        return bound.args, bound.kwargs

    def check(self, call: Arguments) -> None:
        """Raise P0603 unless ``call`` differs from these arguments only in its tensors."""
        signature = f"the structure given at compile time, with tensors {', '.join(self.tensors)}"
        if call._leaves.keys() != self._leaves.keys():
            raise error("P0603", problem="they have another structure", signature=signature)
        for name, mine in self._leaves.items():
            its = call._leaves[name]
            if _is_tensor(mine) != _is_tensor(its):
                problem = f"`{name}` is a {type(its).__name__}"
                raise error("P0603", problem=problem, signature=signature)
            if not _is_tensor(mine) and not _same(mine, its):
                problem = f"`{name}` is {its!r}, it was {mine!r} at compile time"
                raise error("P0603", problem=problem, signature=signature)


def _is_tensor(leaf: object) -> bool:
    return isinstance(leaf, TensorLike)


def _own(leaf: Any) -> Any:
    """Return a leaf; of an array a copy, because the caller may change it later. P0704."""
    inside = leaf if isinstance(leaf, Set) else getattr(leaf, "__dict__", {}).values()
    if not isinstance(leaf, TensorLike | torch.nn.Module) and any(map(_is_tensor, inside)):
        legal = "in tuples, lists, dicts and registered classes: see register_pytree_dataclass"
        raise error("P0704", name="tensors", value=f"in a {type(leaf).__name__}", legal=legal)
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _same(mine: Any, its: Any) -> bool:
    """Whether two constants are equal, bit by bit, and of one kind: 1 is no 1.0."""
    a, b = np.asarray(mine), np.asarray(its)
    if "O" in a.dtype.kind + b.dtype.kind:
        return bool(mine == its)
    alike = a.dtype == b.dtype or (a.dtype.kind == b.dtype.kind and not a.ndim)
    return alike and a.shape == b.shape and a.tobytes() == b.astype(a.dtype).tobytes()


def _signature(function: Any) -> inspect.Signature:
    """Return the signature of ``function``, or one that takes anything if it has none."""
    if not callable(function):
        raise error("P0704", name="fn", value=repr(function), legal="a function")
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.signature(lambda *args, **kwargs: None)


def _step(part: Any) -> str:
    return str(next((getattr(part, n) for n in ("idx", "key", "name") if hasattr(part, n)), part))


class Results:
    """The structure of a function's result, known once the function is traced."""

    def __init__(self) -> None:
        self._tree: Any = None
        self._leaves: list[Any] = []
        #: Numbers of the results that stand in caches.
        self._cached: set[int] = set()

    def flatten(self, result: Any) -> dict[str, torch.Tensor]:
        """Return the tensors of ``result`` by name, and remember the rest."""
        look_into_caches(result)
        leaves, self._tree = pytree.tree_flatten(result)
        self._cached = leaves_of_caches(result)
        self._leaves = [None if isinstance(leaf, torch.Tensor) else _own(leaf) for leaf in leaves]
        return {f"out{n}": leaf for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}

    def unflatten(self, outputs: Mapping[str, TensorProxy]) -> Any:
        """Return a result with ``outputs`` in the places of its tensors.

        Caches get tensors of the host, because they join what they are made of.
        """
        leaves = [outputs.get(f"out{n}", leaf) for n, leaf in enumerate(self._leaves)]
        for number in self._cached:
            if isinstance(leaves[number], TensorProxy):
                leaves[number] = leaves[number].cpu()
        return pytree.tree_unflatten(leaves, self._tree)


class AutomapFunction:
    """A compiled function that is called like the original function."""

    def __init__(
        self, function: Any, compiled: CompiledFunction, arguments: Arguments, results: Results
    ):
        #: The compiled function over flat dicts.
        self.compiled = compiled
        self._function, self._arguments, self._results = function, arguments, results

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function; its result has proxies where the traced one had tensors. P0603."""
        call = Arguments(self._function, args, kwargs)
        self._arguments.check(call)
        return self._results.unflatten(self.compiled(call.tensors))

    @property
    def report(self) -> Performance:
        """How fast the function is, as for :class:`CompiledFunction`."""
        return self.compiled.report

    def __str__(self) -> str:
        return str(self.report)


def flat_function(function: Any, arguments: Arguments, results: Results) -> Function:
    """Return ``function`` over a dict of tensors."""

    def flat(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        args, kwargs = arguments.rebuilt(tensors)
        return results.flatten(function(*args, **kwargs))

    return flat
