"""Writes apps as bytes."""

from __future__ import annotations

import hashlib
from typing import Any

import flatbuffers
import numpy as np

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
    root.constants = [_table(_fb.ConstantT, value=name) for name in app.constants]
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


def _table(kind: Any, **fields: Any) -> Any:
    """Return a table of the app with its fields."""
    out = kind()
    vars(out).update(fields)
    return out


def _port(port: Port) -> Any:
    return _table(_fb.PortT, **vars(port))


def _value(value: AppValue) -> Any:
    place = None
    if value.place is not None:
        place = _table(
            _fb.PlaceT,
            alike=value.place.alike,
            axes=[_table(_fb.AxisT, words=np.array(n, np.uint64)) for n in value.place.axes],
            copies=np.array(value.place.copies, np.int64),
            elements=np.array(value.place.elements, np.uint64),
            owners=np.array(value.place.owners, np.uint64),
        )
    own = {"shape": list(value.shape), "onDevice": value.layout is not None, "place": place}
    return _table(_fb.ValueT, **{**vars(value), **own})


def _segment(segment: DeviceSegment | HostSegment) -> Any:
    out = _fb.SegmentT()
    out.inputs, out.outputs = list(segment.inputs), list(segment.outputs)
    if isinstance(segment, HostSegment):
        out.kind = _fb.SegmentKind.Host
        out.model = np.frombuffer(segment.model, dtype=np.uint8)
        return out
    out.kind = _fb.SegmentKind.Device
    out.code, out.steps, out.cycles = segment.code, segment.steps, segment.cycles
    out.relocations = [_table(_fb.RelocationT, **vars(place)) for place in segment.relocations]
    out.owners = [_table(_fb.OwnerT, **vars(owner)) for owner in segment.lines.owners]
    out.runs = np.fromiter(segment.lines.numbers(), np.uint32)
    return out
