"""The commands `emu2 debug` and `emu2 dap`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from emu2.console import EXIT_FILE, diagnostic, fail, reading_stdin, stdin_lines
from emu2.file_roles import spec_option

if TYPE_CHECKING:
    from emu2.debug.commands import Commands


@click.command()
@click.argument("file", required=False)
@spec_option
@click.option("--attach", help="Attach to the process that listens at this socket (EMU2_DEBUG).")
@click.option("-c", "config", help="JSON of regions to load first.")
@click.option("--load-memory-file", "load", help="JSON of regions to load first.")
@click.option("--load-state", help="Begin with the memories that this file keeps.")
@click.option("--batch", is_flag=True, help="Read commands from stdin instead of opening a screen.")
def debug(
    file: str | None,
    spec_name: str,
    attach: str | None,
    config: str | None,
    load: str | None,
    load_state: str | None,
    batch: bool,
) -> None:
    """Step through FILE (.vsm, .asm) or the kernels of a process, forwards and backwards.

    On a terminal it opens a screen. With `--batch`, or if stdin is no terminal, it reads commands
    from stdin, one per line; `help` lists them.
    """
    from emu2.debug.commands import Commands, read_commands
    from emu2.debug.session import Files, open_session

    if (file is None) == (attach is None):
        raise click.UsageError("name FILE, or --attach with a socket.")
    if attach is not None:
        from emu2.debug.remote import RemoteSession

        remote = RemoteSession(attach)
        try:
            good = read_commands(Commands(remote), stdin_lines())
        finally:
            remote.close()
        if not good:
            sys.exit(EXIT_FILE)
        return
    assert file is not None
    if file == "-":
        raise click.UsageError("FILE must be a file, because commands come from stdin.")
    session = open_session(file, spec_name, Files(config, load, load_state))
    commands = Commands(session, spec_name)
    if batch or not sys.stdin.isatty():
        if not read_commands(commands, stdin_lines()):
            sys.exit(EXIT_FILE)
        return
    show(commands)


def show(commands: Commands) -> None:
    """Open the screen on a session, or fail with the way to install it."""
    try:
        from emu2.debug.terminal import open_screen
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "textual":
            raise
        remedy = "pip install 'emu2[tools]', or use --batch"
        fail(diagnostic("D0006", "the screen of the debugger needs the package `textual`", remedy))
    open_screen(commands)


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Serve one editor on this TCP port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the port listens.")
def dap(port: int | None, host: str) -> None:
    """Serve the Debug Adapter Protocol, for editors such as VS Code.

    Without --port it speaks on stdin and stdout. With --port 0 it picks a free port and prints it.
    """
    from emu2.debug.dap import serve, serve_port

    if port is None:
        with reading_stdin():
            serve(sys.stdin.buffer, sys.stdout.buffer)
        return
    try:
        serve_port(host, port, lambda chosen: click.echo(f"listening on {host}:{chosen}"))
    except OSError as error:
        reason = error.strerror or str(error)
        fail(diagnostic("F0001", f"{host}:{port}: {reason}", "choose another port"))
