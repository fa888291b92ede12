"""Random operators that write, or that give their mask, as draws that ONNX has.

The draws stay operators: :mod:`pycompiler.pfvm.random_numbers` writes them as hashes of counters,
those of a training step as those of any function. A draw is one value, so the backward pass reads
the mask of the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .plain_operators.places import PLACES

_ATEN = torch.ops.aten


def _chosen(like: torch.Tensor, chance: float) -> torch.Tensor:
    return (torch.rand(like.shape) < chance).to(like.dtype)


def _bernoulli_in_place(tensor: torch.Tensor, p: float = 0.5, *, generator: Any = None) -> Any:
    return NotImplemented if generator else tensor.copy_(_chosen(tensor, p))


def _bernoulli(tensor: torch.Tensor, p: float = 0.5, *, generator: Any = None) -> Any:
    return NotImplemented if generator else _chosen(tensor, p)


def _native_dropout(tensor: torch.Tensor, p: float, train: bool | None) -> Any:
    if train is False:
        return NotImplemented
    kept = _chosen(tensor, 1 - p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return tensor * kept * scale, kept.to(torch.bool)


def _normal_in_place(
    tensor: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None
) -> Any:
    return NotImplemented if generator else tensor.copy_(torch.randn(tensor.shape) * std + mean)


def _uniform_in_place(
    tensor: torch.Tensor, first: float = 0.0, end: float = 1.0, *, generator: Any = None
) -> Any:
    if generator:
        return NotImplemented
    return tensor.copy_(torch.rand(tensor.shape) * (end - first) + first)


RANDOM_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN.bernoulli_.float: _bernoulli_in_place,
    _ATEN.bernoulli.p: _bernoulli,
    # Memory without values, which dropout takes for its mask: zeros are as good.
    _ATEN.empty_permuted.default: PLACES[_ATEN.empty_permuted.default],
    _ATEN.native_dropout.default: _native_dropout,
    _ATEN.normal_.default: _normal_in_place,
    _ATEN.uniform_.default: _uniform_in_place,
}
