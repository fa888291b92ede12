"""Infers with, or trains, a model of timm; MNCORE_USE_LEGACY_ONNX_EXPORTER=1 trains by backprop."""

import argparse
import os
import tempfile
from pathlib import Path

import timm
import torch
from mlsdk import CacheOptions, Context, MNCoreSGD, MNDevice, storage
from torch.nn.functional import cross_entropy

parser = argparse.ArgumentParser()
parser.add_argument("--model_name", default="resnet50")
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--side", type=int, default=224)
parser.add_argument("--mode", choices=("infer", "train"), default="infer")
parser.add_argument("--device", default="mncore2:auto")
parser.add_argument("--outdir", default=str(Path(tempfile.gettempdir()) / "run_timm"))
parser.add_argument("--option_json", default=None)
parser.add_argument("--steps", type=int, default=12)
arguments = parser.parse_args()
LEGACY = os.environ.get("MNCORE_USE_LEGACY_ONNX_EXPORTER") == "1"

torch.manual_seed(0)
model = timm.create_model(arguments.model_name, num_classes=10)
context = Context(MNDevice(arguments.device))
Context.switch_context(context)
folder = storage.path(arguments.outdir)
settings = {
    "options": {"option_json": arguments.option_json} if arguments.option_json else {},
    "cache_options": CacheOptions(folder / "cache"),
    "export_kwargs": {"use_fx2onnx": not LEGACY},
}
picture = torch.randn(1, 3, arguments.side, arguments.side)
sample = {"x": picture.expand(arguments.batch_size, -1, -1, -1)}


def infer():
    model.eval()
    context.registry.register("model0", model)
    compiled = context.compile(
        lambda inputs: {"scores": model(inputs["x"])}, sample, folder / "infer", **settings
    )
    scores = compiled(sample)["scores"].cpu()
    with torch.no_grad():
        wanted = model(sample["x"])
    for found in (scores, wanted):
        print("top", found[0].topk(5).indices.tolist())
    print("difference", f"{(scores - wanted).abs().max().item():.1e}")


def train():
    labels = torch.arange(arguments.batch_size) % 10
    pictures = torch.randn(arguments.batch_size, *picture.shape[1:])
    batch = {"x": pictures, "t": labels}
    model.train()

    def loss_of(inputs):
        return {"loss": cross_entropy(model(inputs["x"]), inputs["t"])}

    def train_step(inputs):
        optimizer.zero_grad()
        found = loss_of(inputs)
        found["loss"].backward()
        optimizer.step()
        return found

    if LEGACY:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        context.registry.register("model0", model)
        context.registry.register("optimizer0", optimizer)
        settings["options"] |= {"backprop": True}
        step = context.compile(loss_of, batch, folder / "train", optimizers=[optimizer], **settings)
        batch |= {
            "optimizer0@0@mncore_learning_rate": torch.tensor(0.1),
            "mncore_grad_scale_factor": torch.tensor(1.0),
        }
    else:
        optimizer = MNCoreSGD(model.parameters(), 0.1, 0.0, 0.0)
        context.registry.register("model0", model)
        context.registry.register("optimizer0", optimizer)
        step = context.compile(train_step, batch, folder / "train", **settings)
    losses = []
    for number in range(arguments.steps):
        if LEGACY:
            batch["optimizer0@0@mncore_global_step"] = torch.tensor(number)
        losses.append(step(batch)["loss"].item())
    context.synchronize()
    print("losses", " ".join(f"{loss:.4f}" for loss in losses))
    assert losses[-1] < losses[0]


train() if arguments.mode == "train" else infer()
