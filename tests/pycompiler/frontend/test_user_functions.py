"""Typical PyTorch code of users: runs on the device, or is named with reason and line."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from compiling import LONG, compiled, context, report_of, run
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.pfvm.optimise import optimise

Tensors = dict[str, torch.Tensor]
F = nn.functional


class Tiny(nn.Module):
    """A language model: embedding, causal attention by torch's own module, MLP, tied head."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Parameter(torch.randn(1, 6, 8))
        self.norm, self.mixing = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.rest = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        x = self.words(tokens) + self.places
        h = self.norm(x)
        mask = torch.triu(torch.ones(6, 6, dtype=torch.bool), 1)
        x = x + self.mixing(h, h, h, attn_mask=mask, need_weights=False)[0]
        return (x + self.rest(self.norm(x))) @ self.words.weight.T


def language_model(d: Tensors) -> Tensors:
    torch.manual_seed(3)
    logits = TINY(d["tokens"])
    chances = logits.log_softmax(-1)
    picked = chances.gather(-1, d["tokens"].unsqueeze(-1)).squeeze(-1)
    return {"logits": logits, "picked": picked, "best": logits.argmax(-1)}


def attention(d: Tensors) -> Tensors:
    q, k, v = d["x"].view(2, 6, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
    seen = torch.tril(torch.ones(6, 6)).bool()
    scores = (q @ k.mT / 2.0).masked_fill(~seen, float("-inf"))
    ours = scores.softmax(-1) @ v
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return {"ours": ours.transpose(1, 2).flatten(2), "theirs": theirs}


def norms(d: Tensors) -> Tensors:
    x = d["x"]
    centred = x - x.mean(-1, keepdim=True)
    spread = x.var(-1, unbiased=False, keepdim=True)
    return {
        "layer": centred / torch.sqrt(spread + 1e-3),
        "root": x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3),
        "standard": (x - x.mean(0)) / (x.std(0) + 0.5),
        "unit": F.normalize(x, dim=-1),
        "length": x.norm(dim=1),
        "soft": torch.logsumexp(x, (0, 2)),
        "group": F.group_norm(x.transpose(1, 2), 4),
    }


def rotary(d: Tensors) -> Tensors:
    angle = torch.arange(6)[:, None] * 10.0 ** -torch.arange(0, 4, 0.5)
    even, odd = d["x"][..., :16:2], d["x"][..., 1:16:2]
    turned = [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()]
    return {"turned": torch.stack(turned, -1).flatten(-2)}


def views(d: Tensors) -> Tensors:
    x = d["x"]
    first, second = x.chunk(2, -1)
    return {
        "chained": x.view(12, 24)
        .t()
        .contiguous()
        .view(3, 8, 12)
        .permute(2, 0, 1)
        .reshape(-1)[5::3],
        "stacked": torch.stack([first, second, first * second], 1),
        "joined": torch.cat([first, second.flip(1)[:, 1:]], 1),
        "rolled": torch.roll(x, (1, -2), (1, 2)),
        "repeated": first.repeat_interleave(2, dim=1),
        "diagonal": torch.diagonal(x[:, :, :6], dim1=1, dim2=2),
        "outer": torch.outer(x[0, 0], x[1, 1, :5]),
        "padded": F.pad(x, (1, 2, 0, 1), value=-1.0),
    }


def masks(d: Tensors) -> Tensors:
    x, m = d["x"], d["x"] > 0.3
    return {
        "where": torch.where(m, x, 0.5),
        "gate": x * m,
        "share": m.float().mean(),
        "glu": F.glu(x, -1),
        "clamped": x.clamp(min=x.mean()),
        "hot": F.one_hot(x.argmax(-1), 24),
        "hits": (x.argmax(-1) == x.argmin(-1)).float().sum(),
        "silu": F.silu(x),
    }


def integers(d: Tensors) -> Tensors:
    i, j = d["i"], d["j"]
    return {
        "line": i * 3 - 7,
        "wide": i.long() * j,
        "less": i < j,
        "ends": j.clamp(-2, 3),
        "quotient": i.float() / j.float().abs().clamp(min=1),
        "mask": (i > 0).int(),
    }


FUNCTIONS = (language_model, attention, norms, rotary, views, masks, integers)
torch.manual_seed(3)
TINY = Tiny().eval()


#: What `make test` compiles: tests of operators have the parts of the others.
QUICK = (language_model, norms, integers)


def everything(d: Tensors) -> Tensors:
    chosen = FUNCTIONS if LONG else QUICK
    return {f"{f.__name__}.{key}": t for f in chosen for key, t in f(d).items()}


def inputs(seed: int) -> Tensors:
    made = torch.Generator().manual_seed(seed)
    return {
        "x": torch.randn(2, 6, 24, generator=made),
        "tokens": torch.randint(0, 11, (2, 6), generator=made),
        "i": torch.randint(-9, 9, (8, 5), generator=made, dtype=torch.int32),
        "j": torch.randint(-9, 9, (8, 5), generator=made),
    }


#: Largest |result - PyTorch's|, divided by 1 + the largest element.
LIMITS = {"float": 2e-5, "mixed": 5e-2}


@lru_cache(maxsize=1)
def model() -> onnx.ModelProto:
    return optimise(export(everything, inputs(1)))


@pytest.mark.parametrize(
    ("machine", "mode"),
    [
        ("mini", "mixed"),
        pytest.param("mini", "float", marks=pytest.mark.long),
        pytest.param("mncore2", "float", marks=pytest.mark.long),
    ],
)
def test_on_the_device(machine: str, mode: str) -> None:
    result, report = compiled(model(), machine, strict=True, float_dtype=mode)
    assert report["host_fallback"] == []
    given = inputs(2)
    found = run(result, {name: tensor.numpy() for name, tensor in given.items()}, machine)
    for name, expected in everything(given).items():
        array, wanted = found[name], expected.detach().numpy()
        assert (array.shape, array.dtype) == (wanted.shape, wanted.dtype), name
        if wanted.dtype.kind != "f":
            # errors of products in half may change which of two elements is larger
            same = np.array_equal(array, wanted)
            assert same or (mode, name) == ("mixed", "language_model.best"), name
            continue
        limit = LIMITS[mode] * (1 + np.abs(wanted).max())
        assert np.abs(array - wanted).max() <= limit, name


def _others(d: Tensors) -> Tensors:
    best = torch.cos(d["x"] * 2) + 1
    running = torch.asinh(d["x"].relu()) * 2
    return {"best": best, "running": running, "turned": torch.sin(d["x"] + 1) - d["x"]}


def test_what_is_not_in_the_table(tmp_path: Path) -> None:
    given, sample = ({"x": inputs(seed)["x"]} for seed in (2, 1))
    first = _others.__code__.co_firstlineno + 1
    lines = {op: f"{__file__}:{first + n}" for n, op in enumerate(("Cos", "Asinh", "Sin"))}
    with pytest.warns(UserWarning, match="Cos"):
        made = context("emu2:mini").compile(_others, sample, tmp_path / "out")
    named = report_of(tmp_path / "out")["host_fallback"]
    assert {entry["op"]: entry["source"] for entry in named} == lines
    assert all(entry["reason"] == f"no layer for {entry['op']}" for entry in named)
    found = made(given)
    for name, wanted in _others(given).items():
        tensor = found[name].cpu()
        assert isinstance(tensor, torch.Tensor)
        assert torch.allclose(tensor, wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(PycompilerError) as caught:
        context("emu2:mini").compile(_others, sample, tmp_path / "no", options={"strict": True})
    assert caught.value.code == "P0303"
    assert str(caught.value.place) in lines.values()
