"""A process that used a Context forks: its child compiles and runs too."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiling import sampled
from forked import Forks

SCRIPT = """
import os, sys
import torch
from pycompiler.mlsdk import Context, MNDevice

device, folder = sys.argv[1:]
context, x = Context(MNDevice(device)), torch.arange(64.0 * 64).reshape(64, 64) / 4096
sample = {"x": x}
product = context.compile(lambda d: {"y": d["x"] @ d["x"]}, sample, f"{folder}/a")
wanted = product(sample)["y"].cpu()
child = os.fork()
if child == 0:
    assert torch.equal(product(sample)["y"].cpu(), wanted)
    other = context.compile(lambda d: {"y": d["x"] * 2.0}, sample, f"{folder}/b")
    assert torch.equal(other(sample)["y"].cpu(), x * 2)
    os._exit(7)
assert torch.equal(product(sample)["y"].cpu(), wanted)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.parametrize("device", sampled(["emu2:mini", "pfvm:cpu"]))
def test_the_child_goes_on(tmp_path: Path, device: str, forks: Forks) -> None:
    done = forks.text(SCRIPT, device, tmp_path)
    assert done.returncode == 0, done.stderr
