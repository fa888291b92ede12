"""Trains a small GPT to predict the next letter of the project's own documentation."""

import argparse
import tempfile
import time
from pathlib import Path

import torch
from mlsdk import Context, MNCoreAdamW, MNDevice, storage
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

TEXTS = Path(__file__).parents[2] / "docs"

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "gpt"))
parser.add_argument("--option_json", default=None)
parser.add_argument("--float_dtype", default="float", choices=["float", "mixed"])
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--sequence", type=int, default=128)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--plain", action="store_true", help="train with torch alone")
arguments = parser.parse_args()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters, width, heads, layers, length):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.letters(ids) + self.places)))


text = "".join(page.read_text() for page in sorted(TEXTS.glob("*.md")))
letters = sorted(set(text))
data = torch.tensor([letters.index(letter) for letter in text])
torch.manual_seed(0)
model = GPT(len(letters), arguments.width, arguments.heads, arguments.layers, arguments.sequence)
kind = torch.optim.AdamW if arguments.plain else MNCoreAdamW
optimizer = kind(model.parameters(), lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.01)
random = torch.Generator().manual_seed(1)


def batch():
    starts = torch.randint(len(data) - arguments.sequence, (arguments.batch,), generator=random)
    windows = torch.stack([data[start : start + arguments.sequence + 1] for start in starts])
    return {"ids": windows[:, :-1], "next": windows[:, 1:].contiguous()}


def train_step(inputs):
    optimizer.zero_grad()
    scores = model(inputs["ids"])
    loss = cross_entropy(scores.flatten(0, 1), inputs["next"].flatten())
    loss.backward()
    optimizer.step()
    return {"loss": loss}


step = train_step
if not arguments.plain:
    context = Context(MNDevice(arguments.device))
    Context.switch_context(context)
    context.registry.register("model0", model)
    context.registry.register("optimizer0", optimizer)
    options = {"float_dtype": arguments.float_dtype}
    if arguments.option_json:
        options["option_json"] = arguments.option_json
    folder = storage.path(arguments.outdir)
    sample = {"ids": data[: arguments.sequence].repeat(arguments.batch, 1)}
    sample["next"] = sample["ids"]
    start = time.perf_counter()
    step = context.compile(train_step, sample, folder, options=options)
    print(f"compiled in {time.perf_counter() - start:.1f} s")

start = time.perf_counter()
for number in range(arguments.steps):
    loss = step(batch())["loss"].item()
    if number % 10 == 9 or number == arguments.steps - 1:
        print(f"step {number + 1}: loss {loss:.4f}, {time.perf_counter() - start:.1f} s")
