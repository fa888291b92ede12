"""torch's attention, in each form that its exporter knows and in those that it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from compiling import context, in_turns, report_of, sampled

from pycompiler.tolerance import SUM, SUMS

F = torch.nn.functional
Tensors = dict[str, torch.Tensor]
QUERIES, KEYS, CHANNELS = 5, 7, 8


def _drawn() -> Tensors:
    made = torch.Generator().manual_seed(7)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=made)

    seen = torch.rand(2, 1, QUERIES, KEYS, generator=made) < 0.6
    seen[0, :, 2] = False  # a row that sees no key
    return {
        "q": numbers(2, 6, QUERIES, CHANNELS),
        "k": numbers(2, 6, KEYS, CHANNELS),
        "v": numbers(2, 6, KEYS, 9),
        "few_k": numbers(2, 2, KEYS, CHANNELS),
        "few_v": numbers(2, 2, KEYS, 9),
        "past_k": numbers(2, 6, 3, CHANNELS),
        "past_v": numbers(2, 6, 3, 9),
        "seen": seen,
        "added": torch.where(seen, numbers(2, 1, QUERIES, KEYS), -torch.inf),
    }


def _with_past(d: Tensors) -> torch.Tensor:
    k, v = (torch.cat((d[f"past_{name}"], d[name]), 2) for name in "kv")
    return F.scaled_dot_product_attention(d["q"], k, v)


FORMS: dict[str, Callable[[Tensors], torch.Tensor]] = {
    "plain": lambda d: F.scaled_dot_product_attention(d["q"], d["k"], d["v"]),
    "causal": lambda d: F.scaled_dot_product_attention(d["q"], d["k"], d["v"], is_causal=True),
    "scaled": lambda d: F.scaled_dot_product_attention(d["q"], d["k"], d["v"], scale=0.3),
    "seen": lambda d: F.scaled_dot_product_attention(d["q"], d["k"], d["v"], d["seen"]),
    "added": lambda d: F.scaled_dot_product_attention(d["q"], d["k"], d["v"], d["added"]),
    "groups": lambda d: F.scaled_dot_product_attention(
        d["q"], d["few_k"], d["few_v"], is_causal=True, enable_gqa=True
    ),
    "masked groups": lambda d: F.scaled_dot_product_attention(
        d["q"], d["few_k"], d["few_v"], d["seen"], enable_gqa=True
    ),
    "viewed": lambda d: (
        F.scaled_dot_product_attention(d["q"], d["k"], d["v"], d["seen"])
        .transpose(1, 2)
        .contiguous()
        .view(2, QUERIES, -1)
    ),
    "no batch": lambda d: F.scaled_dot_product_attention(
        d["q"][0], d["k"][0], d["v"][0], is_causal=True
    ),
    "past": _with_past,
}


@pytest.mark.parametrize("mode", sampled(["float", "mixed"]))
def test_every_form_matches(tmp_path: Path, mode: str) -> None:
    forms = in_turns(FORMS, int(mode == "float"), 2, always=["seen"])

    def everything(d: Tensors) -> Tensors:
        return {name: form(d) for name, form in forms.items()}

    sample = _drawn()
    compiled = context("emu2:mini").compile(
        everything, sample, tmp_path / "out", options={"float_dtype": mode}
    )
    assert report_of(tmp_path / "out")["host_fallback"] == []
    doubles = {n: t.double() if t.is_floating_point() else t for n, t in sample.items()}
    found, wanted = compiled(sample), everything(doubles)
    assert (wanted["seen"][0, :, 2] == 0).all()
    largest = max(float(sample[name].abs().max()) for name in ("q", "k", "v", "few_k", "few_v"))
    limit = SUMS["Half" if mode == "mixed" else "Float", SUM] * (CHANNELS + KEYS) * largest**3
    for name, reference in wanted.items():
        assert float((found[name].cpu() - reference).abs().max()) < limit, name


@pytest.mark.parametrize("causal", sampled([False, True], first=1))
def test_the_kernel_of_cpus_gives_logarithms_too(tmp_path: Path, causal: bool) -> None:
    """torch's exporter writes a model that reads the second result, which nothing makes there."""

    def function(d: Tensors) -> Tensors:
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        found, logarithms = kernel(d["q"], d["k"], d["v"], is_causal=causal)
        return {"y": found, "logarithms": logarithms}

    sample = {name: value[..., :CHANNELS].contiguous() for name, value in _drawn().items()}
    sample = {name: sample[name] for name in "qkv"}
    compiled = context().compile(function, sample, tmp_path / "out")
    assert report_of(tmp_path / "out")["host_fallback"] == []
    found = compiled(sample)
    for name, wanted in function(sample).items():
        assert torch.allclose(found[name].cpu(), wanted, rtol=1e-4, atol=1e-4), name


@pytest.mark.parametrize("mask", [None, torch.zeros(16, 16)], ids=["plain", "masked"])
def test_dropout_of_three_axes(tmp_path: Path, mask: torch.Tensor | None) -> None:
    """Equal scores: each result is the share of values that are kept, in units of 1 / 16."""
    value, p = torch.ones(64, 16, 8), 0.25
    zero = {"q": torch.zeros(64, 16, 8)}
    compiled = context("pfvm:cpu").compile(
        lambda d: {"y": F.scaled_dot_product_attention(d["q"], d["q"], value, mask, dropout_p=p)},
        zero,
        tmp_path / "out",
    )
    first, other = (compiled(zero)["y"].cpu() for _ in range(2))
    kept = first * 16 * (1 - p)
    assert torch.allclose(kept, kept.round(), atol=1e-4)
    assert abs(float(first[..., 0].mean()) - 1) < 5 * (p / (1 - p) / (64 * 16 * 16)) ** 0.5
    assert not torch.equal(first, other)
