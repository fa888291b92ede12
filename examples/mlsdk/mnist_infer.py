"""Tests the checkpoint of `mnist_train.py` with torch alone."""

import argparse
import tempfile
from pathlib import Path

import torch
from grown_digits import SIDE, grown_digits
from mlsdk import storage
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "mnist_torch"))
parser.add_argument("--pictures", type=int, default=60000)
parser.add_argument("--test-pictures", type=int, default=10000)
arguments = parser.parse_args()

model = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 256), nn.ReLU(), nn.Linear(256, 10))
model.load_state_dict(torch.load(storage.path(arguments.outdir) / "checkpoint.pt"))
pictures, labels = grown_digits(arguments.pictures, arguments.test_pictures)[1]
with torch.no_grad():
    correct = (model(pictures).argmax(1) == labels).sum().item()
print(f"accuracy {correct / len(labels):.4f}")
