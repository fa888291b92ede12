"""The caches of transformers as arguments and results of ``compile_automap``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pycompiler.errors import PycompilerError
from pycompiler.mlsdk import Context, MNDevice

transformers = pytest.importorskip("transformers")
LAYERS, HEADS, WIDTH = 2, 1, 8


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=17,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=HEADS,
        head_dim=WIDTH,
        max_position_embeddings=32,
    )
    return transformers.LlamaForCausalLM(config).eval()


def cache(tokens: int, seed: int) -> Any:
    """Return a cache of so many tokens."""
    rng = torch.Generator().manual_seed(seed)
    made = transformers.DynamicCache()
    for layer in range(LAYERS):
        keys, values = torch.randn(2, 1, HEADS, tokens, WIDTH, generator=rng)
        made.update(keys, values, layer)
    return made


def test_a_model_with_its_cache(model: Any, tmp_path: Path) -> None:
    def step(ids: torch.Tensor, past: Any) -> Any:
        found = model(input_ids=ids, past_key_values=past, use_cache=True)
        return {"logits": found.logits, "past": found.past_key_values}

    context = Context(MNDevice("pfvm:cpu"))
    ids = torch.tensor([[7]])
    with torch.no_grad():
        compiled = context.compile_automap(step, (ids, cache(5, 1)), None, tmp_path / "a")
        for seed in (1, 2):
            found, wanted = compiled(ids, cache(5, seed)), step(ids, cache(5, seed))
            assert torch.allclose(found["logits"].cpu(), wanted["logits"], atol=1e-5)
            pairs = zip(found["past"].layers, wanted["past"].layers, strict=True)
            for mine, exact in pairs:
                assert torch.allclose(mine.keys, exact.keys, atol=1e-6)
                assert torch.allclose(mine.values, exact.values, atol=1e-6)


def test_other_caches_are_refused(model: Any, tmp_path: Path) -> None:
    other = transformers.StaticCache(config=model.config, max_cache_len=8)
    with pytest.raises(PycompilerError, match=r"P0704.*StaticCache.*DynamicCache"):
        Context(MNDevice("pfvm:cpu")).compile_automap(
            lambda past: past, (other,), None, tmp_path / "a"
        )


def test_other_caches_among_results_are_refused(model: Any, tmp_path: Path) -> None:
    """As constants they would hold what the trace put into them."""
    other = transformers.StaticCache(config=model.config, max_cache_len=8)
    with pytest.raises(PycompilerError, match=r"P0704.*StaticCache.*DynamicCache"):
        Context(MNDevice("pfvm:cpu")).compile_automap(
            lambda x: (x + 1, other), (torch.ones(3),), None, tmp_path / "a"
        )
