"""Finds plug-ins by name: those of this package, and those that other packages announce."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from ..errors import PycompilerError, error
from .emulator import graph_mode, kernel_mode
from .host import host
from .interface import DeviceContext

#: The group of entry points. Each one names a function that returns a context.
GROUP = "pycompiler.plugins"
_OWN: dict[str, Callable[..., DeviceContext]] = {
    "emu2-graph": graph_mode,
    "emu2-kernel": kernel_mode,
    "host": host,
}


def plugins() -> list[str]:
    """Return the names of all plug-ins that are installed."""
    return sorted({*_OWN, *(entry.name for entry in entry_points(group=GROUP))})


def open_device(name: str, **arguments: Any) -> DeviceContext:
    """Return the context of a plug-in; ``arguments`` are its own. P0827.

    A package cannot take the name of a plug-in of ours, or of another package.
    """
    if name in _OWN:
        return _OWN[name](**arguments)
    found = list(entry_points(group=GROUP, name=name))
    if len(found) != 1:
        reason = f"the plug-ins are {', '.join(plugins())}"
        if found:
            reason = f"{len(found)} packages have one of that name"
        raise error("P0827", name=name, reason=reason)
    try:
        made = found[0].load()(**arguments)
    except PycompilerError:
        raise
    except Exception as problem:
        reason = f"{found[0].value} failed ({type(problem).__name__}: {problem})"
        raise error("P0827", name=name, reason=reason) from problem
    if not isinstance(made, DeviceContext):
        raise error("P0827", name=name, reason=f"{found[0].value} returned no DeviceContext")
    return made
