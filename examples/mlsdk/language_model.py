"""Trains a language model written with recurrent cells, an LSTM or a GRU, on letters."""

import argparse
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNCoreAdam, MNDevice, storage
from torch import nn
from torch.nn.functional import cross_entropy

TEXTS = Path(__file__).parents[2] / "docs"

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "language_model"))
parser.add_argument("--option_json", default=None)
parser.add_argument("--cell", choices=("lstm", "gru"), default="lstm")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--sequence", type=int, default=12)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--plain", action="store_true", help="train with torch alone")
arguments = parser.parse_args()


class LanguageModel(nn.Module):
    def __init__(self, letters, width, cell):
        super().__init__()
        self.letters, self.head = nn.Embedding(letters, width), nn.Linear(width, letters)
        self.cell = nn.LSTMCell(width, width) if cell == "lstm" else nn.GRUCell(width, width)

    def forward(self, ids):
        x = self.letters(ids)
        hidden = torch.zeros(len(ids), x.shape[-1])
        memory = torch.zeros_like(hidden)
        out = []
        for place in range(ids.shape[1]):
            if isinstance(self.cell, nn.LSTMCell):
                hidden, memory = self.cell(x[:, place], (hidden, memory))
            else:
                hidden = self.cell(x[:, place], hidden)
            out.append(hidden)
        return self.head(torch.stack(out, 1))


text = "".join(page.read_text() for page in sorted(TEXTS.glob("*.md")))
letters = sorted(set(text))
data = torch.tensor([letters.index(letter) for letter in text])
torch.manual_seed(0)
model = LanguageModel(len(letters), arguments.width, arguments.cell)
kind = torch.optim.Adam if arguments.plain else MNCoreAdam
optimizer = kind(model.parameters(), lr=5e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
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
    options = {"option_json": arguments.option_json} if arguments.option_json else {}
    sample = {"ids": data[: arguments.sequence].repeat(arguments.batch, 1)}
    sample["next"] = sample["ids"]
    folder = storage.path(arguments.outdir)
    step = context.compile(train_step, sample, folder, options=options)

for number in range(arguments.steps):
    loss = step(batch())["loss"].item()
    if number % 10 == 9 or number < 3 or number == arguments.steps - 1:
        print(f"step {number + 1}: loss {loss:.4f}")
