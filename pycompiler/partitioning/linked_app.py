"""One app of all pieces: their programs one behind the other in DRAM, host pieces between them.

A value keeps its name. It lies where the piece that makes it puts it, or else where the first piece
that reads it wants it. Other pieces get a copy in their own layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx
from onnx import helper, numpy_helper

from ..app.model import App, AppValue, DeviceSegment, HostSegment, Port
from ..emit.relocation import Relocation, relocate
from ..graph.dtypes import device_dtype
from ..machine import Target
from ..pfvm.names import fresh, keys
from ..pfvm.session import Array
from ..version import __version__
from .pieces import Piece
from .source import Source


def linked_app(
    source: Source, pieces: Sequence[Piece], apps: Mapping[str, App], target: Target
) -> App:
    """Return one app of the apps of the device's pieces and of the models of the others."""
    linker = _Linker(source, target)
    for piece in pieces:
        if piece.on_device:
            linker.add(piece, apps[piece.name])
        else:
            linker.host(source.part(piece.numbers, piece.name))
    for name in (*source.inputs, *source.outputs):
        linker.value(name)
    constants = linker.constants
    constants |= {
        name: numpy_helper.to_array(source.constants[name])
        for name in source.outputs
        if name in source.constants
    }
    given, made = keys(source.model)
    return App(
        f"pycompiler {__version__}",
        target.name,
        tuple(Port(key, name) for key, name in zip(given, source.inputs, strict=True)),
        tuple(Port(key, name) for key, name in zip(made, source.outputs, strict=True)),
        dict(sorted(linker.values.items())),
        constants,
        tuple(linker.segments),
        linker.base,
    )


@dataclass
class _Linker:
    source: Source
    target: Target
    values: dict[str, AppValue] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    segments: list[DeviceSegment | HostSegment] = field(default_factory=list)
    #: long words of DRAM that the pieces so far take
    base: int = 0

    def value(self, name: str) -> None:
        """Note a value of the model; on the host, unless a piece has placed it."""
        if name not in self.values:
            type = self.source.types[name]
            dtype = device_dtype(type.elem).value
            self.values[name] = AppValue(name, type.elem, type.shape, dtype)

    def host(self, model: onnx.ModelProto) -> None:
        """Add a piece that runs on the host."""
        inputs, outputs = keys(model)
        for name in (*inputs, *outputs):
            self.value(name)
        self.segments.append(HostSegment(tuple(inputs), tuple(outputs), model.SerializeToString()))

    def add(self, piece: Piece, app: App) -> None:
        """Add the programs of a piece, with its values behind those of the pieces before it."""
        names: dict[str, str] = {}
        copied: dict[str, str] = {}
        for port in app.inputs:
            names[port.value] = name = self._input(port.key, app.values[port.value], piece.name)
            if name != port.key:
                copied[name] = port.key
        results = {}
        for port in app.outputs:
            own = app.values[port.value]
            if port.value in names or port.value in app.constants or own.layout is None:
                results[port.key] = port.value
            else:
                names[port.value] = port.key
        for name in app.values:
            if name not in names:
                names[name] = fresh(f"{piece.name}:{name}", self._taken())
                self.values[names[name]] = self._placed(app.values[name], names[name])
        for port in app.outputs:
            if names[port.value] == port.key:
                self.values[port.key] = self._placed(app.values[port.value], port.key)
        for name in app.constants:
            self.constants[names[name]] = app.constants[name]
        self._copy(copied)
        for segment in app.segments:
            assert isinstance(segment, DeviceSegment)
            self.segments.append(self._moved(segment, names))
        self._copy({key: names[value] for key, value in results.items()})
        self.base += -(-app.dram_words // self.target.mv_unit) * self.target.mv_unit

    def _taken(self) -> set[str]:
        return {*self.source.types, *self.values}

    def _input(self, name: str, wanted: AppValue, piece: str) -> str:
        """Return the name of a value, or of a copy of it, that lies as a piece wants it."""
        if wanted.layout is None:
            self.value(name)
            return name
        have = self.values.get(name)
        own = name
        if have is not None and have.layout is not None:
            own = fresh(f"{piece}:{name}", self._taken())
        self.values[own] = self._placed(wanted, own)
        return own

    def _placed(self, value: AppValue, name: str) -> AppValue:
        moved = value.dram + self.base if value.layout is not None else 0
        return replace(value, name=name, dram=moved)

    def _moved(self, segment: DeviceSegment, names: Mapping[str, str]) -> DeviceSegment:
        code = relocate(segment.code, segment.relocations, self.base, self.target)
        places = tuple(
            Relocation(place.line, names.get(place.value, place.value), place.offset)
            for place in segment.relocations
        )
        return replace(
            segment,
            inputs=tuple(names[name] for name in segment.inputs),
            outputs=tuple(names[name] for name in segment.outputs),
            code=code,
            relocations=places,
        )

    def _copy(self, copies: Mapping[str, str]) -> None:
        """Add a piece of the host that copies values: new names to old ones."""
        if not copies:
            return
        for new in copies:
            self.value(new)
        infos = {}
        for name in (*copies, *copies.values()):
            value = self.values[name]
            elem = onnx.TensorProto.DataType.Value(value.elem.upper())
            infos[name] = helper.make_tensor_value_info(name, elem, value.shape)
        graph = helper.make_graph(
            [helper.make_node("Identity", [old], [new]) for new, old in copies.items()],
            "copies",
            [infos[name] for name in dict.fromkeys(copies.values())],
            [infos[name] for name in copies],
        )
        model = helper.make_model(graph, opset_imports=self.source.model.opset_import)
        model.ir_version = self.source.model.ir_version
        self.host(model)
