"""Compares networks with text as input with their targets: rows for `make bench`.

Values are cycles or steps of the cycle model, with ``scheduler: spill_opt`` in `mixed`; nothing
runs on the emulator. The bound is that of ``report.json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from targets_layers import Row, compiled_row, report_of
from torch import nn

TOKENS = 30_522
WIDTH = 768


def gpt2(tokens: int) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return four blocks of GPT-2 small with its embedding and head, and one text."""
    import transformers

    config = transformers.GPT2Config(n_layer=4, use_cache=False)
    texts = torch.randint(0, config.vocab_size, (1, tokens))
    return transformers.GPT2LMHeadModel(config), {"input_ids": texts}


def bert() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return a BERT of two layers of width 64, and a text of 16 tokens."""
    import transformers

    config = transformers.BertConfig(
        vocab_size=256,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=64,
    )
    return transformers.BertModel(config), {"input_ids": torch.randint(3, 256, (1, 16))}


def rows(machine: str = "mncore2") -> Iterator[Row]:
    """Yield a row for each network."""
    for tokens, most in ((256, 8.0), (1, 8.0)):
        torch.manual_seed(0)
        name = f"GPT-2 small, 4 blocks with embedding and head, {tokens} tokens"
        module, inputs = gpt2(tokens)
        yield compiled_row(name, module.eval(), inputs, "mixed", most, machine)
    for tokens, steps in ((16, 2_000), (4096, 45_000)):
        torch.manual_seed(0)
        texts = {"x": torch.randint(0, TOKENS, (tokens,))}
        name = f"embedding of {tokens} tokens, table {TOKENS} x {WIDTH}"
        yield _steps(name, nn.Embedding(TOKENS, WIDTH), texts, steps, machine)
    torch.manual_seed(0)
    module, inputs = bert()
    name = "BERT, 2 layers of width 64, 16 tokens"
    yield _steps(name, module.eval(), inputs, 2_500, machine)


def _steps(
    name: str, module: nn.Module, inputs: dict[str, torch.Tensor], most: int, machine: str
) -> Row:
    found: dict[str, Any] | str = report_of(module, inputs, "mixed", machine)
    if isinstance(found, str):
        return {"name": f"{name}: {found}", "value": None, "target": "", "met": False}
    return {
        "name": name,
        "value": found["steps"],
        "unit": f"steps ({found['cycles']} cycles)",
        "bound": most,
        "ratio": found["steps"] / most,
        "target": "at most 1",
        "met": found["steps"] <= most,
    }
