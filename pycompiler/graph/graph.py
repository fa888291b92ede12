"""MNGraph: the one representation from import to code.

Graphs are immutable; a planner returns a new one. Every value has one record, made by exactly one
input, constant or node output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from ..errors import Place, place_of
from .dtypes import MNDtype
from .layout import Layout


class Location(Enum):
    """Where a value lives. DRAM values of the device are also what the host reads and writes."""

    UNDECIDED = "?"
    DRAM = "DRAM"
    LM = "LM"
    LM0 = "LM0"
    LM1 = "LM1"
    HOST = "Host"

    @property
    def memory(self) -> str:
        """The machine's name of the memory; only for DRAM, LM0, LM1."""
        return self.value.lower()


class Side(Enum):
    """What runs a node."""

    DEVICE = "MNCore"
    HOST = "Host"


class Stage(Enum):
    """How far planning has come; each stage includes those before."""

    IMPORTED = 0
    DTYPE = 1
    LOCATION = 2
    LAYOUT = 3
    SCHEDULED = 4
    ADDRESSED = 5


@dataclass(frozen=True)
class TensorType:
    """An ONNX tensor type: element type name (``float``) and static shape."""

    elem: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.elem}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class MNValue:
    """A tensor. ``addr`` is in long words; ``num_lw`` is the long words of a PE's share.

    ``origin`` names, for reports, what a value of a time slice is a slice of. It is no part of what
    the value is: two values that differ only there are equal, and the text form leaves it out.
    """

    name: str
    type: TensorType
    dtype: MNDtype = MNDtype.UNKNOWN
    location: Location = Location.UNDECIDED
    layout: Layout | None = None
    num_lw: int | None = None
    gene: tuple[str, str] = ("", "")
    addr: int | None = None
    origin: str | None = field(default=None, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return self.type.shape


#: An attribute of a node. Tensors and graphs, which no layer takes, are shown as text.
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]


@dataclass(frozen=True)
class MNNode:
    """An operation. Absent optional inputs are empty names.

    ``source`` is the model's Python ``file:line`` where known; ``reason`` says why a host node is
    one. ``inplace`` is the input whose long words the first output may overwrite. ``slice`` is the
    number of the time slice the node works on, and ``origin`` names, for reports only, what it is a
    slice of (see :class:`MNValue`).
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()
    side: Side = Side.DEVICE
    source: str | None = None
    reason: str | None = None
    segment: int | None = None
    inplace: int | None = None
    slice: int | None = None
    origin: str | None = field(default=None, compare=False)

    @property
    def place(self) -> Place | None:
        """Where diagnostics about the node point."""
        return place_of(self.source)


@dataclass(frozen=True)
class MNGraph:
    """Nodes in execution order, and a record for every value.

    ``outputs`` pairs the names the caller sees with values (a value may be given out twice, or be
    an input or a constant). ``constants`` maps a value to the digest of its data, which lives
    beside the graph.
    """

    name: str
    target: str
    stage: Stage = Stage.IMPORTED
    inputs: tuple[str, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[MNNode, ...] = ()
    values: Mapping[str, MNValue] = field(default_factory=dict)

    def with_values(self, changed: Mapping[str, MNValue], **more: object) -> MNGraph:
        """Return the graph with some value records replaced or added, and other fields replaced."""
        return replace(self, values={**self.values, **changed}, **more)  # type: ignore[arg-type]

    def producers(self) -> dict[str, MNNode]:
        """Value name to the node that makes it."""
        return {out: node for node in self.nodes for out in node.outputs if out}

    def device_nodes(self) -> Iterator[MNNode]:
        """Return the nodes that run on the device, in order."""
        return (node for node in self.nodes if node.side is Side.DEVICE)

    def device_values(self) -> set[str]:
        """Values that a device node reads or makes."""
        return {v for node in self.device_nodes() for v in (*node.inputs, *node.outputs) if v}

    def last_use(self) -> dict[str, int]:
        """Value name to the index of the last node that reads it; outputs live to the end."""
        last: dict[str, int] = {}
        for index, node in enumerate(self.nodes):
            for name in node.inputs:
                last[name] = index
        for _, name in self.outputs:
            last[name] = len(self.nodes)
        return last
