"""The command ``emu2 link``, also under the name ``vsmlink``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

import emu2
from emu2.console import EXIT_FILE, cannot_write, guarded
from emu2.file_roles import READ, WRITTEN, spec_option
from emu2.link import LinkError, link_files, origins
from emu2.streams import tell


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=READ)
@click.argument("placement", type=READ)
@click.argument("structure", type=READ)
@click.argument("output", type=WRITTEN)
@click.option("--map", "map_path", type=WRITTEN, help="Write where each line comes from, as JSON.")
@spec_option
@click.version_option(emu2.__version__)
def link(
    source: str,
    placement: str,
    structure: str,
    output: str,
    map_path: str | None,
    spec_name: str,
) -> None:
    """Expand the directives of SOURCE (._vsm) to assembly.

    PLACEMENT (.param) says where arrays lie in the PDM, STRUCTURE (.stparam) which shape they have.
    """
    try:
        files = Path(source), Path(placement), Path(structure)
        linked = link_files(*files, emu2.Spec.load(spec_name))
    except LinkError as error:
        tell(str(error))
        sys.exit(EXIT_FILE)
    for warning in linked.warnings:
        tell(str(warning))
    texts = [(output, linked.text)]
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
