"""The compiled part of emu2, wherever it lies.

In a checkout this folder hides the installed package from programs that start at the checkout's
root, and only the installed package has a compiled part unless the install was editable. So the
search goes on in the other folders of this name on the path. What is found must have the interface
that this source expects.
"""

from __future__ import annotations

import os.path
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

INTERFACE = "_core.pyi"


def load() -> ModuleType:
    """Return `emu2._core`.

    Raises:
        ImportError: it is not built, or it was built from a source with another interface.
    """
    here = os.path.dirname(__file__)
    core = _core()
    if core is None:
        # pkgutil loads slowly, and an installed package does not need it.
        from pkgutil import extend_path

        package = sys.modules[__package__]
        package.__path__ = extend_path(package.__path__, __package__)
        core = _core()
    checkout = os.path.dirname(here)
    if core is None:
        raise ImportError(f"emu2 is not built: run `pip install .` in {checkout}")
    there = os.path.dirname(core.__file__ or "")
    if there != here and _interface(there) != _interface(here):
        text = f"{here} and the installed {there} are of different versions: run `pip install .`"
        raise ImportError(f"{text} in {checkout}, or start Python in another folder")
    return core


def _core() -> ModuleType | None:
    """Return `emu2._core`, or None if no folder of the package has it."""
    try:
        return import_module("emu2._core")
    except ModuleNotFoundError as error:
        if error.name != "emu2._core":
            raise
        return None


def _interface(folder: str) -> bytes | None:
    """Return the interface file of a package folder, if it has one."""
    path = os.path.join(folder, INTERFACE)
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read()
