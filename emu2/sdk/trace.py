"""``emu2 trace``: runs a program that links the library, and shows which kernels it launched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import emu2
from emu2.console import EXIT_USAGE, Output
from emu2.file_roles import READ, WRITTEN

REPORT = "EMU2_REPORT"
"""The variable with the file where the library writes what ran."""


@dataclass(frozen=True)
class Device:
    """What ran on one device."""

    process: int
    kernels: Sequence[dict[str, Any]]
    order: Sequence[int]
    """The first launches, as numbers of kernels."""


def read(path: Path) -> list[Device]:
    """Return the devices of a report, in the order in which they were closed."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    found = [json.loads(line) for line in lines if line]
    return [Device(one["process"], one["kernels"], one["order"]) for one in found]


def table(devices: Sequence[Device], clock_mhz: int) -> Iterator[str]:
    """Yield the rows of the table: kernels by their cycles, over all devices."""
    rows: dict[tuple[str, int, int], int] = {}
    for device in devices:
        for kernel in device.kernels:
            key = kernel["name"], kernel["steps"], kernel["cycles"]
            rows[key] = rows.get(key, 0) + kernel["launches"]
    whole = sum(cycles * count for (_, _, cycles), count in rows.items())
    yield f"{'kernel':<40} {'launches':>9} {'steps':>10} {'cycles':>10} {'share':>6}"
    for (name, steps, cycles), count in sorted(rows.items(), key=lambda r: -r[0][2] * r[1]):
        share = cycles * count / whole if whole else 0
        yield f"{name[-40:]:<40} {count:>9} {steps:>10} {cycles:>10} {share:>6.1%}"
    time = whole / clock_mhz
    launches = sum(rows.values())
    counts = f"{len(devices)} devices, {launches} launches, {whole} cycles"
    yield f"{counts}, {time:.1f} us on the device"


def timeline(devices: Sequence[Device], clock_mhz: int) -> dict[str, Any]:
    """Return the launches as events for Perfetto: a row for each device, in device time."""
    events: list[dict[str, Any]] = []
    for number, device in enumerate(devices):
        now = 0.0
        for at in device.order:
            kernel = device.kernels[at]
            duration = kernel["cycles"] / clock_mhz
            place = {"pid": device.process, "tid": number, "ts": now, "dur": duration}
            name = Path(kernel["name"]).name
            events.append({"name": name, "ph": "X", **place, "args": {"steps": kernel["steps"]}})
            now += duration
    return {"traceEvents": events, "displayTimeUnit": "ns"}


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--json", "json_path", type=WRITTEN, help="Write what ran as JSON: a list of devices."
)
@click.option(
    "--timeline", "timeline_path", type=WRITTEN, help="Write a time line that Perfetto opens."
)
@click.argument("program", type=READ)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def trace(
    json_path: str | None,
    timeline_path: str | None,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Run PROGRAM, which links the library, and show which kernels it launched.

    The table goes to stderr. The exit code is that of the program.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        environment = {**os.environ, REPORT: str(report)}
        try:
            done = subprocess.run([program, *arguments], env=environment, check=False)
        except OSError as error:
            click.echo(f"error: {program}: {error.strerror}", err=True)
            sys.exit(EXIT_USAGE)
        devices = read(report)
    clock = emu2.Spec.load("mncore2").clock_mhz
    for row in table(devices, clock):
        click.echo(row, err=True)
    outputs = (
        (json_path, [vars(device) for device in devices]),
        (timeline_path, timeline(devices, clock)),
    )
    for path, data in outputs:
        if path is not None:
            with Output(path, sys.stdout) as sink:
                sink.write(json.dumps(data) + "\n")
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
