"""Compiles an addition into ``add_two_tensors`` of the temporary folder."""

import tempfile
from pathlib import Path

import torch
from mlsdk import Context, MNDevice

context = Context(MNDevice("mncore2:auto"))
Context.switch_context(context)
sample = {"x": torch.zeros(3, 4), "y": torch.zeros(3, 4)}
context.compile(
    lambda inputs: {"out": inputs["x"] + inputs["y"]},
    sample,
    Path(tempfile.gettempdir()) / "add_two_tensors",
)
