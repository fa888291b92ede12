"""The Llama of the pipeline scripts, and its stages: embedding, decoder layers, head."""

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


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


class Stage(nn.Module):
    """Some layers of a Llama; the first stage takes tokens, the last gives logits."""

    def __init__(self, model, number, count):
        super().__init__()
        layers = model.model.layers
        begin, end = (len(layers) * at // count for at in (number, number + 1))
        self.embed = model.model.embed_tokens if number == 0 else None
        self.layers, self.rotary = layers[begin:end], model.model.rotary_emb
        self.norm = model.model.norm if number == count - 1 else None
        self.head = model.lm_head if number == count - 1 else None

    def forward(self, x):
        if self.embed is not None:
            x = self.embed(x)
        places = torch.arange(x.shape[1])[None]
        mask = torch.full((x.shape[1], x.shape[1]), -1e9).triu(1)[None, None]
        rotary = self.rotary(x, places)
        for layer in self.layers:
            x = layer(x, attention_mask=mask, position_ids=places, position_embeddings=rotary)
        return x if self.norm is None else self.head(self.norm(x))


def sample_of(stage, length, width):
    tokens = torch.arange(length)[None] % 64
    return {"x": tokens if stage == 0 else torch.zeros(1, length, width)}
