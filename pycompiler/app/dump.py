"""An app as readable text."""

from __future__ import annotations

from collections.abc import Iterator

from .model import App, AppValue, DeviceSegment


def dump_app(app: App, *, code: bool = False) -> str:
    """Return the text that ``pycompiler dump`` prints; ``code`` adds the assembly text."""
    return "\n".join(_lines(app, code)) + "\n"


def _tensor(value: AppValue) -> str:
    where = "host"
    if value.layout is not None:
        where = (
            f"{value.dtype} {value.layout} dram {value.dram}, {value.words} long words per group"
        )
    return f"{value.elem}[{','.join(map(str, value.shape))}] {where}"


def _lines(app: App, code: bool) -> Iterator[str]:
    yield f"GPFNApp by {app.producer} for {app.target}"
    yield f"DRAM: {app.dram_words} long words per group"
    for title, ports in (("inputs", app.inputs), ("outputs", app.outputs)):
        yield f"{title}:"
        for port in ports:
            shown = f"{port.key} = {port.value}" if port.key != port.value else port.key
            yield f"  {shown}: {_tensor(app.values[port.value])}"
    shared = {port.value: port.key for port in app.registered}
    named = {port.value for port in (*app.inputs, *app.outputs, *app.updates)}
    for title, chosen in (("registered", True), ("constants", False)):
        yield f"{title}:"
        for name, array in app.constants.items():
            if (name in shared) is chosen:
                shown = shared.get(name, name)
                shown = name if shown == name else f"{shown} = {name}"
                yield f"  {shown}: {_tensor(app.values[name])}, {array.nbytes} bytes"
    yield "updates:"
    for port in app.updates:
        yield f"  {port.key} = {port.value}: {_tensor(app.values[port.value])}"
    yield "other values:"
    for name, value in app.values.items():
        if name not in named and name not in app.constants:
            yield f"  {name}: {_tensor(value)}"
    yield "segments:"
    for number, segment in enumerate(app.segments):
        ports_text = f"({', '.join(segment.inputs)}) -> ({', '.join(segment.outputs)})"
        if isinstance(segment, DeviceSegment):
            lines = segment.code.count("\n")
            yield (
                f"  {number} device {ports_text}: {lines} lines, {segment.steps} steps, "
                f"{segment.cycles} cycles, {len(segment.relocations)} relocations"
            )
            for number, cycles in enumerate(segment.lines.by_node(segment.cycles)):
                yield f"    node {number}: {cycles} cycles, {segment.lines.owners[number].note}"
            if code:
                yield from (f"    {line}" for line in segment.code.removesuffix("\n").split("\n"))
        else:
            yield f"  {number} host {ports_text}: ONNX model, {len(segment.model)} bytes"
