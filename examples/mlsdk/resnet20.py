"""Trains a ResNet-20 on handwritten digits in three channels."""

import argparse
import tempfile
import time
from pathlib import Path

import torch
from grown_digits import grown_digits
from mlsdk import Context, MNCoreSGD, MNDevice, storage
from torch import nn
from torch.nn.functional import cross_entropy, pad

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "resnet20"))
parser.add_argument("--option_json", default=None)
parser.add_argument("--float_dtype", default="float", choices=["float", "mixed"])
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--blocks", type=int, default=3, help="blocks of each of the three widths")
parser.add_argument("--plain", action="store_true", help="train with torch alone")
arguments = parser.parse_args()


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.stride, self.more = stride, outside - inside

    def forward(self, x):
        y = self.norm1(self.conv1(x)).relu()
        y = self.norm2(self.conv2(y))
        if self.more:
            x = pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))
        return (x + y).relu()


class ResNet(nn.Module):
    def __init__(self, blocks, classes=10):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        widths = [(16, 16, 1), (16, 32, 2), (32, 64, 2)]
        rows = []
        for inside, outside, stride in widths:
            rows.append(Block(inside, outside, stride))
            rows += [Block(outside, outside, 1) for _ in range(blocks - 1)]
        self.rows, self.last = nn.Sequential(*rows), nn.Linear(64, classes)

    def forward(self, x):
        x = self.rows(self.norm(self.first(x)).relu())
        return self.last(x.mean((2, 3)))


torch.manual_seed(0)
model = ResNet(arguments.blocks).train()
if arguments.plain:
    optimizer = torch.optim.SGD(model.parameters(), 0.05, 0.9, weight_decay=1e-4)
else:
    optimizer = MNCoreSGD(model.parameters(), 0.05, 0.9, 1e-4)


def train_step(batch):
    optimizer.zero_grad()
    loss = cross_entropy(model(batch["x"]), batch["t"])
    loss.backward()
    optimizer.step()
    return {"loss": loss}


(pictures, labels), _ = grown_digits(arguments.batch * max(arguments.steps, 8), 1)
pictures = pictures.expand(-1, 3, -1, -1).contiguous()
step = train_step
if not arguments.plain:
    context = Context(MNDevice(arguments.device))
    Context.switch_context(context)
    context.registry.register("model0", model)
    context.registry.register("optimizer0", optimizer)
    options = {"float_dtype": arguments.float_dtype}
    if arguments.option_json:
        options["option_json"] = arguments.option_json
    sample = {"x": pictures[: arguments.batch], "t": labels[: arguments.batch]}
    folder = storage.path(arguments.outdir)
    start = time.perf_counter()
    step = context.compile(train_step, sample, folder, options=options)
    print(f"compiled in {time.perf_counter() - start:.1f} s")

start = time.perf_counter()
for number in range(arguments.steps):
    part = slice(number * arguments.batch, (number + 1) * arguments.batch)
    loss = step({"x": pictures[part], "t": labels[part]})["loss"].item()
    print(f"step {number + 1}: loss {loss:.4f}, {time.perf_counter() - start:.1f} s")
