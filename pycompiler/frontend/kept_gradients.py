"""The gradients of tensors while a function is traced: it must leave them as they were."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from .tensor_names import named_tensors


class KeptGradients:
    """A context in which named tensors have no gradients but registered ones.

    A registered gradient is a value of the function, which may read it and add to it. When the
    context ends, all tensors have the gradients and hooks that they had.
    """

    def __init__(self, registered: Iterable[torch.Tensor]):
        self._registered = {id(tensor) for tensor in registered}
        #: Tensors with the gradients and the hooks that they had.
        self._kept: dict[int, tuple[torch.Tensor, torch.Tensor | None, dict[int, Any]]] = {}

    def __enter__(self) -> KeptGradients:
        self.take(named_tensors())
        return self

    def __exit__(self, *_: Any) -> None:
        for tensor, kept, hooks in self._kept.values():
            tensor.grad = kept
            if tensor._backward_hooks:
                tensor._backward_hooks.clear()
                tensor._backward_hooks.update(hooks)

    def take(self, tensors: Iterable[torch.Tensor]) -> None:
        """Take the gradients of ``tensors`` away, unless they are registered."""
        for tensor in tensors:
            if tensor.is_leaf and id(tensor) not in self._kept:
                hooks: Any = tensor._backward_hooks
                self._kept[id(tensor)] = tensor, tensor.grad, dict(hooks or {})
                if id(tensor.grad) not in self._registered:
                    tensor.grad = None

    def settle(self) -> None:
        """Write the gradients of now into the registered ones that the function has replaced."""
        with torch.no_grad():
            for tensor, kept, _ in self._kept.values():
                if kept is None or id(kept) not in self._registered or tensor.grad is kept:
                    continue
                if tensor.grad is None:
                    kept.zero_()
                else:
                    kept.copy_(tensor.grad)

    def add(self, inputs: Iterable[torch.Tensor], traced: Iterable[torch.Tensor]) -> None:
        """Add the gradients of the traced inputs to the registered ones of the inputs."""
        with torch.no_grad():
            for tensor, own in zip(inputs, traced, strict=True):
                kept = tensor.grad if tensor.is_leaf else None
                if kept is not None and id(kept) in self._registered and own.grad is not None:
                    kept.add_(own.grad)
