"""The command `emu2 lsp`."""

from __future__ import annotations

import os
import socket

import click

from emu2.console import diagnostic, fail, reading_stdin
from emu2.file_roles import spec_option

_HOST = "127.0.0.1"


@click.command()
@spec_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Serve one editor on this TCP port; 0 picks a free one and prints it.",
)
@click.option("--stdio", is_flag=True, help="Speak on stdin and stdout, which is the default.")
def lsp(spec_name: str, port: int | None, stdio: bool) -> None:
    """Serve the Language Server Protocol, for editors: faults as you type, pages, completion."""
    if port is not None and stdio:
        raise click.UsageError("--port and --stdio exclude each other.")
    try:
        from emu2.lsp.server import make_server
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in ("pygls", "lsprotocol"):
            raise
        remedy = "pip install 'emu2[tools]'"
        fail(diagnostic("D0006", "the language server needs the package `pygls`", remedy))
    server = make_server(spec_name)
    if port is None:
        # The server closes what it is given, and the command writes to stdout at its end.
        os.write(1, b"")  # a closed stdout is told now
        ends = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        with reading_stdin(), ends[0] as given, ends[1] as taken:
            server.start_io(given, taken)
        return
    try:
        with socket.create_server((_HOST, port)) as listening:
            click.echo(f"listening on {_HOST}:{listening.getsockname()[1]}")
            connection, _ = listening.accept()
    except OSError as error:
        reason = error.strerror or str(error)
        fail(diagnostic("F0001", f"{_HOST}:{port}: {reason}", "choose another port"))
    with connection, connection.makefile("rb") as given, connection.makefile("wb") as taken:
        server.start_io(given, taken)
