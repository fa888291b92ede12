"""The commands ``emu2 sdk`` and ``emu2 cc``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from emu2.sdk.install import compiler_flags, install


@click.group()
def sdk() -> None:
    """Headers, libraries and build rules for host programs in C and C++."""


@sdk.command("install")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def sdk_install(folder: Path) -> None:
    """Write the tree that build files take as `sdk_root` to FOLDER."""
    install(folder)
    click.echo(f". {folder}/activate")


@click.command()
@click.option("--cflags", is_flag=True, help="Flags for compiling.")
@click.option("--libs", is_flag=True, help="Flags for linking.")
@click.option("--static", is_flag=True, help="Link the archive.")
def cc(cflags: bool, libs: bool, static: bool) -> None:
    """Print the flags for a C compiler, as in `cc x.c $(emu2 cc --cflags --libs)`."""
    if not cflags and not libs:
        raise click.UsageError("name --cflags, --libs or both.")
    click.echo(shlex.join(compiler_flags(cflags=cflags, libs=libs, static=static)))
