"""The command ``emu2 link``, also under the name ``vsmlink``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

import emu2
from emu2.console import EXIT_FILE, cannot_write, guarded
from emu2.link import LinkError, link_files, origins


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("placement", type=click.Path(path_type=Path))
@click.argument("structure", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--map", "map_path", help="Write where each line comes from, as JSON.")
@click.option("--spec", "spec_name", default="mncore2", show_default=True, help="The machine.")
@click.version_option(emu2.__version__)
def link(
    source: Path,
    placement: Path,
    structure: Path,
    output: Path,
    map_path: str | None,
    spec_name: str,
) -> None:
    """Expand the directives of SOURCE (._vsm) to assembly.

    PLACEMENT (.param) says where arrays lie in the PDM, STRUCTURE (.stparam) which shape they have.
    """
    try:
        linked = link_files(source, placement, structure, emu2.Spec.load(spec_name))
    except LinkError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_FILE)
    for warning in linked.warnings:
        click.echo(str(warning), err=True)
    texts = [(str(output), linked.text)]
    if map_path is not None:
        texts.append((map_path, json.dumps(origins(linked.text)) + "\n"))
    for path, text in texts:
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            cannot_write(path, error)


def run_vsmlink(arguments: list[str] | None = None) -> None:
    """Entry point under the name `vsmlink`."""
    guarded(link, "vsmlink", arguments)
