"""Compares an app with itself and with a machine before anything of it runs.

The digest of an app says that the file is whole, not that its contents fit. Every name, size,
layout, address and relocation is checked here, so that a program touches only the app's own room in
DRAM.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

import onnx

from ..errors import PycompilerError, error
from ..graph.dtypes import HOST_ONLY, MNDtype, device_dtype, numpy_dtype, onnx_name
from ..graph.layout_text import parse_layout
from ..graph.verify import layout_ranges
from ..layers.dram_transfer_plan import dram_words
from ..machine import Target
from ..pfvm.names import keys
from ..pfvm.well_formed import check_loops, check_model
from .model import App, AppValue, DeviceSegment, HostSegment, Port

#: The most elements of a value, as in a model that compiles.
_MOST = 1 << 30


def verify_app(app: App, target: Target, path: str) -> None:
    """Refuse an app whose parts do not fit each other or the machine. P0501."""
    try:
        for reason in _faults(app, target):
            raise error("P0501", path=path, reason=reason)
    except PycompilerError as problem:
        if problem.code == "P0501":
            raise
        raise error("P0501", path=path, reason=problem.message) from problem


def _faults(app: App, target: Target) -> Iterator[str]:
    capacity = target.words("dram")
    if not 0 <= app.dram_words <= capacity:
        yield f"it needs {app.dram_words} long words of DRAM, the machine has {capacity}"
    for value in app.values.values():
        if prod(value.shape) > _MOST:
            yield f"`{value.name}` has the shape {value.shape}"
    for value in app.values.values():
        yield from _place_faults(value, app, target)
    yield from _port_faults(app)
    for name, array in app.constants.items():
        value = app.values[name]
        if (array.shape, array.dtype) != (value.shape, numpy_dtype(value.elem)):
            yield f"the data of `{name}` does not fit its type"
    yield from _segment_faults(app, target)


def value_faults(value: AppValue) -> Iterator[str]:
    """Yield what is wrong with the type of a value."""
    names = {name.lower() for name in onnx.TensorProto.DataType.keys()}  # noqa: SIM118
    known = value.elem in names and (
        device_dtype(value.elem) is not MNDtype.UNKNOWN or value.elem in HOST_ONLY
    )
    if not known:
        yield f"`{value.name}` has the unknown element type `{value.elem}`"
    if any(size < 0 for size in value.shape):
        yield f"`{value.name}` has the shape {value.shape}"
    if value.dtype not in {dtype.value for dtype in MNDtype}:
        yield f"`{value.name}` has the unknown dtype `{value.dtype}`"


def _place_faults(value: AppValue, app: App, target: Target) -> Iterator[str]:
    if value.layout is None:
        return
    dtype, own = MNDtype(value.dtype), device_dtype(value.elem)
    if dtype is not own and not (dtype is MNDtype.HALF and own is MNDtype.FLOAT):
        yield f"`{value.name}` is {value.elem}, but {value.dtype} on the device"
        return
    layout = parse_layout(value.layout)
    layout.check(value.shape, dtype, layout_ranges(target), target.words("dram"))
    words = dram_words(layout, target)
    if value.words != words:
        yield f"`{value.name}` takes {words} long words, not {value.words}"
    if value.dram % target.mv_unit or not 0 <= value.dram <= app.dram_words - words:
        yield f"`{value.name}` lies at {value.dram}, outside of the app's {app.dram_words} words"


def _port_faults(app: App) -> Iterator[str]:
    kinds = {
        "input": app.inputs,
        "output": app.outputs,
        "registered value": app.registered,
        "update": app.updates,
    }
    for what, ports in kinds.items():
        for port in ports:
            if port.value not in app.values:
                yield f"the {what} `{port.key}` is the unknown value `{port.value}`"
        yield from _repeated(what, ports)
    for name in app.constants:
        if name not in app.values:
            yield f"there is data of the unknown value `{name}`"
    state = {port.value for port in app.registered}
    for name in state - set(app.constants):
        yield f"the registered value `{name}` has no data"
    for port in app.updates:
        if port.key not in state:
            yield f"the update of `{port.key}`, which is not registered"
        elif _type(app.values[port.key]) != _type(app.values[port.value]):
            yield f"the update of `{port.key}` has another type"


def _repeated(what: str, ports: Sequence[Port]) -> Iterator[str]:
    # Values that no other function shares are registered under the empty name.
    names = [port.key for port in ports if port.key]
    if len(set(names)) != len(names):
        yield f"two {what}s have one name"
    if what not in ("output", "update") and len({port.value for port in ports}) != len(ports):
        yield f"two {what}s are one value"


def _type(value: AppValue) -> tuple[str, tuple[int, ...]]:
    return value.elem, value.shape


def _segment_faults(app: App, target: Target) -> Iterator[str]:
    known = {port.value for port in (*app.inputs, *app.registered)} | set(app.constants)
    for number, segment in enumerate(app.segments):
        for name in (*segment.inputs, *segment.outputs):
            if name not in app.values:
                yield f"segment {number} names the unknown value `{name}`"
        for name in segment.inputs:
            if name not in known:
                yield f"segment {number} reads `{name}` before it is made"
        known.update(segment.outputs)
        if isinstance(segment, HostSegment):
            yield from _host_faults(number, segment, app)
        else:
            for name in (*segment.inputs, *segment.outputs):
                if app.values[name].layout is None:
                    yield f"segment {number} uses `{name}`, which is not in DRAM"
            yield from _code_faults(number, segment, app, target)
    for port in (*app.outputs, *app.updates):
        if port.value not in known:
            yield f"nothing makes `{port.value}`"


def _host_faults(number: int, segment: HostSegment, app: App) -> Iterator[str]:
    try:
        model = onnx.load_from_string(segment.model)
        inputs, outputs = keys(model)
    except Exception:  # protobuf, json: errors of several libraries
        yield f"segment {number} is no ONNX model"
        return
    if tuple(inputs) != segment.inputs or tuple(outputs) != segment.outputs:
        yield f"segment {number} has other inputs and outputs than its model"
        return
    check_model(model)
    held = {name: app.constants[name] for name in segment.inputs if name in app.constants}
    whole = {name: a for name, a in held.items() if a.size == 1 and a.dtype.kind == "i"}
    check_loops(model.graph, {name: int(a.flat[0]) for name, a in whole.items()})
    infos = [
        i for i in model.graph.input if i.name not in {t.name for t in model.graph.initializer}
    ]
    for info in (*infos, *model.graph.output):
        tensor, value = info.type.tensor_type, app.values.get(info.name)
        if value is None:
            yield f"segment {number} names the unknown value `{info.name}`"
            continue
        dims = tuple(dim.dim_value for dim in tensor.shape.dim)
        if tensor.elem_type not in onnx.TensorProto.DataType.values() or (
            (onnx_name(tensor.elem_type), dims) != _type(value)
        ):
            yield f"segment {number} has another type for `{info.name}`"


def _code_faults(number: int, segment: DeviceSegment, app: App, target: Target) -> Iterator[str]:
    """Yield lines that name addresses outside of the app's room, or that would not be moved."""
    dram = re.compile(re.escape(f"${target.letter('dram')}") + r"(\d+)")
    size = re.compile(re.escape(f"/{target.syntax['mv_size']}") + r"(\d+)")
    literal = re.compile(r'ui"0x([0-9A-F]{8})"')
    lines = segment.code.split("\n")
    moved = {place.line for place in segment.relocations}
    for place in segment.relocations:
        if not 0 <= place.line < len(lines):
            yield f"segment {number} moves line {place.line} of {len(lines)}"
            return
        line = lines[place.line]
        if dram.search(line) is None:
            found = literal.search(line)
            if found is None:
                yield f"line {place.line} of segment {number} names no address"
            elif int(found.group(1), 16) * target.mv_block > app.dram_words:
                yield f"line {place.line} of segment {number} leaves the app's DRAM"
    for at, line in enumerate(lines):
        addresses = [int(text) for text in dram.findall(line)]
        if not addresses:
            continue
        if at not in moved:
            yield f"line {at} of segment {number} names DRAM and is not moved"
        found = size.search(line)
        words = int(found.group(1)) if found is not None else 1
        if max(addresses) + words > app.dram_words:
            yield f"line {at} of segment {number} leaves the app's {app.dram_words} words of DRAM"
