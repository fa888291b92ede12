"""Reads apps from bytes."""

from __future__ import annotations

import hashlib
from math import prod
from typing import Any

import numpy as np

from ..emit.line_table import LineTable, Owner
from ..emit.relocation import Relocation
from ..errors import error
from ..graph.dtypes import numpy_dtype
from ..pfvm.session import Array
from .buffer import APP, DamagedBufferError, check_buffer
from .generated import gpfnapp_generated
from .model import DIGEST_BYTES, FORMAT, App, AppPlace, AppValue, DeviceSegment, HostSegment, Port
from .verify import value_faults

_fb: Any = gpfnapp_generated


def read_app(data: bytes, path: str) -> App:
    """Return the app in ``data``; ``path`` names it in diagnostics. P0501, P0502."""
    if len(data) < 8 or not _fb.App.AppBufferHasIdentifier(data, 0):
        raise error("P0501", path=path, reason="it lacks the identifier GPFN")
    # Unpacking damaged offsets and lengths can take any time and memory, so check the digest first.
    if hashlib.sha256(data[:-DIGEST_BYTES]).digest() != data[-DIGEST_BYTES:]:
        raise error("P0501", path=path, reason="it is damaged, its digest is wrong")
    try:
        check_buffer(data[:-DIGEST_BYTES], APP)
        found = _fb.App.GetRootAs(data, 0)
        if found.Format() != FORMAT:
            raise error("P0502", path=path, found=found.Format(), wanted=FORMAT)
        return _app(_fb.AppT.InitFromObj(found))
    except DamagedBufferError as problem:
        raise error("P0501", path=path, reason=str(problem)) from problem


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode()


def _app(root: Any) -> App:
    values = {value.name: value for value in map(_value, root.values or [])}
    if len(values) != len(root.values or []):
        raise DamagedBufferError("two values have one name")
    for value in values.values():
        for reason in value_faults(value):
            raise DamagedBufferError(reason)
    for constant in root.constants or []:
        if _text(constant.value) not in values:
            raise DamagedBufferError(
                f"there is data of the unknown value `{_text(constant.value)}`"
            )
    return App(
        _text(root.producer),
        _text(root.target),
        tuple(Port(_text(p.key), _text(p.value)) for p in root.inputs or []),
        tuple(Port(_text(p.key), _text(p.value)) for p in root.outputs or []),
        values,
        {_text(c.value): _array(c.data, values[_text(c.value)]) for c in root.constants or []},
        tuple(_segment(segment) for segment in root.segments or []),
        root.dramWords,
        tuple(Port(_text(p.key), _text(p.value)) for p in root.registered or []),
        tuple(Port(_text(p.key), _text(p.value)) for p in root.updates or []),
    )


def _value(found: Any) -> AppValue:
    return AppValue(
        _text(found.name),
        _text(found.elem),
        tuple(int(size) for size in (() if found.shape is None else found.shape)),
        _text(found.dtype),
        _text(found.layout) if found.onDevice else None,
        found.dram,
        found.words,
        None if found.place is None else _place(found.place),
    )


def _place(found: Any) -> AppPlace:
    return AppPlace(
        bool(found.alike),
        tuple(_numbers(axis.words) for axis in found.axes or []),
        *map(_numbers, (found.copies, found.elements, found.owners)),
    )


def _numbers(found: Any) -> tuple[int, ...]:
    return () if found is None else tuple(int(number) for number in found)


def _bytes(data: Any) -> bytes:
    return b"" if data is None else np.asarray(data, dtype=np.uint8).tobytes()


def _array(data: Any, value: AppValue) -> Array:
    dtype = numpy_dtype(value.elem)
    if len(_bytes(data)) != prod(value.shape) * dtype.itemsize:
        raise DamagedBufferError(f"the data of `{value.name}` does not fit its shape {value.shape}")
    return np.frombuffer(_bytes(data), dtype=dtype).reshape(value.shape).copy()


def _segment(found: Any) -> DeviceSegment | HostSegment:
    inputs = tuple(_text(name) for name in found.inputs or [])
    outputs = tuple(_text(name) for name in found.outputs or [])
    if found.kind == _fb.SegmentKind.Host:
        return HostSegment(inputs, outputs, _bytes(found.model))
    relocations = tuple(
        Relocation(place.line, _text(place.value), place.offset)
        for place in found.relocations or []
    )
    work = _text(found.code), relocations, found.steps, found.cycles
    return DeviceSegment(inputs, outputs, *work, _lines(found))


def _lines(found: Any) -> LineTable:
    """Return the table of a segment; an empty one if an earlier version wrote the app."""
    owners = tuple(
        Owner(
            _text(one.node),
            _text(one.op),
            None if one.source is None else _text(one.source),
            None if one.origin is None else _text(one.origin),
        )
        for one in found.owners or []
    )
    try:
        return LineTable.of_numbers(owners, _numbers(found.runs))
    except ValueError as problem:
        raise DamagedBufferError(str(problem)) from problem
