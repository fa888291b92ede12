"""Adds two tensors on an MN-Core 2, with the calls of the vendor's first example."""

import os
import tempfile

import torch
from mlsdk import CacheOptions, Context, MNDevice, storage


def run_add():
    folder = os.environ.get("ADD_OUT") or tempfile.mkdtemp()
    device = MNDevice("mncore2:auto")
    context = Context(device)
    Context.switch_context(context)

    def add(inputs):
        return {"out": inputs["x"] + inputs["y"]}

    sample = {"x": torch.ones(3, 4), "y": torch.ones(3, 4)}
    compiled_add = context.compile(
        add,
        sample,
        storage.path(folder),
        options={"float_dtype": "float"},
        cache_options=CacheOptions(f"{folder}_cache"),
    )
    result = compiled_add({"x": torch.ones(3, 4), "y": torch.ones(3, 4)})
    out = result["out"].cpu()
    print(f"{out=}")
    assert torch.allclose(out, torch.ones(3, 4) * 2)


if __name__ == "__main__":
    run_add()
