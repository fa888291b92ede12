"""Llama models as the stages of a pipeline over several devices."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ....errors import error

__all__ = ["split_llama"]


def split_llama(model: nn.Module, n_stages: int) -> list[nn.Module]:
    """Return the stages of a LlamaForCausalLM of transformers, which share its parameters. P0704.

    Each takes tensors by name and returns a dict. The first takes `input_ids` and `position_ids`,
    and returns `hidden_states_out`, `position_embeddings_cos_out`, `position_embeddings_sin_out`.
    Those between share the layers: as many each as the last of them can fill. They take these
    values without `_out`, `position_ids`, `attention_mask` (four axes, added to the scores), and
    `past_key_values`, a pair for each of their layers, or None. They return what the first does,
    and `past_key_values_out`, the pairs with the new tokens at the end. The last stage takes
    `hidden_states` and returns `logits`.
    """
    body: Any = getattr(model, "model", None)
    layers, between = getattr(body, "layers", ()), n_stages - 2
    each = -(-len(layers) // max(between, 1))
    if not hasattr(model, "lm_head") or not 0 <= (between - 1) * each < len(layers):
        legal = "a LlamaForCausalLM, and two stages more than there are parts of its layers"
        value = f"a {type(model).__name__} of {len(layers)} layers, {n_stages}"
        raise error("P0704", name="model, n_stages", value=value, legal=legal)
    parts = (layers[begin : begin + each] for begin in range(0, len(layers), each))
    first = _First(embed_tokens=body.embed_tokens, rotary_emb=body.rotary_emb)
    last = _Last(norm=body.norm, lm_head=model.lm_head)
    return [first, *(_Between(layers=part) for part in parts), last]


class _Stage(nn.Module):
    def __init__(self, **modules: Any):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)


class _First(_Stage):
    def forward(self, input_ids: torch.Tensor, position_ids: torch.Tensor) -> dict[str, Any]:
        own: Any = self
        hidden = own.embed_tokens(input_ids)
        return _passed(hidden, *own.rotary_emb(hidden, position_ids))


class _Between(_Stage):
    def forward(
        self,
        hidden_states: Any,
        position_embeddings_cos: torch.Tensor,
        position_embeddings_sin: torch.Tensor,
        past_key_values: Sequence[tuple[torch.Tensor, ...]] | None = None,
        **given: Any,
    ) -> dict[str, Any]:
        layers: Any = self.layers
        caches = [_Cache(pair) for pair in past_key_values or [()] * len(layers)]
        given["position_embeddings"] = both = position_embeddings_cos, position_embeddings_sin
        known = inspect.signature(layers[0].forward).parameters
        names = ("cache", "past_key_values", "past_key_value")  # by version of transformers
        name = next(name for name in names if name in known)
        for layer, cache in zip(layers, caches, strict=True):
            found = layer(hidden_states, **given, **{name: cache})
            hidden_states = found[0] if isinstance(found, tuple) else found
        pairs = tuple(cache.pair for cache in caches)
        return {**_passed(hidden_states, *both), "past_key_values_out": pairs}


class _Last(_Stage):
    def forward(self, hidden_states: torch.Tensor) -> dict[str, Any]:
        own: Any = self
        return {"logits": own.lm_head(own.norm(hidden_states))}


class _Cache:
    """The keys and values of a layer, as the layer asks for them."""

    def __init__(self, pair: tuple[torch.Tensor, ...]):
        self.pair = pair

    def update(self, *new: Any, **_: Any) -> tuple[torch.Tensor, ...]:
        pairs = zip(self.pair, new, strict=False)
        self.pair = tuple(torch.cat(both, 2) for both in pairs) if self.pair else new[:2]
        return self.pair


def _passed(hidden: Any, cos: torch.Tensor, sin: torch.Tensor) -> dict[str, Any]:
    names = ("hidden_states", "position_embeddings_cos", "position_embeddings_sin")
    return {f"{name}_out": value for name, value in zip(names, (hidden, cos, sin), strict=True)}
