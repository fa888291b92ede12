"""Makes a picture from a text: text encoder, UNet and decoder are compiled apart."""

import argparse
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNDevice, storage
from small_unet import UNet, decoder
from transformers import CLIPTextConfig, CLIPTextModel

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "stable_diffusion"))
parser.add_argument("--side", type=int, default=64)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--guidance", type=float, default=7.5)
arguments = parser.parse_args()
SIDE, WIDTH, WORDS = arguments.side, arguments.width, 8

torch.manual_seed(0)
text_config = CLIPTextConfig(
    vocab_size=50,
    hidden_size=WIDTH,
    intermediate_size=2 * WIDTH,
    num_hidden_layers=1,
    num_attention_heads=2,
    max_position_embeddings=WORDS,
    bos_token_id=1,
    eos_token_id=2,
)
text_encoder, unet, vae = CLIPTextModel(text_config).eval(), UNet(WIDTH, WIDTH), decoder(WIDTH)
kept = torch.linspace(0.99, 0.01, arguments.steps + 1)  # how much of the picture is no noise


class Scheduler:
    """Goes from one share of noise to the next without new noise (DDIM)."""

    def step(self, noise, number, latents):
        now, then = kept[arguments.steps - number], kept[arguments.steps - number - 1]
        clean = (latents - noise * (1 - now).sqrt()) / now.sqrt()
        return clean * then.sqrt() + noise * (1 - then).sqrt()


def sample_with(encode, predict, decode):
    """Return the picture that three functions make."""
    scheduler, latents = Scheduler(), first
    texts = torch.cat([encode({"ids": ids})["text"] for ids in (prompt, nothing)])
    for number in range(arguments.steps):
        time = torch.full((2,), float(number))
        noise = predict({"x": torch.cat([latents] * 2), "time": time, "text": texts})["noise"]
        told, free = noise.chunk(2)
        noise = free + arguments.guidance * (told - free)
        latents = scheduler.step(noise, number, latents)
    return decode({"x": latents})["picture"]


def encode(inputs):
    return {"text": text_encoder(input_ids=inputs["ids"]).last_hidden_state}


def predict(inputs):
    return {"noise": unet(inputs["x"], inputs["time"], inputs["text"])}


def decode(inputs):
    return {"picture": vae(inputs["x"])}


context = Context(MNDevice(arguments.device))
Context.switch_context(context)
for name, module in (("text", text_encoder), ("unet", unet), ("vae", vae)):
    context.registry.register(name, module)
prompt, nothing = torch.tensor([[1, 7, 9, 3, 2, 2, 2, 2]]), torch.tensor([[1] + [2] * 7])
first = torch.randn(1, 4, SIDE, SIDE)
folder = storage.path(arguments.outdir)
texts = torch.zeros(2, WORDS, WIDTH)
samples = {
    encode: {"ids": prompt},
    predict: {"x": torch.cat([first] * 2), "time": torch.zeros(2), "text": texts},
    decode: {"x": first},
}
compiled = [context.compile(f, given, folder / f.__name__) for f, given in samples.items()]
picture = sample_with(*compiled).cpu()
with torch.no_grad():
    wanted = sample_with(encode, predict, decode)
torch.save(picture, folder / "picture.pt")
print("picture", tuple(picture.shape), torch.allclose(picture, wanted, atol=1e-2))
assert torch.allclose(picture, wanted, atol=1e-2)
