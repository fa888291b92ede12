"""The tools ``sdk-versions`` and ``sdk-examples`` of an installed SDK."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

import emu2
from emu2.console import EXIT_FILE, guarded
from emu2.sdk.install import tree
from emu2.streams import tell

RELATIVE = "../../../.."
"""The tree as seen from a program in it."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def versions() -> None:
    """Print the version of each part."""
    for part in ("emu2", "libmnc2", "libgpfn3", "vsmlink", "mnc2-inspect"):
        click.echo(f"{part} {emu2.__version__}")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--list", "listing", is_flag=True, help="List the kits.")
@click.argument("kit", required=False)
@click.argument("destination", type=click.Path(path_type=Path), required=False)
def examples(listing: bool, kit: str | None, destination: Path | None) -> None:
    """Copy the programs of KIT to DESTINATION/KIT-VERSION."""
    root = tree() / "share" / "examples"
    kits = sorted(path.name for path in root.iterdir() if path.is_dir() and path.name != "scripts")
    if listing:
        click.echo("\n".join(kits))
        return
    if kit is None or destination is None:
        raise click.UsageError("name a kit and a destination, or use --list.")
    if kit not in kits:
        tell(f"error: there is no kit `{kit}`; there are {', '.join(kits)}")
        sys.exit(EXIT_FILE)
    target = destination / f"{kit}-{emu2.__version__}"
    shutil.copytree(root / kit, target, dirs_exist_ok=True)
    shutil.copytree(root / "scripts", destination / "scripts", dirs_exist_ok=True)
    rules = destination / "scripts" / "sdk.ninja"
    text = rules.read_text(encoding="utf-8")
    rules.write_text(text.replace(RELATIVE, str(tree().resolve())), encoding="utf-8")
    click.echo(target)


def run_versions() -> None:
    """Entry point under the name `sdk-versions`."""
    guarded(versions, "sdk-versions")


def run_examples() -> None:
    """Entry point under the name `sdk-examples`."""
    guarded(examples, "sdk-examples")
