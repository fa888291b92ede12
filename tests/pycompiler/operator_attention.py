"""Rows of Attention and RotaryEmbedding, against formulas in double precision."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from operator_rows import REAL, WIDE, Row, Sample, Tensor, normal, widened
from operator_sums import STEPS

from pycompiler.tolerance import SUM

_OPSET = 25


def _attention(rng: random.Random) -> Sample:
    """All forms: with heads or without, groups of heads, masks, windows, earlier keys, lengths."""
    batch, groups, repeats = rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([1, 1, 2, 3])
    queries, new, channels, wide = (rng.choice([1, 2, 3, 5, 7]) for _ in range(4))
    past = rng.choice([0, 0, 3, 4])
    keys = past + new
    flat = rng.random() < 0.4
    heads = groups * repeats
    q = normal(rng, (batch, heads, queries, channels))
    k = normal(rng, (batch, groups, new, channels))
    v = normal(rng, (batch, groups, new, wide))
    facts: dict[str, Any] = {}
    if rng.random() < 0.5:
        facts["is_causal"] = 1
    for side in ("left", "right"):
        if rng.random() < 0.2:
            facts[f"{side}_window_size"] = rng.randint(0, 3)
    if rng.random() < 0.3:
        facts["scale"] = rng.choice([0.125, 1.5])
    if rng.random() < 0.3:
        facts["softcap"] = rng.choice([0.5, 2.0])
    lengths = None
    if not past and rng.random() < 0.3:
        lengths = np.array([rng.randint(1, keys) for _ in range(batch)])
    mask = _mask(rng, (batch, heads, queries, keys))
    outputs, mode = rng.choice([1, 1, 3, 4]) if lengths is None else 1, rng.randrange(4)
    if outputs == 4:
        facts["qk_matmul_output_mode"] = mode
    flattened = _flat if flat else lambda array: array
    if flat:
        facts |= {"q_num_heads": heads, "kv_num_heads": groups}
    operands = {
        "q": flattened(q),
        "k": flattened(k),
        "v": flattened(v),
        "mask": mask,
        "past_k": normal(rng, (batch, groups, past, channels)) if past else None,
        "past_v": normal(rng, (batch, groups, past, wide)) if past else None,
        "lengths": lengths,
    }

    def function(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        past_k: Tensor | None = None,
        past_v: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        if flat:
            q, k, v = (t.unflatten(2, (n, -1)).transpose(1, 2) for t, n in
                       ((q, heads), (k, groups), (v, groups)))  # fmt: skip
        if past_k is not None and past_v is not None:
            k, v = torch.cat((past_k, k), 2), torch.cat((past_v, v), 2)
        found = _formula(q, k, v, mask, past, lengths, facts)
        y = found[0].transpose(1, 2).flatten(2) if flat else found[0]
        return (y, k, v, found[1 + mode])[:outputs]

    scale = facts.get("scale", channels**-0.5)
    largest = max(1.0, abs(scale) * _most(q) * max(_most(k), _most(operands["past_k"])))
    values = max(1.0, _most(v), _most(operands["past_v"]))
    return Sample(
        operands,
        function,
        attributes=facts,
        outputs=outputs,
        terms=channels + keys + STEPS,
        scale=2 * largest * values,
        absolute=1e-6 * largest * values,  # it keeps the usual scale as a single
    )


def _mask(rng: random.Random, shape: tuple[int, ...]) -> np.ndarray | None:
    """Truths or numbers of a shape that broadcasts; its last axis may be too short."""
    if rng.random() < 0.4:
        return None
    kept = [size if rng.random() < 0.7 else 1 for size in shape[:-1]]
    last = shape[-1] if rng.random() < 0.7 else rng.randint(1, shape[-1])
    kept = kept[rng.randint(0, 2) :]
    if rng.random() < 0.5:
        return np.random.default_rng(rng.getrandbits(32)).random((*kept, last)) < 0.7
    added = normal(rng, (*kept, last))
    return np.where(added < -1.5, -np.inf, added).astype(np.float32)


def _formula(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    past: int,
    lengths: Tensor | None,
    facts: dict[str, Any],
) -> tuple[Tensor, ...]:
    """Return the result, and the scores in their four states, one query and key at a time."""
    batch, heads, queries, channels = q.shape
    keys, repeats = k.shape[2], heads // k.shape[1]
    k, v = (t.repeat_interleave(repeats, 1) for t in (k, v))
    raw = torch.einsum("bhqc,bhkc->bhqk", q, k) * facts.get("scale", channels**-0.5)
    cap = facts.get("softcap", 0.0)
    capped = cap * torch.tanh(raw / cap) if cap else raw
    hidden = torch.zeros(batch, heads, queries, keys)
    if mask is not None:
        wide = torch.full((*mask.shape[:-1], keys), False if mask.dtype == torch.bool else -np.inf,
                          dtype=mask.dtype)  # fmt: skip
        wide[..., : mask.shape[-1]] = mask
        mask = wide
        if mask.dtype == torch.bool:
            mask = torch.where(mask, 0.0, -np.inf)
        hidden = hidden + mask
    left, right = (facts.get(f"{side}_window_size", -1) for side in ("left", "right"))
    for b in range(batch):
        before = past if lengths is None else int(lengths[b]) - queries
        for query in range(queries):
            for key in range(keys):
                ahead = key - query - before
                if (
                    (facts.get("is_causal") and ahead > 0)
                    or (0 <= right < ahead)
                    or (left >= 0 and -ahead > left)
                    or (lengths is not None and key >= int(lengths[b]))
                ):
                    hidden[b, :, query, key] = -np.inf
    masked = capped + hidden
    shares = torch.nan_to_num(masked.softmax(-1), nan=0.0)  # a row without keys
    return torch.einsum("bhqk,bhkc->bhqc", shares, v), raw, capped, masked, shares


def _flat(array: np.ndarray) -> np.ndarray:
    batch, heads, length, channels = array.shape
    return array.transpose(0, 2, 1, 3).reshape(batch, length, heads * channels)


def _most(array: np.ndarray | None) -> float:
    return 0.0 if array is None else float(np.abs(array).max())


def _rotary(rng: random.Random) -> Sample:
    """Both orders of pairs, some channels left alone, angles by place or by index."""
    batch, heads, length = (rng.choice([1, 2, 3, 5]) for _ in range(3))
    pairs, rest, entries = rng.choice([1, 2, 3, 4]), rng.choice([0, 0, 2, 3]), 11
    channels, flat = 2 * pairs + rest, rng.random() < 0.5
    x = normal(rng, (batch, heads, length, channels))
    by_index, interleaved = rng.random() < 0.5, rng.random() < 0.5
    shape = (entries, pairs) if by_index else (batch, length, pairs)
    places = np.array([[rng.randrange(entries) for _ in range(length)] for _ in range(batch)])
    facts: dict[str, Any] = {"interleaved": int(interleaved)}
    if rest:
        facts["rotary_embedding_dim"] = 2 * pairs
    if flat:
        facts["num_heads"] = heads

    def function(x: Tensor, cos: Tensor, sin: Tensor, p: Tensor | None = None) -> Tensor:
        if flat:
            x = x.unflatten(2, (heads, channels)).transpose(1, 2)
        if p is not None:
            cos, sin = cos[p.long()], sin[p.long()]
        found = x.clone()
        for pair in range(pairs):
            a, b = (2 * pair, 2 * pair + 1) if interleaved else (pair, pairs + pair)
            turn = torch.complex(cos[:, None, :, pair], sin[:, None, :, pair])
            turned = torch.complex(x[..., a], x[..., b]) * turn
            found[..., a], found[..., b] = turned.real, turned.imag
        return found.transpose(1, 2).flatten(2) if flat else found

    operands = {
        "x": _flat(x) if flat else x,
        "cos": normal(rng, shape),
        "sin": normal(rng, shape),
        "p": places if by_index else None,
    }
    scale = _most(x) * max(_most(operands["cos"]), _most(operands["sin"]), 1.0)
    fixed = frozenset({"cos", "sin"}) if rng.random() < 0.5 else frozenset()
    return Sample(operands, function, fixed, facts, terms=2 + STEPS, scale=scale)


ROWS: tuple[Row, ...] = (
    Row("Attention", "Float", REAL, _attention, SUM, range(3, 5), opset=_OPSET),
    Row("RotaryEmbedding", "Float", REAL, _rotary, SUM, range(3, 5), opset=23),
    Row("Attention", "Double", WIDE, widened(_attention), SUM, range(3, 5), opset=_OPSET),
    Row("RotaryEmbedding", "Double", WIDE, widened(_rotary), SUM, range(3, 5), opset=23),
)
