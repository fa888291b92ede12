"""Exports of torch that read torch's tables once.

For every export, torch makes its registry of translations again, and asks its dispatcher for all
operators, once for each of their namespaces. Both take longer than the export itself. They are
kept here for as long as no module and no operator is new.
"""

from __future__ import annotations

import functools
import sys
import typing
from collections.abc import Callable
from typing import Any

import torch
from torch._export import utils
from torch.onnx._internal.exporter import _registration


def keep_tables_of_exports() -> None:
    """Let torch's exporter keep its tables in this process. Other versions are left alone."""
    registry = getattr(_registration, "ONNXRegistry", None)
    if hasattr(registry, "from_torchlib"):
        registry.from_torchlib = staticmethod(_copies(registry.from_torchlib))
    if hasattr(utils, "_materialize_cpp_cia_ops"):
        utils._materialize_cpp_cia_ops = _once(utils._materialize_cpp_cia_ops)
    # Annotations of a function that an export makes ten thousand times; typing keeps such types.
    if getattr(torch._ops, "Callable", None) is Callable:
        torch._ops.Callable = typing.Callable


def _copies(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes each registry once and returns copies, which may grow."""
    made = functools.cache(make)

    def copied(*given: Any, **named: Any) -> Any:
        found = made(*given, **named)
        out = type(found).__new__(type(found))
        out.__dict__.update(found.__dict__)
        out.functions = {target: list(metas) for target, metas in found.functions.items()}
        return out

    return copied


def _once(read: Callable[[], None]) -> Callable[[], None]:
    """Return a function that reads again only when operators may be new."""
    seen = None

    def read_once() -> None:
        nonlocal seen
        now = len(sys.modules), len(torch.library._defs), len(torch.library._impls)
        if now != seen:
            read()
            seen = now

    return read_once
