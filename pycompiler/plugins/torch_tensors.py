"""Tensors of torch that lie on a device: each operation of torch is a kernel there."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from ..errors import error
from ..frontend.torch_dtypes import TORCH_DTYPES
from .eager import DeviceTensor, Eager
from .torch_rules import RULES, decompositions

_SHARED = ("aten.alias.default", "aten.detach.default")
#: Set while an operation is taken apart: tensors that it makes become constants of kernels.
_inside = threading.local()
_RECURRENT = ("gru", "lstm", "rnn_relu", "rnn_tanh")
_BATCH_FIRST = 8  # its place among the operands of a recurrent layer
_ITEM = "aten._local_scalar_dense.default"


class _Cell:
    """The data of a tensor and its aliases. ``family`` has the cells of its views too.

    Views are copies on the device, so a write is safe only where nobody holds one.
    """

    def __init__(self, held: DeviceTensor, family: weakref.WeakSet[_Cell] | None = None):
        self.held = held
        self.family = weakref.WeakSet() if family is None else family
        self.family.add(self)


class TorchTensor(torch.Tensor):
    """A tensor of torch whose data lie on a device. Operations on it run there.

    Autograd and optimizers of torch work on it. Operations that no kernels express are refused
    (P0828): nothing moves to the host unasked. So is what would change the dtype by promotion.
    """

    eager: Eager
    _cell: _Cell

    @staticmethod
    def __new__(cls, held: DeviceTensor | _Cell, eager: Eager) -> TorchTensor:
        """Return an empty shell with the type of ``held``."""
        type = (held.held if isinstance(held, _Cell) else held).type
        dtype, make = TORCH_DTYPES[type.elem], torch.Tensor._make_wrapper_subclass
        made: TorchTensor = make(cls, type.shape, dtype=dtype)
        return made

    def __init__(self, held: DeviceTensor | _Cell, eager: Eager):
        self._cell = held if isinstance(held, _Cell) else _Cell(held)
        self.eager = eager

    @property
    def held(self) -> DeviceTensor:
        """The data."""
        return self._cell.held

    def on_host(self) -> torch.Tensor:
        """Return a copy on the host."""
        return torch.from_numpy(np.array(self.held.numpy()))

    def __repr__(self) -> str:  # type: ignore[override]
        return f"TorchTensor({self.held.type}, device={self.eager.session.device.name})"

    @classmethod
    def __torch_function__(
        cls,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Take recurrent layers apart as torch does for devices without a library for them."""
        facts = kwargs or {}
        as_torch: Any = super().__torch_function__
        if getattr(func, "__name__", "") not in _RECURRENT:
            return as_torch(func, types, args, facts)
        eager = next(one for one in _tensors((args, facts)) if isinstance(one, cls)).eager

        def started(one: Any) -> Any:
            """Move the state that the module begins with, all zero, to the device."""
            plain = isinstance(one, torch.Tensor) and not isinstance(one, TorchTensor)
            return to_device(one, eager) if plain and not one.any() else one

        given = list(tree_map(started, tuple(args)))
        # torch would turn the result in place, which a tensor on a device cannot do.
        turned = len(given) > _BATCH_FIRST and given[_BATCH_FIRST]
        if turned:
            given[0], given[_BATCH_FIRST] = given[0].transpose(0, 1), False
        with torch.backends.mkldnn.flags(enabled=False):
            made = as_torch(func, types, tuple(given), facts)
        return (made[0].transpose(0, 1), *made[1:]) if turned else made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one operation of torch. P0822, P0828."""
        name, facts = str(func), dict(kwargs or {})
        if name == _ITEM:
            return args[0].on_host().item()
        if name in _SHARED:
            return cls(args[0]._cell, args[0].eager)
        if func._schema.is_mutable:
            return _in_place(func, args, facts)
        rule = RULES.get(name)
        if rule is None:
            return _taken_apart(func, args, facts)
        _host_operands(func, args, facts)
        first = next(one for one in _tensors((args, facts)) if isinstance(one, cls))
        wanted = func(*tree_map(_meta, tuple(args)), **tree_map(_meta, facts))
        operands = tree_map(_operand, (tuple(args), facts))
        made = rule(first.eager, *operands[0], **operands[1])
        is_view = any(result.alias_info is not None for result in func._schema.returns)
        if isinstance(made, list):
            for own, like in zip(made, wanted, strict=True):
                _check(name, own, like)
            family = first._cell.family if is_view else None
            return [cls(_Cell(own, family), first.eager) for own in made]
        _check(name, made, wanted)
        same = made is first.held and not is_view
        if same:  # a copy that is written must not change the original
            return cls(made, first.eager)
        return cls(_Cell(made, first._cell.family if is_view else None), first.eager)


def to_device(tensor: torch.Tensor, eager: Eager) -> TorchTensor:
    """Return a tensor on the device of ``eager``, which asks for gradients if it does.

    P0821; P0828 if the device has no such elements.
    """
    if tensor.dtype not in TORCH_DTYPES.values() or tensor.dtype is torch.bfloat16:
        raise error(
            "P0828", what=f"a tensor of {tensor.dtype}", reason="NumPy has no such elements"
        )
    made = TorchTensor(eager.tensor(tensor.detach().numpy()), eager)
    return made.requires_grad_(tensor.requires_grad)  # type: ignore[return-value]


def module_to_device(module: torch.nn.Module, eager: Eager) -> torch.nn.Module:
    """Move the parameters and buffers of a module to the device, in place; return the module.

    P0821, P0828.
    """
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            moved = to_device(parameter, eager)
            setattr(part, name, torch.nn.Parameter(moved, parameter.requires_grad))
        for name, buffer in list(part.named_buffers(recurse=False)):
            setattr(part, name, to_device(buffer, eager))
    return module


def _in_place(func: Any, args: Sequence[Any], facts: Mapping[str, Any]) -> Any:
    """Run an operation that writes its first operand, such as `add_`."""
    target, name = args[0] if args else None, str(func)
    _no_random_numbers(func)
    base, _, overload = name.removeprefix("aten.").partition(".")
    packet = getattr(torch.ops.aten, base.removesuffix("_"), None)
    plain = getattr(packet, overload, None) if base.endswith("_") else None
    if plain is None or not isinstance(target, TorchTensor):
        raise error("P0828", what=name, reason="it writes what is not on the device")
    if len(target._cell.family) > 1:
        reason = "a view of the tensor is in use, and views are copies on the device"
        raise error("P0828", what=name, reason=reason)
    made = plain(*args, **facts)
    if (made.dtype, made.shape) != (target.dtype, target.shape):
        reason = f"the result is {made.dtype} {tuple(made.shape)}"
        raise error("P0828", what=name, reason=reason)
    target._cell.held = made.held
    return target


def _taken_apart(func: Any, args: Sequence[Any], facts: Mapping[str, Any]) -> Any:
    """Run an operation without a rule as others."""
    _no_random_numbers(func)
    _host_operands(func, args, facts)
    whole = decompositions().get(func)
    before, _inside.on = getattr(_inside, "on", False), True
    try:
        made = NotImplemented if whole is None else whole(*args, **facts)
        if made is NotImplemented:
            made = func.decompose(*args, **facts)
    finally:
        _inside.on = before
    if made is NotImplemented:
        raise error("P0828", what=str(func), reason="no rule writes it in ONNX operators")
    return made


def _no_random_numbers(func: Any) -> None:
    # Attention without dropout draws none; with dropout, what torch makes of it does.
    attention = str(func).startswith("aten._scaled_dot_product_")
    if torch.Tag.nondeterministic_seeded in func.tags and not attention:
        raise error("P0828", what=str(func), reason="its random numbers are torch's")


def _host_operands(func: Any, args: Sequence[Any], facts: Mapping[str, Any]) -> None:
    """Refuse tensors of the host, but for scalars, which torch takes on every device."""
    if not getattr(_inside, "on", False):
        for one in _tensors((args, facts)):
            if not isinstance(one, TorchTensor) and one.dim():
                reason = "an operand is on the host: call to_device"
                raise error("P0828", what=str(func), reason=reason)


def _tensors(values: Any) -> list[torch.Tensor]:
    flat, _ = torch.utils._pytree.tree_flatten(values)
    return [one for one in flat if isinstance(one, torch.Tensor)]


def _meta(one: Any) -> Any:
    """Return a tensor without data, by which torch tells the type of a result."""
    if isinstance(one, torch.Tensor):
        return torch.empty(one.shape, dtype=one.dtype, device="meta")
    return one


def _operand(one: Any) -> Any:
    if isinstance(one, TorchTensor):
        return one.held
    if isinstance(one, torch.Tensor):
        return one.numpy() if one.dim() else one.item()
    return one


def _check(name: str, made: DeviceTensor, wanted: torch.Tensor) -> None:
    own = TORCH_DTYPES[made.type.elem], made.type.shape
    if own != (wanted.dtype, tuple(wanted.shape)):
        reason = f"torch makes {wanted.dtype} {tuple(wanted.shape)}, the kernel {own[0]} {own[1]}"
        raise error("P0828", what=name, reason=reason)
