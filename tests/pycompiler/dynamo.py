"""Shared by the tests of ``torch.compile``: functions compiled for the small machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from pycompiler.torch_backend import emu2
from pycompiler.torch_backend.partition import Parts

OPTIONS: dict[str, Any] = {"device": "emu2:mini"}
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def compiled(function: Any, seen: list[Parts] | None = None, **options: Any) -> Callable[..., Any]:
    """Compile with options of the back end; ``seen`` gets the parts of each graph."""

    def watch(_: str, parts: Parts) -> None:
        if seen is not None:
            seen.append(parts)

    backend = partial(emu2, options={**OPTIONS, **options}, watcher=watch)
    made: Callable[..., Any] = torch.compile(function, backend=backend)
    return made
