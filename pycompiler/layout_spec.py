"""Files of forced layouts: the options ``layout_spec`` and ``gemm_layout_spec``.

Both are JSON lists. An entry of a ``layout_spec`` file has ``trigger``, ``op_type``, ``shape`` and
``layout``: in every operator of that type, inputs (``SwitchInput``) or outputs (``FixOutput``) of
that shape have that layout. An entry of a ``gemm_layout_spec`` file has ``key``, which is part of a
weight's name, and the layouts of that weight's products: ``A`` of the left operand, ``BT`` of the
transposed right operand, ``C`` of the result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import PycompilerError, error
from .files import TEXT_BYTES, read_input
from .graph.layout import Layout
from .graph.layout_text import parse_pad_layout

TRIGGERS = ("SwitchInput", "FixOutput")


@dataclass(frozen=True)
class OperandSpec:
    """An entry of a ``layout_spec`` file."""

    place: str
    trigger: str
    op_type: str
    shape: tuple[int, ...]
    layout: Layout


@dataclass(frozen=True)
class ProductSpec:
    """An entry of a ``gemm_layout_spec`` file; ``BT`` has the axes (columns of the result, k)."""

    place: str
    key: str
    a: Layout
    bt: Layout
    c: Layout


LayoutSpec = OperandSpec | ProductSpec


def read_layout_spec(path: Any) -> tuple[OperandSpec, ...]:
    """Return the entries of a ``layout_spec`` file. P0001, P0310."""
    out: list[OperandSpec] = []
    for place, entry in _entries(path, {"trigger", "op_type", "shape", "layout"}):
        trigger, shape = entry["trigger"], entry["shape"]
        if trigger not in TRIGGERS:
            raise _bad(path, place, f"trigger {trigger!r} is none of {', '.join(TRIGGERS)}")
        whole = isinstance(shape, list) and all(type(n) is int and n > 0 for n in shape)
        if not whole:
            raise _bad(path, place, f"shape {shape!r} is no list of sizes")
        if not isinstance(entry["op_type"], str):
            raise _bad(path, place, f"op_type {entry['op_type']!r} is no name")
        layout = _layout(path, place, entry["layout"])
        out.append(OperandSpec(place, trigger, entry["op_type"], tuple(shape), layout))
    return tuple(out)


def read_gemm_layout_spec(path: Any) -> tuple[ProductSpec, ...]:
    """Return the entries of a ``gemm_layout_spec`` file. P0001, P0310."""
    out: list[ProductSpec] = []
    for place, entry in _entries(path, {"key", "A", "BT", "C"}):
        if not isinstance(entry["key"], str) or not entry["key"]:
            raise _bad(path, place, f"key {entry['key']!r} is no part of a name")
        layouts = [_layout(path, place, entry[name]) for name in ("A", "BT", "C")]
        out.append(ProductSpec(place, entry["key"], *layouts))
    return tuple(out)


def _entries(path: Any, keys: set[str]) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        found = json.loads(read_input(Path(path), TEXT_BYTES))
    except (ValueError, RecursionError) as problem:
        raise error("P0310", path=path, reason=f"it is no JSON: {problem}") from problem
    if not isinstance(found, list):
        raise error("P0310", path=path, reason="it is no list of entries")
    out: list[tuple[str, Mapping[str, Any]]] = []
    for number, entry in enumerate(found):
        place = f"entry {number} of {Path(path).name}"
        if not isinstance(entry, dict) or set(entry) != keys:
            wanted = ", ".join(sorted(keys))
            raise _bad(path, place, f"it must have the keys {wanted} and no others")
        out.append((place, entry))
    return out


def _layout(path: Any, place: str, text: Any) -> Layout:
    if not isinstance(text, str):
        raise _bad(path, place, f"layout {text!r} is no text")
    try:
        return parse_pad_layout(text).layout
    except PycompilerError as problem:
        raise _bad(path, place, problem.message) from problem


def _bad(path: Any, place: str, reason: str) -> PycompilerError:
    return error("P0310", path=path, reason=f"{place}: {reason}")
