"""Device names that scripts use."""

from __future__ import annotations

import os

from ..runtime.device import Device, find_device

DEVICE_VARIABLE = "MLSDK_DEVICE"


class MNDevice:
    """A place to run functions.

    ``emu2`` is the emulator of MN-Core 2. ``emu2:MACHINE`` is the emulator of another machine (the
    name or the folder of its description). ``mncore2:auto`` and ``mncore2:0`` to ``mncore2:7`` also
    mean the emulator, since there is no board. ``pfvm:cpu`` runs the exported model on the host.
    The environment variable MLSDK_DEVICE, if set, overrides ``name``. P0601 for an unknown name.
    """

    def __init__(self, name: str):
        self.device: Device = find_device(os.environ.get(DEVICE_VARIABLE) or name)

    @property
    def name(self) -> str:
        """The name in effect."""
        return self.device.name

    def __repr__(self) -> str:
        return f"MNDevice({self.name!r})"
