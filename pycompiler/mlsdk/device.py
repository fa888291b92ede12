"""Device names that scripts use."""

from __future__ import annotations

import os

from ..errors import error
from ..presets.variables import DEVICE
from ..runtime.device import Device, find_device


class MNDevice:
    """A place to run functions.

    ``emu2`` is the emulator of MN-Core 2. ``emu2:MACHINE`` is the emulator of another machine (the
    name or the folder of its description). ``mncore2:auto`` and ``mncore2:0`` to ``mncore2:7`` also
    mean the emulator, since there is no board. ``pfvm:cpu`` runs the exported model on the host.
    The environment variable MLSDK_DEVICE, if set, overrides ``name``. P0601 for an unknown name,
    P0703 for a GPU.
    """

    def __init__(self, name: str):
        wanted = os.environ.get(DEVICE) or name
        if wanted in ("pfvm:cuda", "pfvm:gpu"):
            reason, remedy = (
                "no graph runs on a GPU here",
                "use pfvm:cpu, which runs the same graph",
            )
            raise error("P0703", name=wanted, reason=reason, remedy=remedy)
        self.device: Device = find_device(wanted)

    @property
    def name(self) -> str:
        """The name in effect."""
        return self.device.name

    def __repr__(self) -> str:
        return f"MNDevice({self.name!r})"
