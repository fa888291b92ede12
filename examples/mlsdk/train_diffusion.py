"""Trains a small UNet to predict noise, with a learning rate that falls from step to step."""

import argparse
import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNCoreAdamW, MNCoreLRScheduler, MNDevice, storage
from small_unet import UNet

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "train_diffusion"))
parser.add_argument("--side", type=int, default=64)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--batch", type=int, default=4)
parser.add_argument("--steps", type=int, default=100)
arguments = parser.parse_args()
WIDTH, BATCH = arguments.width, arguments.batch

torch.manual_seed(0)
unet = UNet(WIDTH, WIDTH)
optimizer = MNCoreAdamW(unet.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2)
context = Context(MNDevice(arguments.device))
Context.switch_context(context)
context.registry.register("unet", unet)
context.registry.register("optimizer0", optimizer)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
scheduler = MNCoreLRScheduler(schedule, context)


def train_step(inputs):
    optimizer.zero_grad()
    found = unet(inputs["noisy"], inputs["time"], inputs["text"])
    loss = torch.nn.functional.mse_loss(found, inputs["noise"])
    loss.backward()
    optimizer.step()
    return {"loss": loss}


def batch():
    noise = torch.randn(BATCH, 4, arguments.side, arguments.side)
    share = torch.rand(BATCH, 1, 1, 1)
    picture = torch.ones_like(noise)
    return {
        "noisy": picture * (1 - share).sqrt() + noise * share.sqrt(),
        "noise": noise,
        "time": share.flatten() * 10,
        "text": torch.ones(BATCH, 8, WIDTH),
    }


step = context.compile(train_step, batch(), storage.path(arguments.outdir))
losses = []
for _ in range(arguments.steps):
    losses.append(step(batch())["loss"].item())
    scheduler.step()
context.synchronize()
print("losses", " ".join(f"{loss:.4f}" for loss in losses))
assert losses[-1] < losses[0]
