"""What ran in a program that links the library, as the library reports it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import emu2
from emu2.fidelity import Fidelity, fidelity
from emu2.link.origins import placing
from emu2.profiling import Profile, profile, with_places
from emu2.trace_events import Event, TraceReader


@dataclass(frozen=True)
class Kernel:
    """A kernel, and how often it was launched."""

    name: str
    text: str
    steps: int
    cycles: int
    launches: int
    findings: Sequence[Mapping[str, Any]] = ()

    @cached_property
    def program(self) -> emu2.Program:
        """The kernel, assembled again."""
        return emu2.assemble(self.text, emu2.Spec.load("mncore2"), filename=self.name)

    @cached_property
    def place(self) -> Callable[[int], str]:
        """The place in the source of a line."""
        return placing(self.text, self.name)

    def profile(self) -> Profile:
        """Return the profile of one launch, whose lines name their places in the source."""
        return with_places(profile(self.program), self.place)


@dataclass(frozen=True)
class Device:
    """What ran on one device."""

    process: int
    kernels: Sequence[Kernel]
    order: Sequence[int]
    """The first launches, as numbers of kernels."""

    def json(self) -> dict[str, Any]:
        """Return what `emu2 trace --json` writes of the device."""
        kernels = [{k: v for k, v in vars(one).items() if k in _KEPT} for one in self.kernels]
        return {"process": self.process, "kernels": kernels, "order": self.order}


_KEPT = ("name", "steps", "cycles", "launches", "findings")


def read(path: Path) -> list[Device]:
    """Return the devices of a report, in the order in which they were closed."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    found = [json.loads(line) for line in lines if line]
    return [
        Device(one["process"], [Kernel(**kernel) for kernel in one["kernels"]], one["order"])
        for one in found
    ]


def kernels_of(devices: Sequence[Device]) -> list[tuple[Kernel, int]]:
    """Return the different kernels of all devices and their launches, the most cycles first."""
    found: dict[tuple[str, str], tuple[Kernel, int]] = {}
    for device in devices:
        for kernel in device.kernels:
            key = kernel.name, kernel.text
            first, count = found.get(key, (kernel, 0))
            found[key] = first, count + kernel.launches
    return sorted(found.values(), key=lambda one: -one[0].cycles * one[1])


def table(devices: Sequence[Device], clock_mhz: int) -> Iterator[str]:
    """Yield the rows of the table: kernels by their cycles, over all devices."""
    rows = kernels_of(devices)
    whole = sum(kernel.cycles * count for kernel, count in rows)
    yield f"{'kernel':<40} {'launches':>9} {'steps':>10} {'cycles':>10} {'share':>6}"
    for kernel, count in rows:
        share = kernel.cycles * count / whole if whole else 0
        name, steps, cycles = kernel.name[-40:], kernel.steps, kernel.cycles
        yield f"{name:<40} {count:>9} {steps:>10} {cycles:>10} {share:>6.1%}"
    launches = sum(count for _, count in rows)
    counts = f"{len(devices)} devices, {launches} launches, {whole} cycles"
    yield f"{counts}, {whole / clock_mhz:.1f} us on the device"


def findings(devices: Sequence[Device]) -> Iterator[str]:
    """Yield what a sanitizer has found, each with its place in the source."""
    for device in devices:
        for kernel in device.kernels:
            seen: set[tuple[Any, ...]] = set()
            for one in kernel.findings:
                key = one["code"], one["line"], one["message"]
                if key in seen:
                    continue
                seen.add(key)
                message = _LINE.sub(partial(_named, kernel), one["message"])
                yield f"warning[{one['code']}]: {message}"
                yield f"  --> {one['place']} (launch {one['launch']} of {kernel.name})"
                yield f"  help: {one['help']}"


_LINE = re.compile(r"\bline (\d+)\b")


def _named(kernel: Kernel, line: re.Match[str]) -> str:
    """Return a line of a kernel as the line of its source."""
    file, _, number = kernel.place(int(line[1])).rpartition(":")
    return f"line {number} of {file}"


def counters(devices: Sequence[Device]) -> dict[str, int]:
    """Return the counters of all launches, added up."""
    total: Counter[str] = Counter()
    for kernel, count in kernels_of(devices):
        for name, value in _numbers("", kernel.program.report()):
            total[name] += value * count
    return dict(total)


def _numbers(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(f"{prefix}{name}.", value)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield f"{prefix}{name}", value


def known(devices: Sequence[Device]) -> Fidelity:
    """Return how the executed instructions of all launches are known."""
    total = Fidelity(Counter(), Counter())
    for kernel, count in kernels_of(devices):
        own = fidelity(kernel.program)
        total.counts.update({key: value * count for key, value in own.counts.items()})
        total.others.update({key: value * count for key, value in own.others.items()})
    return total


@dataclass
class _Events(TraceReader):
    """Keeps the events of a kernel with the names of their rows."""

    found: list[tuple[str, str, Event]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def take(self, process: str, track: str, event: Event) -> None:
        self.found.append((process, track, event))


MOST_EVENTS = 500_000
"""Launches are shown in detail until there are so many events."""


def timeline(devices: Sequence[Device], clock_mhz: int, *, steps: bool) -> dict[str, Any]:
    """Return the launches as events for Perfetto: a row for each device, in device time.

    With ``steps``, rows below show the steps, waits and MVs of the first launches.
    """
    events: list[dict[str, Any]] = []
    rows: dict[tuple[int, str], int] = {}
    for number, device in enumerate(devices):
        now, details = 0.0, dict[int, list[tuple[str, str, Event]]]()
        for at in device.order:
            kernel = device.kernels[at]
            duration = kernel.cycles / clock_mhz
            place = {"pid": device.process, "tid": number, "ts": now, "dur": duration}
            name = Path(kernel.name).name
            events.append({"name": name, "ph": "X", **place, "args": {"steps": kernel.steps}})
            if steps and len(events) < MOST_EVENTS:
                if at not in details:
                    reader = _Events()
                    kernel.program.trace(reader)
                    reader.close()
                    details[at] = reader.found
                for process, track, event in details[at]:
                    row = len(devices) + rows.setdefault((number, f"{process}: {track}"), len(rows))
                    shifted = now + event["ts"] / clock_mhz
                    own = {"pid": device.process, "tid": row, "ts": shifted}
                    if "dur" in event:
                        own["dur"] = event["dur"] / clock_mhz
                    source = {"place": kernel.place(event["args"]["line"])}
                    events.append({**event, **own, "args": {**event["args"], **source}})
            now += duration
    for (number, title), row in rows.items():
        place = {"pid": devices[number].process, "tid": len(devices) + row}
        named = {"name": f"device {number}, {title}"}
        events.append({"name": "thread_name", "ph": "M", **place, "args": named})
    return {"traceEvents": events, "displayTimeUnit": "ns"}
