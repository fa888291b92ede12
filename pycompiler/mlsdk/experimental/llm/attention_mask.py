"""Masks of attention, made on the host or inside of a compiled function."""

from __future__ import annotations

import torch

__all__ = ["prepare_4d_causal_attention_mask_with_cache_position"]


def prepare_4d_causal_attention_mask_with_cache_position(
    mask: torch.Tensor, position_ids: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Return what is added to the scores of attention, of shape (batch, 1, queries, keys).

    It is 0 where a query may look at a key, and elsewhere the least number of ``dtype``. ``mask``,
    of shape (batch, keys), is 0 for keys that nobody may look at, such as padding and the free part
    of a cache. ``position_ids``, of shape (batch, queries) or (queries,), is the place of each
    query: it may look at keys up to its own place. If there are as many queries as keys, they have
    the same places, as where padding on the left has none; else the places of keys count from 0.
    """
    count = mask.shape[-1]
    places = position_ids if position_ids.shape[-1] == count else torch.arange(count)
    seen = places[..., None, :] <= position_ids[..., None]
    allowed = seen & (mask != 0)[:, None, :]
    least = torch.tensor(torch.finfo(dtype).min, dtype=dtype)
    return torch.where(allowed, torch.zeros((), dtype=dtype), least)[:, None]
