"""Device names that scripts use."""

from __future__ import annotations

import os

from ..errors import error
from ..pfvm.session import has_cuda
from ..presets.variables import DEVICE
from ..runtime.device import GPUS, Device, find_device


class MNDevice:
    """A place to run functions.

    ``emu2`` is the emulator of MN-Core 2. ``emu2:MACHINE`` is the emulator of another machine (the
    name or the folder of its description). ``mncore2:auto`` and ``mncore2:0`` to ``mncore2:7`` also
    mean the emulator, since there is no board. ``pfvm:cpu`` runs the exported model on the host,
    ``pfvm:cuda`` (or ``pfvm:gpu``) on its GPU.
    The environment variable MLSDK_DEVICE, if set, overrides ``name``. P0601 for an unknown name,
    P0703 for a GPU that onnxruntime does not reach.
    """

    def __init__(self, name: str):
        wanted = os.environ.get(DEVICE) or name
        self.on_gpu = wanted in GPUS
        if self.on_gpu and not has_cuda():
            reason = "onnxruntime finds no CUDA here"
            remedy = "install onnxruntime-gpu, or use pfvm:cpu, which runs the same graph"
            raise error("P0703", name=wanted, reason=reason, remedy=remedy)
        self.device: Device = find_device(wanted)

    @property
    def name(self) -> str:
        """The name in effect."""
        return self.device.name

    def __repr__(self) -> str:
        return f"MNDevice({self.name!r})"
