"""The command `emu2 lsp`."""

from __future__ import annotations

import os

import click

from emu2.console import diagnostic, fail


@click.command()
@click.option(
    "--spec",
    "spec_name",
    default="mncore2",
    show_default=True,
    help="Built-in spec, folder of TOML files, or TOML file.",
)
@click.option("--port", type=click.IntRange(0, 65535), help="Serve editors on this TCP port.")
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
        with os.fdopen(os.dup(0), "rb") as given, os.fdopen(os.dup(1), "wb") as taken:
            server.start_io(given, taken)
    else:
        server.start_tcp("127.0.0.1", port)
