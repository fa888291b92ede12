"""What a device takes: the compiler's own decisions, or a table of rows for another chip."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from ..errors import PycompilerError
from ..frontend.import_onnx import import_onnx
from ..graph.graph import Side
from ..layers.operators import LAYERS
from ..machine import Target
from ..pfvm.composites import COMPOSITES
from ..planners.side import plan_sides
from .source import Unit


class Support(Protocol):
    """Tells which nodes a device takes."""

    def reason(self, unit: Unit) -> str | None:
        """Return why the device does not take a unit; None if it does."""


@dataclass(frozen=True)
class Row:
    """One operator or pattern of a device.

    ``elems`` are the ONNX element types of all its tensors (``float``, ``int64``), ``attributes``
    the names of the attributes that it understands; None allows all. ``check`` returns why a unit
    is refused for another reason, or None.
    """

    op: str
    elems: frozenset[str] | None = None
    attributes: frozenset[str] | None = None
    check: Callable[[Unit], str | None] | None = None


class SupportTable:
    """A table of rows: the support of a device that the compiler does not know."""

    def __init__(self, rows: Iterable[Row], device: str = "the device"):
        self.rows, self.device = {row.op: row for row in rows}, device

    def reason(self, unit: Unit) -> str | None:
        """Return why the device does not take a unit; None if it does."""
        row = self.rows.get(unit.name)
        if row is None:
            return f"{self.device} has no {unit.name}"
        for elem in unit.elems() if row.elems is not None else ():
            if elem not in (row.elems or ()):
                known = ", ".join(sorted(row.elems or ()))
                return f"{unit.name} takes {known} on {self.device}, not {elem}"
        for node in unit.nodes if row.attributes is not None else ():
            for attribute in node.attribute:
                if attribute.name not in (row.attributes or ()):
                    return f"{node.op_type} has no attribute `{attribute.name}` on {self.device}"
        return None if row.check is None else row.check(unit)


class CompilerSupport:
    """The support of a machine, as a compile of the unit alone decides it.

    The unit is written in operators that have layers, and the planner of sides says which of them
    would run on the host. Equal units are asked once.
    """

    def __init__(self, target: Target):
        self.target = target
        self._known: dict[bytes, str | None] = {}

    def reason(self, unit: Unit) -> str | None:
        """Return why the compiler would run a part of the unit on the host; None if none."""
        model = unit.model()
        key = _nameless(unit)
        if key not in self._known:
            try:
                graph = plan_sides(import_onnx(model, self.target).graph, strict=False)
            except PycompilerError as problem:
                self._known[key] = f"{problem.code}: {problem.message}"
            else:
                hosted = [node for node in graph.nodes if node.side is Side.HOST]
                self._known[key] = hosted[0].reason if hosted else None
        return self._known[key]


def _nameless(unit: Unit) -> bytes:
    """Return what decides about a unit, without the names of its values."""
    numbers: dict[str, int] = {"": -1}
    parts: list[object] = []
    source = unit.source
    for node in unit.nodes:
        ends = [numbers.setdefault(name, len(numbers)) for name in (*node.input, *node.output)]
        facts = [attribute.SerializeToString(deterministic=True) for attribute in node.attribute]
        types = [str(source.types[n]) for n in (*node.input, *node.output) if n]
        parts += [node.domain, node.op_type, len(node.input), ends, facts, types]
    for number in unit.numbers:
        for name in source.reads(number):
            tensor = source.constants.get(name)
            parts.append(None if tensor is None else (tensor.raw_data or str(tensor)))
    return repr(parts).encode()


def known_rows() -> list[tuple[str, str, str, str]]:
    """Return operator, dtypes, attributes and restrictions of what the compiler's layers take."""
    rows = []
    for op, layer in LAYERS.items():
        if not op.startswith("MNCore"):
            dtypes = ", ".join(sorted(dtype.value for dtype in layer.dtypes))
            rows.append((op, dtypes, ", ".join(sorted(layer.attributes)), layer.note))
    for op, rule in COMPOSITES.items():
        note = f"written as others{': ' + rule.note if rule.note else ''}"
        rows.append((op, ", ".join(sorted(rule.elems)), "", note))
    return sorted(rows)
