"""The Llama of the pipeline scripts, and what it starts with."""

import torch
from mlsdk.experimental.llm.attention_mask import (
    prepare_4d_causal_attention_mask_with_cache_position,
)
from transformers import LlamaConfig, LlamaForCausalLM

PROMPT = [3, 14, 15]


def llama(layers, width):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config).eval()


def padded_prompt(length):
    """Return the prompt behind padding, its positions and its mask, as a tokenizer gives them."""
    padding = [0] * (length - len(PROMPT))
    mask = torch.tensor([padding + [1] * len(PROMPT)])
    positions = mask.cumsum(1)
    prepare = prepare_4d_causal_attention_mask_with_cache_position
    return {
        "input_ids": torch.tensor([padding + PROMPT]),
        "position_ids": positions,
        "attention_mask": prepare(mask, positions, torch.float32),
    }


def after_a_token(inputs, token):
    """Return what the next token starts with; the caches have lost their first place."""
    mask = inputs["attention_mask"][:, :, -1:].roll(-1, -1)
    mask[..., -1] = 0
    return {
        "input_ids": token,
        "position_ids": inputs["position_ids"][:, -1:] + 1,
        "attention_mask": mask,
    }
