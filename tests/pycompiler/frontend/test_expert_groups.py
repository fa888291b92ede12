"""Mixtures of experts: grouped products, and small models of transformers, also with caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context, sampled

from pycompiler.errors import PycompilerError

Tensors = dict[str, torch.Tensor]
#: Shapes of the operands, and the ends of groups: along rows, inner axes and columns.
FORMS = {
    "rows": ((8, 8), (3, 8, 4), [3, 3, 8]),
    "rows behind the last": ((8, 8), (3, 8, 4), [2, 4, 7]),
    "inner": ((4, 8), (8, 4), [4, 4, 8]),
    "columns": ((3, 4, 8), (8, 12), [4, 8, 12]),
    "batches": ((3, 4, 8), (3, 8, 4), None),
}


def _one_by_one(a: torch.Tensor, b: torch.Tensor, ends: list[int]) -> torch.Tensor:
    starts, parts = [0, *ends[:-1]], []
    for group, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if a.ndim == b.ndim == 2:
            parts.append(a[:, start:end] @ b[start:end])
        elif a.ndim == 2:
            parts.append(a[start:end] @ b[group])
        else:
            parts.append(a[group] @ b[:, start:end])
    if a.ndim == b.ndim == 2:
        return torch.stack(parts)
    if a.ndim == 2:
        return torch.cat([*parts, torch.zeros(a.shape[0] - ends[-1], b.shape[-1])])
    return torch.cat(parts, 1)


@pytest.mark.parametrize("form", sampled([*FORMS]))
def test_grouped_products(form: str, tmp_path: Path) -> None:
    first, second, ends = FORMS[form]
    draw = torch.Generator().manual_seed(1)
    given = {"a": torch.randn(first, generator=draw), "b": torch.randn(second, generator=draw)}
    if ends is not None:
        given["ends"] = torch.tensor(ends, dtype=torch.int32)

    def f(d: Tensors) -> Tensors:
        return {"y": torch.nn.functional.grouped_mm(d["a"], d["b"], offs=d.get("ends"))}

    function = context("emu2:mini").compile(f, given, tmp_path / "a", options={"strict": True})
    exact = given["a"] @ given["b"] if ends is None else _one_by_one(given["a"], given["b"], ends)
    assert torch.allclose(function(given)["y"].cpu(), exact, atol=1e-4)


def _config(name: str, **more: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    return getattr(transformers, name)(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16,
        **more,
    )


@pytest.mark.long
def test_a_mixture_of_experts(tmp_path: Path) -> None:
    """Its experts are grouped products, which transformers has as an operator of its own."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = _config("MixtralConfig", num_local_experts=4, num_experts_per_tok=2)
    model = transformers.MixtralForCausalLM(config).eval()

    def f(d: Tensors) -> Tensors:
        with torch.no_grad():
            return {"y": model(input_ids=d["ids"], use_cache=False).logits}

    given = {"ids": torch.tensor([[3, 1, 4, 1, 5, 9]])}
    function = context("pfvm:cpu").compile(f, given, tmp_path / "a")
    assert torch.allclose(function(given)["y"].cpu(), f(given)["y"], atol=1e-5)


def test_experts_that_loop_over_tokens_have_a_remedy(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = _config("MixtralConfig", num_local_experts=4, num_experts_per_tok=2)
    model = transformers.MixtralForCausalLM(config).eval()
    model.set_experts_implementation("eager")
    given = {"x": torch.arange(6).reshape(1, 6)}
    with pytest.raises(
        PycompilerError, match=r"set_experts_implementation\('grouped_mm'\)"
    ) as found:
        context("pfvm:cpu").compile(
            lambda d: {"y": model(input_ids=d["x"], use_cache=False).logits}, given, tmp_path / "a"
        )
    assert found.value.code == "P0101"


def test_caches_are_given_as_their_tensors(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(_config("LlamaConfig")).eval()

    def f(d: Tensors) -> Tensors:
        cache = transformers.DynamicCache()
        cache.update(d["k"], d["v"], 0)
        with torch.no_grad():
            found = model(input_ids=d["ids"], past_key_values=cache, use_cache=True)
        (layer,) = found.past_key_values.layers
        return {"y": found.logits, "k": layer.keys, "v": layer.values}

    ids = torch.tensor([[7]])
    given = {"ids": ids, "k": torch.randn(1, 1, 5, 8), "v": torch.randn(1, 1, 5, 8)}
    function = context("pfvm:cpu").compile(f, given, tmp_path / "a")
    found = function(given)
    for name, exact in f(given).items():
        assert torch.allclose(found[name].cpu(), exact, atol=1e-5), name
    cache = transformers.DynamicCache()
    for inputs in ({"input_ids": ids}, {"input_ids": ids, "past_key_values": cache}):
        with pytest.raises(PycompilerError, match="make the cache of them") as caught:
            context("pfvm:cpu").compile(model, inputs, tmp_path / "b")
        assert caught.value.code == "P0104"
