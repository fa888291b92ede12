"""torch's attention in plain operators, for the calls that its exporter gets wrong.

The exporter takes four axes only, and a row that sees no key becomes 0 / 0, where torch gives 0.
"""

from __future__ import annotations

from typing import Any

import torch


def is_hard(node: torch.fx.Node) -> bool:
    """Whether a call has a mask, which may hide a whole row, or no axes of batch and heads."""
    query: Any = node.args[0]
    masked = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    return masked is not None or query.meta["val"].ndim != 4


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Return ``scaled_dot_product_attention`` of the same arguments.

    Sums of values are divided instead of the shares: a row has fewer channels than keys.
    """
    if attn_mask is None and query.ndim == 4:
        return NotImplemented
    if enable_gqa:
        count = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(count, -3) for t in (key, value))
    return _parts(query, key, value, attn_mask, is_causal, scale, dropout_p)[0]


def flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """Return what torch's kernel for CPUs gives: the result, and the logarithms of the sums."""
    if dropout_p:
        return NotImplemented
    found, largest, total = _parts(query, key, value, attn_mask, is_causal, scale)
    return found, (largest + torch.log(total)).squeeze(-1)


def _parts(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None,
    is_causal: bool,
    scale: float | None,
    dropout_p: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the result, and the largest score and the sum of powers of each row."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query * scale) @ key.transpose(-2, -1)
    seen = None
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    elif attn_mask is not None and attn_mask.dtype == torch.bool:
        seen = attn_mask
    elif attn_mask is not None:
        scores = scores + attn_mask
    if seen is not None:
        scores = torch.where(seen, scores, -torch.inf)
    largest = scores.amax(-1, keepdim=True)
    if attn_mask is not None:  # a row without keys: powers of 0, and a sum of 1
        largest = largest.clamp(min=torch.finfo(scores.dtype).min)
    powers = torch.exp(scores - largest)
    total = powers.sum(-1, keepdim=True)
    if attn_mask is not None:  # the largest power of any other row is 1
        total = total.clamp(min=1.0)
    if dropout_p:
        kept = torch.rand(powers.shape) >= dropout_p
        powers = powers * kept.to(powers.dtype) * (1 / (1 - dropout_p) if dropout_p < 1 else 0.0)
    return (powers @ value) / total, largest, total
