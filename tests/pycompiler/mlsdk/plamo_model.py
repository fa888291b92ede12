"""A decoder with the published shape of PLaMo 13B, which transformers does not have.

Attention and the feed-forward part stand side by side behind one norm. Several heads share keys and
values. The rest is that of Llama: RMS norms, turned places, a gate.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu


class Layer(nn.Module):
    """A layer of the decoder; ``config`` has the names of Llama's."""

    def __init__(self, config: Any, number: int):
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.number, self.heads = number, config.num_attention_heads
        self.shared, self.each = config.num_key_value_heads, config.head_dim
        self.norm = nn.RMSNorm(width, eps=1e-6)
        made = {"query": self.heads, "key": self.shared, "value": self.shared}
        self.own = nn.ModuleDict(
            {name: nn.Linear(width, heads * self.each, bias=False) for name, heads in made.items()}
        )
        self.out = nn.Linear(self.heads * self.each, width, bias=False)
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor, places: torch.Tensor, cache: Any) -> torch.Tensor:
        normed, count = self.norm(x), x.shape[1]
        query, key, value = (
            part(normed).view(1, count, -1, self.each).transpose(1, 2) for part in self.own.values()
        )
        query, key = turned(query, places), turned(key, places)
        if cache is not None:
            key, value = cache.update(key, value, self.number)
        seen = torch.arange(key.shape[2]) <= places[:, None]
        key, value = (one.repeat(1, self.heads // self.shared, 1, 1) for one in (key, value))
        found = scaled_dot_product_attention(query, key, value, attn_mask=seen)
        attended = self.out(found.transpose(1, 2).reshape(1, count, -1))
        return x + attended + self.down(silu(self.gate(normed)) * self.up(normed))


def turned(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Turn pairs of elements, the halves of a head, by angles that grow with the place."""
    half = x.shape[-1] // 2
    angles = places[:, None] * 10000.0 ** (-torch.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class Plamo(nn.Module):
    """The decoder with its head; `past_key_values` is a cache of transformers."""

    def __init__(self, config: Any):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, at) for at in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=1e-6)
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(
        self, input_ids: Any, past_key_values: Any = None, logits_to_keep: Any = slice(None)
    ) -> Any:
        seen: Any = 0
        if past_key_values is not None and past_key_values.layers[0].is_initialized:
            seen = past_key_values.get_seq_length()
        places, x = torch.arange(input_ids.shape[1]) + seen, self.words(input_ids)
        for layer in self.layers:
            x = layer(x, places, past_key_values)
        return type("Output", (), {"logits": self.head(self.norm(x)[:, logits_to_keep])})
