"""Trains a classifier of handwritten digits with torch alone; MLSDK gives the checkpoint's path."""

import argparse
import tempfile
from pathlib import Path

import torch
from grown_digits import SIDE, grown_digits
from mlsdk import storage
from torch import nn
from torch.nn.functional import cross_entropy

parser = argparse.ArgumentParser()
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "mnist_torch"))
parser.add_argument("--pictures", type=int, default=60000)
parser.add_argument("--test-pictures", type=int, default=10000)
arguments = parser.parse_args()

torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.05, 0.9)
pictures, labels = grown_digits(arguments.pictures, arguments.test_pictures)[0]
for chosen in torch.randperm(len(pictures)).split(64):
    optimizer.zero_grad()
    loss = cross_entropy(model(pictures[chosen]), labels[chosen])
    loss.backward()
    optimizer.step()
folder = storage.path(arguments.outdir)
folder.mkdir(parents=True, exist_ok=True)
torch.save(model.state_dict(), folder / "checkpoint.pt")
print(f"loss {loss.item():.4f}")
