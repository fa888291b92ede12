"""Compiles a model of a public suite, runs it, and compares the results with the right ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from pycompiler.build import build
from pycompiler.report.codegen_dir import REPORT
from pycompiler.runtime.device import Board, find_device
from pycompiler.runtime.executable import Function

from .outcome import DEVICE, HOST

#: What a few roundings of the largest result may come to, by element type: sums round their terms.
_ROUNDING = {"float32": 2.0**-18, "float16": 2.0**-9, "bfloat16": 2.0**-6}


def compiled(
    make_model: Callable[[], onnx.ModelProto], device: str, folder: Path
) -> tuple[Function, str, str]:
    """Compile a model. Return its function, DEVICE or HOST, and why parts are on the host."""
    function = build(make_model, device, Board(find_device(device).target), {}, folder)
    fallback = json.loads((folder / REPORT).read_bytes())["host_fallback"]
    reason = "; ".join(dict.fromkeys(f"{row['op']}: {row['reason']}" for row in fallback))
    return function, HOST if fallback else DEVICE, reason


def differ(
    arrays: list[Any], expected: Any, given: Any, rtol: float, atol: float, random: bool
) -> tuple[str, bool]:
    """Return how results differ, and whether only by NaNs and infinities.

    Only shapes and types of ``random`` results are compared.
    """
    special = any(_special(np.asarray(value)).any() for value in given)
    if len(arrays) != len(expected):
        return f"{len(arrays)} results of {len(expected)}", False
    for number, (found, wanted) in enumerate(zip(arrays, expected, strict=True)):
        wanted = np.asarray(wanted)
        if found.dtype != wanted.dtype or found.shape != wanted.shape:
            shown = f"{found.dtype} {found.shape} for {wanted.dtype} {wanted.shape}"
            return f"output {number} is {shown}", False
        if random:
            continue
        if found.dtype.kind in "biu":
            bad = found != wanted
            outside = np.zeros(found.shape, bool)
        else:
            a, b = found.astype(np.complex128), wanted.astype(np.complex128)
            if found.dtype.kind != "c":
                a, b = found.astype(np.float64), wanted.astype(np.float64)
            largest = float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0))
            room = atol + _ROUNDING.get(str(found.dtype), 0.0) * largest
            bad = ~np.isclose(a, b, rtol=rtol, atol=room, equal_nan=True)
            outside = _special(wanted)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            text = f"output {number} at {at}: {found[at]} for {wanted[at]}, {bad.sum()} differ"
            return text, bool(special or not (bad & ~outside).any())
    return "", False


def _special(array: Any) -> Any:
    if array.dtype.kind in "biuSUOM":
        return np.zeros(array.shape, bool)
    return ~np.isfinite(array.astype(np.complex128))
