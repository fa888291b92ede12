"""Adds two tensors; the first argument is the device, the second the folder."""

import sys

import mlsdk
import mlsdk.storage
import torch
from helper_beside_the_script import constant
from mlsdk.storage import path


def main(device_name, codegen_dir):
    assert mlsdk.storage.path is path
    context = mlsdk.Context(mlsdk.MNDevice(device_name))
    compiled = context.compile(
        lambda inputs: {"out": inputs["x"] + inputs["y"] * constant},
        {"x": torch.zeros(3, 4), "y": torch.zeros(3, 4)},
        path(codegen_dir) / "codegen",
        quiet=True,
    )
    x, y = torch.rand(3, 4), torch.rand(3, 4)
    out = compiled({"y": y, "x": x})["out"].cpu()
    assert torch.allclose(out, x + y * constant)
    print(mlsdk.MNDevice(device_name).name, "agrees", sys.argv[0].endswith("add_device.py"))


if __name__ == "__main__":
    main(*sys.argv[1:])
