"""Generates text greedily with a Llama of transformers, one token for each call of the device."""

import argparse
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNDevice, storage
from mlsdk.experimental.llm.attention_mask import (
    prepare_4d_causal_attention_mask_with_cache_position,
)
from mlsdk.experimental.llm.kv_cache import kv_cache_to_legacy, kv_cache_to_tensor
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "llm_infer"))
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--positions", type=int, default=32)
parser.add_argument("--tokens", type=int, default=8, help="tokens to generate")
arguments = parser.parse_args()
PLACES, HEADS = arguments.positions, 4

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=96,
    hidden_size=arguments.width,
    intermediate_size=2 * arguments.width,
    num_hidden_layers=arguments.layers,
    num_attention_heads=HEADS,
    num_key_value_heads=HEADS // 2,
    max_position_embeddings=PLACES + 1,
)
model = LlamaForCausalLM(config).eval()


def decode(inputs):
    """Take a token at a place; the cache has a value for every place, and the mask hides most."""
    kept = inputs["kv_cache"]
    found = model(
        input_ids=inputs["input_ids"],
        position_ids=inputs["position_ids"],
        attention_mask=inputs["attention_mask"],
        past_key_values=DynamicCache(kv_cache_to_legacy(kept)),
    )
    own = kv_cache_to_tensor(found.past_key_values)[..., PLACES:, :]
    here = (torch.arange(PLACES) == inputs["position_ids"]).reshape(1, 1, 1, 1, PLACES, 1)
    return {"logits": found.logits[:, -1], "kv_cache": torch.where(here, own, kept)}


def step_inputs(token, place):
    """The token sees the places before its own, and itself, which stands behind them all."""
    seen = torch.cat([torch.arange(PLACES) < place, torch.tensor([True])])[None].long()
    last = torch.tensor([[PLACES]])
    return {
        "input_ids": torch.tensor([[token]]),
        "position_ids": torch.tensor([[place]]),
        "attention_mask": prepare_4d_causal_attention_mask_with_cache_position(
            seen, last, torch.float32
        ),
    }


context = Context(MNDevice(arguments.device))
Context.switch_context(context)
context.registry.register("llama", model)
empty = torch.zeros(arguments.layers, 2, 1, HEADS // 2, PLACES, arguments.width // HEADS)
compiled = context.compile(
    decode,
    {**step_inputs(0, 0), "kv_cache": empty},
    storage.path(arguments.outdir),
    options={"float_dtype": "float"},
    num_compiler_threads=1,
)

tokens, cache = [3, 14, 15], empty
while len(tokens) < 3 + arguments.tokens:
    for place in range(0 if cache is empty else len(tokens) - 1, len(tokens)):
        out = compiled({**step_inputs(tokens[place], place), "kv_cache": cache})
        cache = out["kv_cache"]
    tokens.append(out["logits"].argmax(-1).item())
print("tokens", tokens)
prompt = torch.tensor([tokens[:3]])
wanted = model.generate(prompt, max_new_tokens=arguments.tokens, do_sample=False, eos_token_id=None)
assert tokens == wanted[0].tolist()
