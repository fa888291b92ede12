"""Trains neural collaborative filtering on synthetic ratings, in two contexts: train and test."""

import argparse
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNCoreAdam, MNDevice, storage
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

TOP, OTHERS, TASTES = 10, 50, 4  # hits among the first TOP of one wanted item and OTHERS

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "ncf"))
parser.add_argument("--option_json", default=None)
parser.add_argument("--users", type=int, default=200)
parser.add_argument("--items", type=int, default=150)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--batch", type=int, default=512)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--steps", type=int, default=50, help="steps of an epoch")
arguments = parser.parse_args()
USERS, ITEMS, WIDTH = arguments.users, arguments.items, arguments.width


class NeuMF(nn.Module):
    """A product of factors beside a perceptron; He et al., Neural Collaborative Filtering, 2017."""

    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, WIDTH), nn.Embedding(ITEMS, WIDTH)
        self.users2, self.items2 = nn.Embedding(USERS, WIDTH), nn.Embedding(ITEMS, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(2 * WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH), nn.ReLU()
        )
        self.last = nn.Linear(2 * WIDTH, 1)

    def forward(self, user, item):
        factors = self.users(user) * self.items(item)
        deep = self.mlp(torch.cat([self.users2(user), self.items2(item)], 1))
        return self.last(torch.cat([factors, deep], 1)).squeeze(1)


# Each user likes the items that fit the user's taste. The one that fits best is for the test.
torch.manual_seed(0)
tastes = torch.randn(USERS, TASTES) @ torch.randn(TASTES, ITEMS)
order = tastes.argsort(1, descending=True)
wanted, liked = order[:, 0], order[:, 1 : ITEMS // 4]
likes = torch.zeros(USERS, ITEMS).scatter_(1, liked, 1.0)


def batch():
    user = torch.randint(USERS, (arguments.batch,))
    good = liked[user, torch.randint(liked.shape[1], (arguments.batch,))]
    other = torch.randint(ITEMS, good.shape)
    shown_good = (torch.rand(arguments.batch) < 0.5) | (other == wanted[user])
    item = torch.where(shown_good, good, other)
    return {"user": user, "item": item, "liked": likes[user, item]}


model = NeuMF()
optimizer = MNCoreAdam(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0)
training, testing = Context(MNDevice(arguments.device)), Context(MNDevice(arguments.device))
options = {"option_json": arguments.option_json} if arguments.option_json else {}
folder = storage.path(arguments.outdir)


def train_step(inputs):
    optimizer.zero_grad()
    scores = model(inputs["user"], inputs["item"])
    loss = binary_cross_entropy_with_logits(scores, inputs["liked"])
    loss.backward()
    optimizer.step()
    return {"loss": loss}


def test_step(inputs):
    return {"scores": model(inputs["user"], inputs["item"])}


Context.switch_context(training)
training.registry.register("model0", model)
training.registry.register("optimizer0", optimizer)
step = training.compile(train_step, batch(), folder / "train", options=options)
Context.switch_context(testing)
testing.registry.register("model0", model)
count = 1 + OTHERS
candidates = torch.cat([wanted[:, None], torch.randint(ITEMS, (USERS, OTHERS))], 1)
everyone = {"user": torch.arange(USERS).repeat_interleave(count), "item": candidates.flatten()}
tested = testing.compile(test_step, everyone, folder / "test", options=options)

for epoch in range(arguments.epochs):
    Context.switch_context(training)
    losses = [step(batch())["loss"].item() for _ in range(arguments.steps)]
    training.synchronize()
    Context.switch_context(testing)
    for parameter in model.parameters():
        testing.get_registered_value_proxy(parameter).load_from(parameter.detach())
    scores = tested(everyone)["scores"].cpu().reshape(USERS, count)
    better = (scores[:, 1:] > scores[:, :1]).sum(1)
    hits = (better < TOP).float().mean().item()
    print(f"epoch {epoch + 1}: mean loss {sum(losses) / len(losses):.4f}, hit rate {hits:.3f}")
