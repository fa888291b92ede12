"""Batches over many processes: a compiled model as a small function that can be sent."""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..app.model import App
from ..app.reader import read_app
from ..app.writer import write_app
from ..errors import error
from ..files import read_input
from ..graph.dtypes import numpy_dtype
from ..pfvm.session import Array
from ..runtime.app_file import function_of, target_of
from ..runtime.device import Board
from ..runtime.executable import DeviceFunction

_KEPT = 4  # functions that a process keeps loaded, each with a board of its own

_functions: OrderedDict[tuple[str, str], DeviceFunction] = OrderedDict()
_lock = threading.Lock()


class AppTask:
    """A compiled model that runs in whatever process it is called.

    It pickles as the compressed bytes of its app. A process loads it at the first call, on a board
    of its own, and keeps it for later calls; copies of one app share the board. ``device`` names
    the machine if it is not found by the name in the app.
    """

    def __init__(self, app: App | Path | str, device: str | None = None):
        """Take an app, or the file of one. P0001, P0501, P0502."""
        data = write_app(app) if isinstance(app, App) else read_input(Path(app))
        found = read_app(data, "app" if isinstance(app, App) else str(app))
        self.device = device or f"emu2:{found.target}"
        self._packed, self._digest = zlib.compress(data), hashlib.sha256(data).hexdigest()

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one batch. P0503, P0601, P0603 if an input is missing or has another type."""
        function = self._function()
        wanted = function.inputs
        shown = ", ".join(f"{name}: {type}" for name, type in wanted.items()) or "none"
        if set(inputs) != set(wanted):
            names = ", ".join(sorted(inputs)) or "none"
            raise error("P0603", problem=f"the inputs are {names}", signature=shown)
        for name, type in wanted.items():
            own = inputs[name]
            if own.shape != type.shape or own.dtype != numpy_dtype(type.elem):
                problem = f"`{name}` is {own.dtype} {own.shape}"
                raise error("P0603", problem=problem, signature=shown)
        # One call at a time: outputs lie in DRAM until they are read.
        with function.board.lock:
            return {name: held.values() for name, held in function.run(inputs).items()}

    def _function(self) -> DeviceFunction:
        key = (self._digest, self.device)
        with _lock:
            found = _functions.pop(key, None)
            if found is None:
                data = zlib.decompress(self._packed)
                target = target_of(read_app(data, "app"), "app", self.device)
                found = function_of(data, "app", Board(target))
            _functions[key] = found
            while len(_functions) > _KEPT:
                _functions.popitem(last=False)
            return found


def map_batches(
    client: Any, task: AppTask, batches: Iterable[Mapping[str, Array]]
) -> list[dict[str, Array]]:
    """Run every batch on the workers of a Dask client; return the results in order.

    The app goes to each worker once. Use workers with one thread each: the calls of one process
    share its board.
    """
    shared = client.scatter(task, broadcast=True)
    # A run is a function of its arguments, but equal batches must not become one result by name.
    futures = client.map(_run, list(batches), task=shared, pure=False)
    found: list[dict[str, Array]] = client.gather(futures)
    return found


def _run(batch: Mapping[str, Array], task: AppTask) -> dict[str, Array]:
    return task(batch)
