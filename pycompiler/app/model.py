"""An app in memory: plain dataclasses for the tables of ``gpfnapp.fbs``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..emit.line_table import LineTable
from ..emit.relocation import Relocation
from ..pfvm.session import Array

FORMAT = 5
#: In files of this format, each constant has its data inside of the flatbuffer.
INSIDE = 4
#: The data of a constant begins at a multiple of so many bytes, which suits all processors.
ALIGNED = 64

#: Length of the SHA-256 digest at the end of a file. Readers of flatbuffers ignore it.
DIGEST_BYTES = 32


@dataclass(frozen=True)
class AppPlace:
    """Where the elements of a value lie, in words of the dtype's width; see ``gpfnapp.fbs``.

    The word of an element is the sum over ``axes``, or that in ``elements``.
    """

    alike: bool
    axes: tuple[tuple[int, ...], ...] = ()
    copies: tuple[int, ...] = ()
    elements: tuple[int, ...] = ()
    owners: tuple[int, ...] = ()


@dataclass(frozen=True)
class AppValue:
    """A tensor.

    ``layout`` is None unless the tensor lies in DRAM. ``dram`` is its address relative to the
    app's base, ``words`` is its size in long words per group. ``place`` is for readers that do not
    know layouts; only apps that are made for them have it.
    """

    name: str
    elem: str
    shape: tuple[int, ...]
    dtype: str
    layout: str | None = None
    dram: int = 0
    words: int = 0
    place: AppPlace | None = None


@dataclass(frozen=True)
class Port:
    """An input or output: ``key`` is the caller's name of ``value``."""

    key: str
    value: str


@dataclass(frozen=True)
class DeviceSegment:
    """A program, with the steps and cycles that it takes, and the nodes of its lines.

    Apps of earlier versions have no ``lines``.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    code: str
    relocations: tuple[Relocation, ...]
    steps: int
    cycles: int
    lines: LineTable = field(default_factory=LineTable)


@dataclass(frozen=True)
class HostSegment:
    """An ONNX model that the host runtime runs."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    model: bytes


@dataclass(frozen=True, eq=False)
class App:
    """A compiled model: segments in order, the tensors between them, constant data.

    ``registered`` are the values that functions share by name (``key``). ``constants`` also has
    the initial data of the registered values. A registered value whose name is empty belongs to
    this app alone. ``updates`` map a registered value (``key``) to its new value after a call.
    """

    producer: str
    target: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    values: Mapping[str, AppValue]
    constants: Mapping[str, Array]
    segments: tuple[DeviceSegment | HostSegment, ...]
    dram_words: int
    registered: tuple[Port, ...] = ()
    updates: tuple[Port, ...] = ()
