"""The options of the back end."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import error
from ..mlsdk import CacheOptions, Context, MNDevice
from ..mlsdk.context import folder_of
from ..options import parse_options

DEVICE = "emu2"


@dataclass(frozen=True)
class Settings:
    """What ``torch.compile(..., backend="emu2", options=...)`` may say.

    ``device`` is the name of an :class:`~pycompiler.mlsdk.MNDevice`. ``codegen_dir`` gets a folder
    for each piece; without it, the files of a compile are not kept. ``cache_dir`` keeps compiles
    for other processes. All other keys are options of a compile.
    """

    device: str = DEVICE
    codegen_dir: Path | None = None
    cache_dir: Path | None = None
    compile: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(options: Mapping[str, Any] | None) -> Settings:
        """Read the options of ``torch.compile``. P0601, P0701, P0702, P0704."""
        if not isinstance(options, Mapping | None):
            raise error("P0704", name="options", value=repr(options), legal="a dict or None")
        rest = dict(options or {})
        device = rest.pop("device", DEVICE)
        if not isinstance(device, str):
            raise error("P0704", name="device", value=repr(device), legal="the name of a device")
        MNDevice(device)
        given = {key: rest.pop(key, None) for key in ("codegen_dir", "cache_dir")}
        kept, cache = (None if own is None else folder_of(own, key) for key, own in given.items())
        parse_options(rest)
        return Settings(device, kept, cache, rest)

    @property
    def context(self) -> Context:
        """The context of the device: all pieces of a process share it."""
        return _context(self.device)

    @property
    def lock(self) -> threading.RLock:
        """What a call of a piece holds from loading its inputs to reading its results."""
        return _lock(self.device)

    @property
    def cache(self) -> CacheOptions | None:
        """The cache that `cache_dir` names."""
        return None if self.cache_dir is None else CacheOptions(self.cache_dir)


@lru_cache
def _lock(device: str) -> threading.RLock:
    return threading.RLock()


@lru_cache
def _context(device: str) -> Context:
    return Context(MNDevice(device))
