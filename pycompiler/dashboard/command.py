"""The command `pycompiler dashboard`."""

from __future__ import annotations

from pathlib import Path

import click

from emu2.streams import tell

from ..errors import error
from .collect import find
from .files import read_files
from .site import write_site


@click.command("dashboard")
@click.argument("folders", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("dashboard"),
    show_default=True,
    help="the folder of pages to write",
)
@click.option("--serve", is_flag=True, help="serve the pages until Ctrl-C; adds Netron")
@click.option("--port", type=click.IntRange(0, 65535), default=8017, show_default=True)
def dashboard(folders: tuple[Path, ...], out: Path, serve: bool, port: int) -> None:
    """Write pages about compiles: FOLDERS are codegen_dirs, or folders that hold some.

    Files that `sweep`, `memory`, `gap` and `disassemble` write with `--json` may stand among them.

    A browser opens OUT/index.html from disk. Nothing is fetched from a network. Compiles that
    failed are listed too. OUT is not removed: pages of earlier compiles in it are overwritten.
    """
    if (out / "report.json").exists():
        raise error("P0003", path=out, reason="it is a codegen_dir; name another folder with -o")
    files = [path for path in folders if path.suffix == ".json" and path.is_file()]
    given = [path for path in folders if path not in files]
    compiles = write_site(out, find(given), read_files(files))
    for found in compiles:
        for problem in found.problems:
            tell(f"note: {found.name}: {problem}")
    click.echo(f"{len(compiles)} compiles in {out / 'index.html'}")
    if serve:
        from .serve import serve_site

        serve_site(out, compiles, port)
