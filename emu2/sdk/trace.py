"""``emu2 trace``: runs a program that links the library, and shows what its kernels did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import emu2
from emu2.console import EXIT_FILE, EXIT_USAGE, Output, stdin_lines
from emu2.file_roles import READ, WRITTEN
from emu2.sdk import ran

REPORT = "EMU2_REPORT"
"""The variable with the file where the library writes what ran."""
_TOP = 20
_PAUSE = 0.05


def _flag(name: str, help: str) -> Callable[[Any], Any]:
    """Return an option that a variable chooses, too."""
    return click.option(f"--{name}", is_flag=True, envvar=f"EMU2_{name.upper()}", help=help)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--json", "json_path", type=WRITTEN, help="Write what ran as JSON: a list of devices."
)
@click.option(
    "--timeline",
    "timeline_path",
    type=WRITTEN,
    envvar="EMU2_TIMELINE",
    help="Write a time line that Perfetto opens.",
)
@_flag("steps", "Show steps, waits and MVs in the time line, too.")
@_flag("sanitize", "Look for undefined values, and results that depend on timing or on a format.")
@_flag("profile", "Show where the cycles of each kernel go.")
@_flag("counters", "Show the counters of all launches, added up.")
@_flag("fidelity", "Say how the executed instructions are known.")
@click.option("--debug", is_flag=True, help="Debug the kernels, by commands from stdin.")
@click.argument("program", type=READ)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def trace(
    json_path: str | None,
    timeline_path: str | None,
    steps: bool,
    sanitize: bool,
    profile: bool,
    counters: bool,
    fidelity: bool,
    debug: bool,
    program: str,
    arguments: tuple[str, ...],
) -> None:
    """Run PROGRAM, which links the library, and show what its kernels did.

    Tables go to stderr. The exit code is that of the program, or 1 if the sanitizer finds
    something. The variables EMU2_TIMELINE, EMU2_STEPS, EMU2_SANITIZE, EMU2_PROFILE, EMU2_COUNTERS
    and EMU2_FIDELITY choose the same as the options.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        environment = {**os.environ, REPORT: str(report)}
        environment.pop("EMU2_SANITIZE", None)
        if sanitize:
            environment["EMU2_SANITIZE"] = "1"
        try:
            code = _run([program, *arguments], environment, Path(folder) if debug else None)
        except OSError as error:
            click.echo(f"error: {program}: {error.strerror}", err=True)
            sys.exit(EXIT_USAGE)
        devices = ran.read(report)
    clock = emu2.Spec.load("mncore2").clock_mhz
    _say(ran.table(devices, clock))
    found = list(ran.findings(devices))
    _say(found)
    if profile:
        _say_profiles(devices)
    if counters:
        _say(f"{value:>14}  {name}" for name, value in ran.counters(devices).items())
    if fidelity:
        _say(ran.known(devices).rows())
    outputs: list[tuple[str | None, Callable[[], Any]]] = [
        (json_path, lambda: [device.json() for device in devices]),
        (timeline_path, lambda: ran.timeline(devices, clock, steps=steps)),
    ]
    for path, data in outputs:
        if path is not None:
            with Output(path, sys.stdout) as sink:
                sink.write(json.dumps(data()) + "\n")
    code = code if code >= 0 else 128 - code
    sys.exit(code or (EXIT_FILE if found else 0))


def _say(rows: Any) -> None:
    for row in rows:
        click.echo(row, err=True)


def _say_profiles(devices: Sequence[ran.Device]) -> None:
    from emu2.profile_cli import shown

    for kernel, launches in ran.kernels_of(devices):
        _say(["", f"{launches} launches of", *shown(kernel.profile(), "line", _TOP)])


def _run(command: Sequence[str], environment: Mapping[str, str], folder: Path | None) -> int:
    """Run a program to its end; with ``folder``, under the debugger."""
    if folder is None:
        return subprocess.run(command, env=environment, check=False).returncode
    from emu2.debug.commands import Commands, read_commands
    from emu2.debug.remote import RemoteSession

    socket = folder / "debug"
    wanted = {"EMU2_DEBUG": str(socket), "EMU2_DEBUG_STOP": "1"}
    with subprocess.Popen(
        command, env={**environment, **wanted}, stdin=subprocess.DEVNULL
    ) as process:
        while not socket.exists() and process.poll() is None:
            time.sleep(_PAUSE)
        if process.poll() is None:
            session = RemoteSession(str(socket))
            try:
                read_commands(Commands(session), stdin_lines())
            finally:
                session.close()
        return process.wait()
