"""MNGraph: the one representation of a model from import to code.

Graphs are immutable; a planner returns a new one. Every value has one record. Exactly one input,
constant or node output makes the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from ..errors import SourceLocation, place_of
from .dtypes import MNDtype
from .html import html_table
from .layout import Layout
from .plan import Plan


class Location(Enum):
    """The memory of a value; the host reads and writes the values of the device in DRAM."""

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
    """The side that runs a node: device or host."""

    DEVICE = "MNCore"
    HOST = "Host"


class Stage(Enum):
    """How far planning has come; each stage includes the stages before it."""

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
    """A tensor.

    ``addr`` is in long words; ``num_lw`` is how many long words of a PE it takes. If the value
    is a time slice, ``origin`` names the value that was sliced. Only reports use ``origin``. If the
    value is a copy in LM, ``copy_of`` names the value that was copied. Values that differ only in
    ``origin`` and ``copy_of`` are equal, and the text form leaves both out.
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
    copy_of: str | None = field(default=None, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return self.type.shape


#: An attribute of a node. Tensors and graphs are kept as text, because no layer takes them.
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]


@dataclass(frozen=True)
class MNNode:
    """An operation; absent optional inputs are empty names.

    ``source`` is the ``file:line`` of the model's Python code, if known. ``reason`` says why a node
    runs on the host. ``inplace`` is the number of the input whose long words the first output may
    overwrite. ``slice`` is the number of the time slice that the node works on. ``plan`` is
    the schedule of its code, if its layer has several. ``origin`` names the node that was sliced;
    only reports use it (see :class:`MNValue`).
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
    plan: Plan | None = None
    origin: str | None = field(default=None, compare=False)

    def near(self, other: MNNode) -> MNNode:
        """Return the node for the line of source and the segment of another node."""
        return replace(self, source=other.source, segment=other.segment)

    @property
    def place(self) -> SourceLocation | None:
        """The line of the model's source that diagnostics about the node show."""
        return place_of(self.source)


@dataclass(frozen=True)
class MNGraph:
    """Nodes in execution order, and a record for every value.

    ``outputs`` pairs the names that the caller sees with values. A value may be an output twice; it
    may also be an input or a constant. ``constants`` maps a value to the digest of its data. The
    data itself is not part of the graph.
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
        """Return the graph with the records ``changed`` and the fields ``more`` put in."""
        return replace(self, values={**self.values, **changed}, **more)  # type: ignore[arg-type]

    def producers(self) -> dict[str, MNNode]:
        """Map the name of each value to the node that makes it."""
        return {out: node for node in self.nodes for out in node.outputs if out}

    def readers(self) -> dict[str, list[MNNode]]:
        """Map the name of each value to the nodes that read it, in order."""
        readers: dict[str, list[MNNode]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                readers.setdefault(name, []).append(node)
        return readers

    def device_nodes(self) -> Iterator[MNNode]:
        """Return the nodes that run on the device, in order."""
        return (node for node in self.nodes if node.side is Side.DEVICE)

    def device_values(self) -> set[str]:
        """Return the values that a device node reads or makes."""
        return {v for node in self.device_nodes() for v in (*node.inputs, *node.outputs) if v}

    def last_use(self) -> dict[str, int]:
        """Map each value to the index of its last reader; outputs live to the end of the graph."""
        last: dict[str, int] = {}
        for index, node in enumerate(self.nodes):
            for name in node.inputs:
                last[name] = index
        for _, name in self.outputs:
            last[name] = len(self.nodes)
        return last

    def _repr_html_(self) -> str:
        """Return a table for notebooks: a row for each node, with its first output's place."""
        rows = []
        for number, node in enumerate(self.nodes):
            value = self.values.get(node.outputs[0]) if node.outputs else None
            names = f"{', '.join(node.outputs)} <- {', '.join(node.inputs)}"
            place = "" if value is None else value.location.value
            if value is not None and value.addr is not None:
                place += f" {value.addr}"
            layout = "" if value is None or value.layout is None else value.layout
            type = "" if value is None else value.type
            rows.append((number, node.op, names, type, place, layout, node.source or ""))
        title = f"{self.name} for {self.target}: {len(self.nodes)} nodes, {self.stage.name.lower()}"
        head = ("#", "operator", "outputs <- inputs", "type", "place", "layout", "line")
        return html_table(title, head, rows)
