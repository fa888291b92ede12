"""Transcribes with Whisper of transformers: the encoder and one step of the decoder are compiled.

The decoder's key-value cache is in registered buffers: each step changes them on the device.
"""

import argparse
import contextlib
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNDevice, TensorProxy, set_tensor_name, storage, trace_scope
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    StaticCache,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "whisper"))
parser.add_argument("--trace", default=None)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--heads", type=int, default=8)
parser.add_argument("--frames", type=int, default=1500)
parser.add_argument("--positions", type=int, default=448)
parser.add_argument("--tokens", type=int, default=32)
arguments = parser.parse_args()
on_emulator = arguments.device.startswith("emu2")

torch.manual_seed(0)
config = WhisperConfig(
    vocab_size=100,
    num_mel_bins=16,
    d_model=arguments.width,
    encoder_layers=arguments.layers,
    decoder_layers=arguments.layers,
    encoder_attention_heads=arguments.heads,
    decoder_attention_heads=arguments.heads,
    encoder_ffn_dim=2 * arguments.width,
    decoder_ffn_dim=2 * arguments.width,
    max_source_positions=arguments.frames,
    max_target_positions=arguments.positions,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
)
model = WhisperForConditionalGeneration(config).eval()
cache = StaticCache(config=config, max_cache_len=arguments.positions)
cache.early_initialization(
    batch_size=1,
    num_heads=arguments.heads,
    head_dim=arguments.width // arguments.heads,
    dtype=torch.float32,
    device="cpu",
)

context = Context(MNDevice(arguments.device))
Context.switch_context(context)
context.registry.register("whisper", model)
for number, layer in enumerate(cache.layers):
    for name in ("keys", "values", "cumulative_length"):
        set_tensor_name(getattr(layer, name), f"cache.{number}.{name}")
        context.register_buffer(getattr(layer, name))


def encode(inputs):
    return {"states": model.model.encoder(inputs["features"]).last_hidden_state}


def decode(inputs):
    found = model.model.decoder(
        input_ids=inputs["token"],
        encoder_hidden_states=inputs["states"],
        position_ids=inputs["place"],
        cache=EncoderDecoderCache(cache, DynamicCache()),
        use_cache=True,
    )
    return {"next": model.proj_out(found.last_hidden_state[:, -1]).argmax(-1, keepdim=True)}


folder = storage.path(arguments.outdir)
sample = {
    "token": torch.tensor([[1]]),
    "place": torch.tensor([[0]]),
    "states": torch.zeros(1, arguments.frames, arguments.width),
}
decoder = context.compile(decode, sample, folder / "decoder")
features = torch.randn(1, config.num_mel_bins, 2 * arguments.frames)
encoder = context.compile(
    encode,
    {"features": features},
    folder / "encoder",
    io_spec_constraints={"states": decoder.input_specs["states"]},
)
assert encoder.output_specs["states"].is_memcopyable_to(decoder.input_specs["states"])

with trace_scope(arguments.trace) if arguments.trace else contextlib.nullcontext():
    states = encoder({"features": features})["states"]
    assert isinstance(states, TensorProxy)
    inputs = decoder.allocate_input_proxy()
    tokens = [1]
    for place in range(arguments.tokens):
        inputs["token"].load_from(torch.tensor([[tokens[-1]]]), clone=True)
        inputs["place"].load_from(torch.tensor([[place]]), clone=True)
        tokens.append(decoder({**inputs, "states": states})["next"].item())
print("tokens", tokens)

with torch.no_grad():
    wanted, heard = [1], encode({"features": features})["states"]
    for _ in range(arguments.tokens):
        given = torch.tensor([wanted])
        found = model.model.decoder(input_ids=given, encoder_hidden_states=heard)
        wanted.append(model.proj_out(found.last_hidden_state[:, -1]).argmax(-1).item())
assert tokens == wanted, wanted
