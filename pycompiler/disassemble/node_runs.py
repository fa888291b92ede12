"""Runs a compiled function node by node: checks nodes, and logs arguments and results."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import emu2

from ..app.model import App, HostSegment
from ..emit.fragment_cache import Fragments
from ..emit.program import concatenate
from ..errors import error
from ..files import write_file
from ..graph.dtypes import numpy_dtype
from ..graph.graph import MNGraph, MNNode
from ..pfvm.session import Array
from ..runtime.device import Board
from ..runtime.executable import DeviceFunction, types_of
from ..runtime.graph_values import GraphValues, in_later_slice, on_device
from .checks import Checks, Failed

_SHOWN = 8


class Safety(IntEnum):
    """When nodes are checked. Checks change no bit of a result."""

    EVERY_RUN = 1
    FIRST_RUN = 2
    NEVER = 3

    def checks(self, run: int) -> bool:
        """Whether nodes are checked in the run with a number."""
        return self is Safety.EVERY_RUN or (self is Safety.FIRST_RUN and run == 0)


@dataclass(eq=False)
class Record:
    """A node that has run: copies of its arguments, from before it ran, and of its results."""

    run: int
    number: int
    node: MNNode
    arguments: dict[str, Array]
    results: dict[str, Array]
    failed: list[Failed] = field(default_factory=list)


class NodeRuns:
    """Runs a function node by node, each to its end before the next begins.

    So the values of a node are whole when they are read. The bits are those of the function, whose
    nodes share lines and run their transfers early. P0611 for a model that the host runs in part.
    """

    def __init__(
        self, folder: Path, app: App, graph: MNGraph, board: Board, inputs: Mapping[str, Array]
    ):
        """Place constants and inputs, and make the code of the nodes; other inputs are 0."""
        if any(isinstance(segment, HostSegment) for segment in app.segments):
            raise error("P0611", path=folder)
        self._graph, self._board, self._app = graph, board, app
        self.function = DeviceFunction(app, board)
        self._values = GraphValues(graph, board.target)
        self.checks = Checks(graph)
        self._kept = dict(app.constants)  #: Of what is not in DRAM.
        for name, type in types_of(app, app.inputs).items():
            zeros = np.zeros(type.shape, numpy_dtype(type.elem))
            self._put(name, np.asarray(inputs.get(name, zeros)))
        for port in app.registered:
            self._put(port.value, app.constants[port.value])
        made = Fragments(board.target)
        addresses = {n: v.addr for n, v in graph.values.items() if v.addr is not None}
        self._programs: list[emu2.Program | None] = []
        for node in graph.nodes:
            fragment = (node.name, node.op, made.of(node, graph))
            text = concatenate([fragment], addresses, board.target).text
            program = board.target.assemble(text, "node.vsm") if text.strip() else None
            self._programs.append(program)

    def run(self, number: int, safety: Safety) -> Iterator[Record]:
        """Run all nodes once; ``number`` counts the runs from 0. Yields a record for each node."""
        checked = safety.checks(number)
        machine = self._board.machine
        for place, (node, program) in enumerate(
            zip(self._graph.nodes, self._programs, strict=True)
        ):
            names = [name for name in dict.fromkeys(node.inputs) if self._readable(name)]
            made = [name for name in node.outputs if self._readable(name)]
            arguments = {name: self._values.read(name, machine.read) for name in names}
            undefined = self._undefined(names) if checked else {}
            if program is not None:
                machine.run(program, sanitize=checked)
            results = {name: self._values.read(name, machine.read) for name in made}
            record = Record(number, place, node, arguments, results)
            if checked:
                undefined |= self._undefined(made)
                record.failed = self.checks.failed(node, arguments, results, undefined)
            yield record
        self._renew()

    def _readable(self, name: str) -> bool:
        value = self._graph.values.get(name) if name else None
        return value is not None and on_device(value) and not in_later_slice(value)

    def _undefined(self, names: list[str]) -> dict[str, NDArray[np.bool_]]:
        validity = self._board.machine.validity
        return {name: self._values.undefined(name, validity) for name in names}

    def _renew(self) -> None:
        """Give registered values what the run made of them, as a call of the function does."""
        # A new value may be another registered value, as it was before any of them changes.
        for name, array in [(port.key, self._value(port.value)) for port in self._app.updates]:
            self._put(name, array)

    def _value(self, name: str) -> Array:
        there = on_device(self._graph.values[name])
        return self._values.read(name, self._board.machine.read) if there else self._kept[name]

    def _put(self, name: str, array: Array) -> None:
        value = self._graph.values[name]
        if not on_device(value):
            self._kept[name] = array
        else:
            for group, words in enumerate(self._values.image(value).pack(array)):
                self._board.machine.write("dram", words, addr=value.addr or 0, group=group)


def numbers(record: Record, *, checked: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each result: its extremes and mean, and what the check of the node found."""
    node = record.node
    for name, array in record.results.items():
        row: dict[str, Any] = {
            **{"run": record.run, "number": record.number, "node": node.name, "op": node.op},
            **{"value": name, "shape": list(array.shape), "dtype": str(array.dtype)},
            **{"checked": checked, "failed": [one.problem for one in record.failed]},
            **{"not_finite": 0, "least": None, "largest": None, "mean": None},
        }
        if array.dtype.kind in "fiu" and array.size:
            wide = array.astype(np.float64)
            there = wide[np.isfinite(wide)]
            row["not_finite"] = wide.size - there.size
            if there.size:
                ends = {"least": there.min(), "largest": there.max(), "mean": there.mean()}
                row |= {key: float(number) for key, number in ends.items()}
        yield row


def log_lines(record: Record) -> Iterator[str]:
    """Yield a node's line of the log, and a line for each of its values."""
    node = record.node
    head = f"run {record.run} #{record.number} {node.op} {node.name}"
    yield f"{head}: {', '.join(node.outputs)} <- {', '.join(node.inputs)}" + (
        f"  ({node.source})" if node.source else ""
    )
    for role, arrays in (("in", record.arguments), ("out", record.results)):
        for name, array in arrays.items():
            yield f"  {role:3} {name}: {array.dtype}{list(array.shape)} {_summary(array)}"
    for one in record.failed:
        yield f"  !   {one.problem}"


def _summary(array: Array) -> str:
    flat = array.reshape(-1)
    floats = array.dtype.kind == "f"
    first = ", ".join(f"{one:.7g}" if floats else str(one) for one in flat[:_SHOWN])
    more = ", ..." if flat.size > _SHOWN else ""
    if array.dtype.kind not in "fiu" or not flat.size:
        return f"[{first}{more}]"
    wide = flat.astype(np.float64)
    ends = f"from {wide.min():.7g} to {wide.max():.7g}, mean {wide.mean():.7g}"
    return f"{ends} [{first}{more}]"


class Log:
    """The log of a run: text, or the arrays as an ``.npz`` file if the name ends so."""

    def __init__(self, path: Path):
        self._path = path
        self._lines: list[str] = []
        self._arrays: dict[str, Array] = {}

    def add(self, record: Record) -> None:
        """Add a node."""
        if self._path.suffix != ".npz":
            self._lines += log_lines(record)
            return
        for role, arrays in (("in", record.arguments), ("out", record.results)):
            for name, array in arrays.items():
                self._arrays[f"{record.run}/{record.number}/{role}/{name}"] = array

    def write(self) -> None:
        """Write the file. P0003."""
        if self._path.suffix != ".npz":
            write_file(self._path, "".join(f"{line}\n" for line in self._lines).encode())
            return
        data = io.BytesIO()
        np.savez(data, **self._arrays)  # type: ignore[arg-type]
        write_file(self._path, data.getvalue())
