"""The tools ``sdk-versions`` and ``sdk-examples`` of an installed SDK."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

import emu2
from emu2.console import EXIT_FILE, guarded, read_bytes
from emu2.file_roles import READ
from emu2.sdk.install import tree
from emu2.streams import tell

BLOCK, MODE = 128, 1022
"""Bytes of a block of a kernel; the first bit of its mode."""
FIELDS = {0: ("flat", (270, 702), 911), 1: ("auto", (292, 596, 900), 935), 2: ("loop", (), None)}
"""Modes: the name, the first bits of the tags that are waited for, and that of the MV's tag."""
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


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(emu2.__version__)
@click.argument("kernel", type=READ)
def inspect(kernel: str) -> None:
    """Print what the blocks of KERNEL (.idma.dat) say: their mode, and the tags of each."""
    data = read_bytes(kernel)
    if not data or len(data) % BLOCK:
        tell(f"error: {kernel}: the size of a kernel is a multiple of {BLOCK} bytes")
        sys.exit(EXIT_FILE)
    for number in range(len(data) // BLOCK):
        bits = int.from_bytes(data[number * BLOCK : (number + 1) * BLOCK], "little")
        mode = bits >> MODE & 3
        name, waits, mv = FIELDS.get(mode, ("other", (), None))
        tags = [bits >> first & 0xFF for first in waits]
        shown = " ".join(f"i{tag:02x}" for tag in tags if tag) or "-"
        carried = bits >> mv & 0xFF if mv is not None else 0
        click.echo(
            f"{number:>6} {name:<5} waits {shown}  mv {f'i{carried:02x}' if carried else '-'}"
        )


def run_inspect() -> None:
    """Entry point under the name `mnc2-inspect`."""
    guarded(inspect, "mnc2-inspect")


def run_versions() -> None:
    """Entry point under the name `sdk-versions`."""
    guarded(versions, "sdk-versions")


def run_examples() -> None:
    """Entry point under the name `sdk-examples`."""
    guarded(examples, "sdk-examples")
