"""Writes apps as bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np

from ..emit.line_table import Owner
from ..files import Content, pieces
from ..pfvm.session import Array
from .generated import gpfnapp_generated
from .model import ALIGNED, FORMAT, App, AppValue, DeviceSegment, HostSegment, Port

_fb: Any = gpfnapp_generated


def write_app(app: App) -> bytes:
    """Return the bytes of ``app``."""
    return b"".join(pieces(app_content(app)))


def app_content(app: App) -> Content:
    """Return the parts of ``app``'s file: flatbuffer, data of the constants, SHA-256 digest."""
    root = _fb.AppT()
    root.format = FORMAT
    root.producer = app.producer
    root.target = app.target
    root.inputs = [_port(port) for port in app.inputs]
    root.outputs = [_port(port) for port in app.outputs]
    root.values = [_value(value) for value in app.values.values()]
    root.constants = [_constant(name) for name in app.constants]
    root.segments = [_segment(segment) for segment in app.segments]
    root.dramWords = app.dram_words
    root.registered = [_port(port) for port in app.registered]
    root.updates = [_port(port) for port in app.updates]
    builder = flatbuffers.Builder(1 << 24)  # one that must grow copies what it has
    builder.Finish(root.Pack(builder), b"GPFN")
    head, digest = bytes(builder.Output()), hashlib.sha256()
    parts: list[bytes | Array] = [head, bytes(-len(head) % ALIGNED)]
    for array in app.constants.values():
        parts += [array, bytes(-array.nbytes % ALIGNED)]
    for piece in pieces(parts):
        digest.update(piece)
    return [*parts, digest.digest()]


def _port(port: Port) -> Any:
    out = _fb.PortT()
    out.key, out.value = port.key, port.value
    return out


def _value(value: AppValue) -> Any:
    out = _fb.ValueT()
    out.name, out.elem, out.dtype = value.name, value.elem, value.dtype
    out.shape = list(value.shape)
    out.onDevice = value.layout is not None
    out.layout = value.layout
    out.dram, out.words = value.dram, value.words
    if value.place is not None:
        out.place = _fb.PlaceT()
        out.place.alike = value.place.alike
        out.place.axes = [_axis(words) for words in value.place.axes]
        out.place.copies = np.array(value.place.copies, np.int64)
        out.place.elements = np.array(value.place.elements, np.uint64)
        out.place.owners = np.array(value.place.owners, np.uint64)
    return out


def _axis(words: Sequence[int]) -> Any:
    out = _fb.AxisT()
    out.words = np.array(words, np.uint64)
    return out


def _constant(name: str) -> Any:
    out = _fb.ConstantT()
    out.value = name
    return out


def _owner(owner: Owner) -> Any:
    out = _fb.OwnerT()
    out.node, out.op, out.source, out.origin = owner.node, owner.op, owner.source, owner.origin
    return out


def _segment(segment: DeviceSegment | HostSegment) -> Any:
    out = _fb.SegmentT()
    out.inputs, out.outputs = list(segment.inputs), list(segment.outputs)
    if isinstance(segment, HostSegment):
        out.kind = _fb.SegmentKind.Host
        out.model = np.frombuffer(segment.model, dtype=np.uint8)
        return out
    out.kind = _fb.SegmentKind.Device
    out.code, out.steps, out.cycles = segment.code, segment.steps, segment.cycles
    out.relocations = []
    for place in segment.relocations:
        relocation = _fb.RelocationT()
        relocation.line, relocation.value = place.line, place.value
        relocation.offset = place.offset
        out.relocations.append(relocation)
    out.owners = [_owner(owner) for owner in segment.lines.owners]
    out.runs = np.fromiter(segment.lines.numbers(), np.uint32)
    return out
