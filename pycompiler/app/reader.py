"""Reads apps from bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

import emu2

from ..emit.line_table import LineTable, Owner
from ..emit.relocation import Relocation
from ..errors import error
from ..graph.dtypes import numpy_dtype
from ..pfvm.session import Array
from .generated import gpfnapp_generated
from .model import (
    ALIGNED,
    DIGEST_BYTES,
    FORMAT,
    INSIDE,
    App,
    AppPlace,
    AppValue,
    DeviceSegment,
    HostSegment,
    Port,
)
from .verify import value_faults

_fb: Any = gpfnapp_generated


def read_app(data: bytes, path: str) -> App:
    """Return the app in ``data``; ``path`` names it in diagnostics. P0501, P0502."""
    try:
        # Unpacking damaged offsets and lengths would take any time and memory.
        end = emu2._core.check_app(data)
        found = _fb.App.GetRootAs(data, 0)
        if found.Format() not in (INSIDE, FORMAT):
            raise error("P0502", path=path, found=found.Format(), wanted=FORMAT)
        return _app(_fb.AppT.InitFromObj(found), memoryview(data)[:-DIGEST_BYTES], end)
    except emu2.EmulatorError as problem:
        raise error("P0501", path=path, reason=problem.message) from problem
    except ValueError as problem:
        raise error("P0501", path=path, reason=str(problem)) from problem


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode()


def _app(root: Any, data: memoryview, end: int) -> App:
    values = {value.name: value for value in map(_value, root.values or [])}
    if len(values) != len(root.values or []):
        raise ValueError("two values have one name")
    for value in values.values():
        for reason in value_faults(value):
            raise ValueError(reason)
    found = {_text(constant.value): constant.data for constant in root.constants or []}
    for name in found.keys() - values.keys():
        raise ValueError(f"there is data of the unknown value `{name}`")
    if root.format == FORMAT:
        found = dict(_behind(data, end, [values[name] for name in found]))
    return App(
        _text(root.producer),
        _text(root.target),
        _ports(root.inputs),
        _ports(root.outputs),
        values,
        {name: _array(data, values[name]) for name, data in found.items()},
        tuple(_segment(segment) for segment in root.segments or []),
        root.dramWords,
        _ports(root.registered),
        _ports(root.updates),
    )


def _ports(found: Any) -> tuple[Port, ...]:
    return tuple(Port(_text(port.key), _text(port.value)) for port in found or [])


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


def _behind(
    data: memoryview, end: int, values: Sequence[AppValue]
) -> Iterator[tuple[str, memoryview]]:
    """Yield the data of constants in order; it fills ``data`` behind the tables' ``end``."""
    sizes = [prod(value.shape) * numpy_dtype(value.elem).itemsize for value in values]
    start = len(data) - sum(-(-size // ALIGNED) * ALIGNED for size in sizes)
    if not end <= start < end + 2 * ALIGNED or start % ALIGNED:
        raise ValueError("the data behind the tables does not fit the constants")
    for value, size in zip(values, sizes, strict=True):
        yield value.name, data[start : start + size]
        start += -(-size // ALIGNED) * ALIGNED


def _array(data: Any, value: AppValue) -> Array:
    dtype, data = numpy_dtype(value.elem), b"" if data is None else data
    if len(data) != prod(value.shape) * dtype.itemsize:
        raise ValueError(f"the data of `{value.name}` does not fit its shape {value.shape}")
    return np.frombuffer(data, dtype).reshape(value.shape)


def _segment(found: Any) -> DeviceSegment | HostSegment:
    inputs = tuple(_text(name) for name in found.inputs or [])
    outputs = tuple(_text(name) for name in found.outputs or [])
    if found.kind == _fb.SegmentKind.Host:
        return HostSegment(inputs, outputs, b"" if found.model is None else bytes(found.model))
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
    return LineTable.of_numbers(owners, _numbers(found.runs))
