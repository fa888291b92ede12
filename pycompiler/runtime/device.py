"""Devices by name, and the board that a context works on."""

from __future__ import annotations

import re
import threading
import weakref
from dataclasses import dataclass

import emu2
from emu2.errors import Finding
from emu2.near import did_you_mean

from ..errors import error
from ..machine import Target, load_target

_LEGAL = "emu2, emu2:MACHINE, mncore2:auto, mncore2:0 to mncore2:7, pfvm:cpu, or pfvm:cuda"
_NAMES = ("emu2", "emu2:mini", "emu2:mncore2", "mncore2:auto", "mncore2:0", "pfvm:cpu", "pfvm:cuda")
#: The host with a GPU.
GPUS = ("pfvm:cuda", "pfvm:gpu")
_BOARD = re.compile(r"mncore2:(auto|[0-7])\Z")
_EMULATOR = re.compile(r"emu2(?::(.+))?\Z")
_DEFAULT_MACHINE = "mncore2"


class NodeFinding(Finding):
    """What a sanitized run of a function has found, and the node of the line; empty if unknown."""

    node: str


@dataclass(frozen=True)
class Device:
    """A device for functions: ``machine`` names the emulated machine, None means the host."""

    name: str
    machine: str | None

    @property
    def target(self) -> Target:
        """The machine to compile for; only for emulated devices."""
        assert self.machine is not None
        return load_target(self.machine)


def find_device(name: str) -> Device:
    """Find the device called ``name``; names of boards mean the emulator. P0601 if unknown."""
    if not isinstance(name, str):
        raise error("P0601", name=name, legal=_LEGAL)
    if name == "pfvm:cpu" or name in GPUS:
        return Device(name, None)
    if _BOARD.match(name):
        return Device(name, _DEFAULT_MACHINE)
    found = _EMULATOR.match(name)
    if found is None:
        raise error("P0601", name=name, near=did_you_mean(name, _NAMES), legal=_LEGAL)
    device = Device(name, found.group(1) or _DEFAULT_MACHINE)
    load_target(device.machine or "")
    return device


class DramBlock:
    """Allocated long words, at the same address in the DRAM of every group.

    They are freed with the last reference to this object.
    """

    def __init__(self, addr: int, words: int):
        self.addr, self.words = addr, words


class Board:
    """One emulated machine with its DRAM, shared by the functions of a context.

    The machine is made at the first use; compiling needs none. A call of a function needs the
    machine to itself: it holds ``lock`` from placing its inputs to fetching its outputs.
    """

    def __init__(self, target: Target):
        self.target = target
        self.lock = threading.RLock()
        #: Runs look for undefined values, and the findings are kept here; None: they do not.
        self.findings: list[NodeFinding] | None = None
        self._machine: emu2.Machine | None = None
        #: What is free, as (first long word, end), and what the garbage collector gave back since.
        self._holes = [(0, target.words("dram"))]
        self._returned: list[tuple[int, int]] = []
        self._closed = False

    @property
    def machine(self) -> emu2.Machine:
        """The machine. P0607 after :meth:`close`."""
        if self._closed:
            raise error("P0607", device=self.target.name)
        if self._machine is None:
            self._machine = self.target.new_machine()
        return self._machine

    def close(self) -> None:
        """Free the machine's memory; the board cannot be used afterwards."""
        with self.lock:
            self._machine, self._closed = None, True

    def allocate(self, words: int) -> DramBlock:
        """Allocate ``words`` long words in the DRAM of every group. P0302."""
        unit = self.target.mv_unit
        size, capacity = -(-words // unit) * unit, self.target.words("dram")
        with self.lock:
            freed = [self._returned.pop() for _ in range(len(self._returned))]
            spans, self._holes = sorted(self._holes + freed), []
            for start, end in spans:
                joined = bool(self._holes) and self._holes[-1][1] == start
                self._holes.append((self._holes.pop()[0] if joined else start, end))
            fits = [(end - start, start) for start, end in self._holes if end - start >= size]
            # The smallest hole that is large enough.
            room, start = min(fits, default=(-1, 0))
            if room < 0:
                used = capacity - sum(end - start for start, end in self._holes)
                raise error("P0302", words=used + size, memory="dram", capacity=capacity)
            self._holes.remove((start, start + room))
            self._holes.append((start + size, start + room))
        block = DramBlock(start, size)
        weakref.finalize(block, self._returned.append, (start, start + size))
        return block
