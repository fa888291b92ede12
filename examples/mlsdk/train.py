"""Trains one layer of ones, whose losses and biases can be computed by hand."""

import tempfile
from pathlib import Path

import torch
from mlsdk import (
    Context,
    MNCoreSGD,
    MNDevice,
    set_buffer_name_in_optimizer,
    set_tensor_name_in_module,
)

context = Context(MNDevice("mncore2:auto"))
Context.switch_context(context)
model = torch.nn.Linear(10, 1)
with torch.no_grad():
    for parameter in model.parameters():
        parameter.fill_(1)
model.train()
set_tensor_name_in_module(model, "model0")
for parameter in model.parameters():
    context.register_param(parameter)
optimizer = MNCoreSGD(model.parameters(), 0.1, 0.9, 0.0)
set_buffer_name_in_optimizer(optimizer, "optimizer0")
context.register_optimizer_buffers(optimizer)


def train_step(inputs):
    optimizer.zero_grad()
    loss = torch.relu(model(inputs["x"])).sum()
    loss.backward()
    optimizer.step()
    return {"loss": loss}


sample = {"x": torch.ones(1, 10)}
folder = Path(tempfile.gettempdir()) / "train"
compiled = context.compile(train_step, sample, folder)
for _ in range(10):
    loss = compiled(sample)["loss"].item()
    context.synchronize()
    print(f"{loss:.6f} {model.bias.item():.8f}")
