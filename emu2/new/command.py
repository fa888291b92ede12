"""The command `emu2 new`."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from emu2.console import diagnostic, fail

KINDS = ("kernel", "model", "host")
#: Templates whose names begin with a dot in the project.
_HIDDEN = {"vscode", "gitignore"}


@click.command("new")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("folder", type=click.Path(path_type=Path))
def new(kind: str, folder: Path) -> None:
    """Write a project that runs to FOLDER: a kernel, a model, or a host program in Python.

    It has a test, and settings for VS Code. `pytest` in FOLDER runs the test.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        fail(diagnostic("F0008", f"{folder} is there and not empty", "name a new folder"))
    templates = files("emu2.new") / "templates"
    written: list[str] = []
    for part in ("common", kind):
        for path, text in _texts(templates / part, Path()):
            target = folder / path
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            except OSError as problem:
                reason = f"{target} cannot be written: {problem.strerror}"
                fail(diagnostic("F0005", reason, "name a folder that you may write to"))
            written.append(str(target))
    for name in sorted(written):
        click.echo(f"wrote {name}")
    click.echo(f"next: cd {folder} && pytest   (README.md says more)")


def _texts(folder: Traversable, below: Path) -> list[tuple[Path, str]]:
    """Return the files of a template with their paths in the project."""
    found: list[tuple[Path, str]] = []
    for entry in folder.iterdir():
        name = entry.name.removesuffix(".template")
        name = f".{name}" if name in _HIDDEN else name
        if entry.is_dir():
            found += _texts(entry, below / name)
        else:
            found.append((below / name, entry.read_text("utf-8")))
    return found
