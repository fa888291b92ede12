"""Names of tensors, under which they appear in models and are registered.

A name belongs to the tensor object, not to its values, and is forgotten with the tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ..errors import error

_names: MutableMapping[torch.Tensor, str] = WeakTensorKeyDictionary()


def set_tensor_name(tensor: torch.Tensor, name: str) -> None:
    """Give ``tensor`` the name ``name``, in place of an earlier one. P0704."""
    if not isinstance(tensor, torch.Tensor):
        raise error("P0704", name="tensor", value=repr(tensor), legal="a torch.Tensor")
    if not isinstance(name, str) or not name:
        raise error("P0704", name="name", value=repr(name), legal="a text that is not empty")
    _names[tensor] = name


def get_tensor_name(tensor: torch.Tensor) -> str | None:
    """Return the name of ``tensor``; None if it has none."""
    return _names.get(tensor) if isinstance(tensor, torch.Tensor) else None


def named_tensors() -> list[torch.Tensor]:
    """Return all tensors that have a name."""
    return list(_names)


def tensors_of(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the parameters and buffers of a module, each once, with their paths. P0704."""
    if not isinstance(module, torch.nn.Module):
        raise error("P0704", name="module", value=repr(module), legal="a torch.nn.Module")
    yield from module.named_parameters()
    yield from module.named_buffers()


def set_tensor_name_in_module(module: torch.nn.Module, prefix: str) -> None:
    """Give every parameter and buffer of ``module`` the name ``prefix.<path>``. P0704."""
    if not isinstance(prefix, str) or not prefix:
        raise error("P0704", name="prefix", value=repr(prefix), legal="a text that is not empty")
    for path, tensor in tensors_of(module):
        set_tensor_name(tensor, f"{prefix}.{path}")


Memory = tuple[int, tuple[int, ...], tuple[int, ...], torch.dtype]


def memory_of(tensor: torch.Tensor) -> Memory:
    """Return a key of a tensor's memory: tracing makes new tensor objects over the same memory."""
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def named_memories() -> dict[Memory, str]:
    """Return the names of all named tensors, by their memory."""
    return {memory_of(tensor): name for tensor, name in _names.items()}
