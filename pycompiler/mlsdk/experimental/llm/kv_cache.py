"""Key-value caches as one tensor of shape (layers, 2, batch, heads, time, head_dim)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import torch

from ....errors import error
from ....runtime.proxy import TensorProxy, on_host
from ...caches import is_cache

__all__ = ["kv_cache_to_legacy", "kv_cache_to_plamo", "kv_cache_to_tensor"]


def kv_cache_to_tensor(kv_cache: Any) -> torch.Tensor:
    """Return the keys and values of all layers as one tensor.

    ``kv_cache`` is a sequence of (key, value), one for each layer, or a cache of transformers.
    P0704 for what is neither.
    """
    layers = [(own.keys, own.values) for own in kv_cache.layers] if is_cache(kv_cache) else kv_cache
    legal = "a sequence of (key, value), or a cache of transformers whose layers have both"
    kinds = torch.Tensor | TensorProxy
    if not isinstance(layers, Iterable) or isinstance(layers, kinds):
        raise error("P0704", name="kv_cache", value=f"a {type(kv_cache).__name__}", legal=legal)
    pairs = [tuple(pair) for pair in layers]
    plain = all(len(pair) == 2 and all(isinstance(t, kinds) for t in pair) for pair in pairs)
    if not plain or len({tensor.shape for pair in pairs for tensor in pair}) != 1:
        raise error("P0704", name="kv_cache", value="of parts that do not fit", legal=legal)
    return torch.stack([torch.stack(on_host(pair)) for pair in pairs])


def kv_cache_to_legacy(
    kv_cache: torch.Tensor | TensorProxy,
) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
    """Return a tuple of (key, value) for each layer of such a tensor. P0704 for other shapes."""
    shape = tuple(getattr(kv_cache, "shape", ()))
    if not isinstance(kv_cache, torch.Tensor | TensorProxy) or len(shape) != 6 or shape[1] != 2:
        legal = "a tensor of shape (layers, 2, batch, heads, time, head_dim)"
        value = f"a {type(kv_cache).__name__} of shape {shape}"
        raise error("P0704", name="kv_cache", value=value, legal=legal)
    return tuple((layer[0], layer[1]) for layer in on_host(kv_cache).unbind(0))


def kv_cache_to_plamo(kv_cache: torch.Tensor | TensorProxy) -> NoReturn:
    """Raise P0703: the form of PLaMo's caches is not published."""
    reason = "the form of PLaMo's caches is not published"
    remedy = "use kv_cache_to_legacy, and make the cache that the model takes of its pairs"
    raise error("P0703", name="kv_cache_to_plamo", reason=reason, remedy=remedy)
