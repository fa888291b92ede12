"""The compiled part of emu2, wherever it lies.

In a checkout this folder hides the installed package from programs that start at the checkout's
root, and only the installed package has a compiled part unless the install was editable. So the
search goes on in the other folders of this name on the path. What is found must have the interface
that this source expects.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

INTERFACE = "_core.pyi"


def load() -> ModuleType:
    """Return `emu2._core`.

    Raises:
        ImportError: it is not built, or it was built from a source with another interface.
    """
    here = Path(__file__).parent
    try:
        core = importlib.import_module("emu2._core")
    except ModuleNotFoundError as error:
        if error.name != "emu2._core":
            raise
        text = f"emu2 is not built: run `pip install .` in {here.parent}"
        raise ImportError(text) from None
    there = Path(core.__file__ or "").parent
    if there != here and _interface(there) != _interface(here):
        text = f"{here} and the installed {there} are of different versions: run `pip install .`"
        raise ImportError(f"{text} in {here.parent}, or start Python in another folder")
    return core


def _interface(folder: Path) -> bytes | None:
    """Return the interface file of a package folder, if it has one."""
    path = folder / INTERFACE
    return path.read_bytes() if path.is_file() else None
