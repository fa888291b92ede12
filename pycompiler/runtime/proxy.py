"""Tensors that stay on the device until their values are asked for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..errors import PycompilerError, error
from ..frontend.torch_dtypes import TORCH_DTYPES, dtype_name
from . import trace
from .conversion import UnfitError, converted
from .held_tensor import Source
from .held_tensor import on_host as host_copy
from .tensors import to_tensor


class TensorProxy:
    """A tensor of a compiled function: an output, or an input or registered value that it reads.

    An output keeps its values when the function is called again. Torch functions, operators and
    methods of tensors work on a copy on the host and return tensors. Methods that write in place
    raise AttributeError, because they would change only the copy. There is no ``len``: torch would
    take a proxy that is an index for a list of indices.
    """

    def __init__(self, source: Source):
        self.source = source

    @property
    def shape(self) -> torch.Size:
        """The tensor's shape."""
        return torch.Size(self.source.type.shape)

    @property
    def dtype(self) -> torch.dtype:
        """The tensor's dtype."""
        return TORCH_DTYPES[self.source.type.elem]

    def size(self, dim: int | None = None) -> torch.Size | int:
        """Return the shape, or the size of one axis."""
        return self.shape if dim is None else self.shape[dim]

    def cpu(self) -> torch.Tensor:
        """Return a copy on the host."""
        with trace.span("fetch"):
            return to_tensor(self.source.values())

    def item(self) -> float | int | bool:
        """Return the only element as a Python number. P0704 if the tensor has another size."""
        if self.shape.numel() != 1:
            value = f"called on a tensor of shape {tuple(self.shape)}"
            raise error("P0704", name="item()", value=value, legal="one with a single element")
        number: float | int | bool = self.cpu().item()
        return number

    def load_from(self, value: torch.Tensor | TensorProxy, clone: bool = False) -> None:
        """Replace the values by those of ``value``, converted as the inputs of a call are. P0609.

        The values are always copied before this returns, so ``clone`` changes nothing. Scripts
        give it to ask for a copy when they change ``value`` afterwards.
        """
        with trace.span("load"):
            given = value.source.values() if isinstance(value, TensorProxy) else value
            try:
                self.source.load(converted(given, self.source.type))
            except UnfitError as problem:
                wanted = f"{dtype_name(self.dtype)} {tuple(self.shape)}"
                raise error("P0609", problem=f"the value {problem}", wanted=wanted) from problem

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return a copy for numpy."""
        return np.array(self.source.values(), dtype)

    def __dlpack__(self, **kwargs: Any) -> Any:
        """Return a copy for torch.as_tensor and other libraries."""
        return self.cpu().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        """Return the device of the copy."""
        return self.cpu().__dlpack_device__()

    def __copy__(self) -> TensorProxy:
        """Return a proxy of the same tensor."""
        return TensorProxy(self.source)

    def __deepcopy__(self, memo: dict[int, Any]) -> TensorProxy:
        """Return a proxy of a copy on the host."""
        return TensorProxy(host_copy(self.source.type, np.array(self.source.values())))

    def __reduce__(self) -> Any:
        """Raise P0703: memory of a device cannot be written into a file."""
        remedy = "keep the tensor that its cpu() returns"
        raise error("P0703", name="pickle", reason="a TensorProxy is on a device", remedy=remedy)

    def __repr__(self) -> str:
        try:
            shown = repr(self.cpu())
        except PycompilerError:  # the memory of the device is free, or of others
            return f"TensorProxy(shape={tuple(self.shape)}, dtype={self.dtype})"
        # torch indents further lines by the length of `tensor(`.
        return f"TensorProxy{shown.removeprefix('tensor')}".replace("\n", "\n" + 5 * " ")

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch on copies on the host."""
        plain = {key: on_host(value) for key, value in (kwargs or {}).items()}
        return func(*map(on_host, args), **plain)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the copy on the host."""
        writes = name.endswith("_") and not name.startswith("_")
        if name.startswith("__") or writes or not hasattr(torch.Tensor, name):
            raise AttributeError(f"TensorProxy has no attribute `{name}`")
        return getattr(self.cpu(), name)

    __hash__ = object.__hash__


def on_host(value: Any) -> Any:
    """Replace proxies in ``value`` (also in lists, tuples and dicts) by tensors on the host."""
    if isinstance(value, TensorProxy):
        return value.cpu()
    if type(value) in (list, tuple):
        return type(value)(map(on_host, value))
    if type(value) is dict:
        return {key: on_host(found) for key, found in value.items()}
    return value


_UNARY = ("neg", "pos", "abs", "invert", "index", "contains")
_COMPARING = ("lt", "le", "eq", "ne", "gt", "ge", "getitem")
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
_BINARY = (*_ARITHMETIC, "and_", "or_", "xor", "lshift", "rshift")


def _define(name: str, function: Callable[..., Any], *, reflected: bool = False) -> None:
    def method(self: TensorProxy, *others: Any) -> Any:
        operands = (self.cpu(), *map(on_host, others))
        return function(*(reversed(operands) if reflected else operands))

    method.__name__ = method.__qualname__ = name
    setattr(TensorProxy, name, method)


for _function in (bool, float, int, complex, format):
    _define(f"__{_function.__name__}__", _function)
for _name in (*_UNARY, *_COMPARING, *_BINARY):
    _plain, _function = _name.strip("_"), getattr(operator, _name)
    _define(f"__{_plain}__", _function)
    if _name in _BINARY:
        _define(f"__r{_plain}__", _function, reflected=True)
