"""Compiles, emulates and compares one model in one mode."""

from __future__ import annotations

import json
import resource
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from ..errors import PycompilerError
from ..files import write_file
from ..machine import Target
from ..mlsdk import Context, MNDevice
from ..report.codegen_dir import MODEL_ONNX, REPORT, read_file
from ..runtime.device import find_device
from ..runtime.executable import DeviceFunction
from ..tolerance import NETWORKS
from .bound import bound_of
from .catalogue import Entry
from .libraries import Tensors, build_model, shuffled
from .row import RAISED, Row

_REASON = 300  # characters of a reason
_KILO = 1024


def measure(entry: Entry, mode: str, batch: int, device: str, folder: Path) -> Row:
    """Return the row of a model; ``folder`` gets the files of the compile.

    A model that cannot be built or compiled is a row with a code. The compile sees other inputs
    than the run.
    """
    facts: dict[str, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _measure(entry, mode, batch, device, folder, facts)
    except PycompilerError as problem:
        facts |= {"code": problem.code, "reason": _short(problem.message)}
    except Exception as problem:
        facts |= {"code": RAISED, "reason": _short(f"{type(problem).__name__}: {problem}")}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _KILO
    return Row(entry.name, mode, megabytes=peak, **facts)


def _measure(
    entry: Entry, mode: str, batch: int, device: str, folder: Path, facts: dict[str, Any]
) -> None:
    target = find_device(device).target
    model = build_model(entry, batch)
    with torch.no_grad():
        wanted = {name: tensor.clone() for name, tensor in model.function(model.inputs).items()}
    began = time.perf_counter()
    try:
        compiled = Context(MNDevice(device)).compile(
            model.function,
            shuffled(model.inputs),
            folder,
            options={"float_dtype": mode},
            quiet=True,
        )
    finally:
        facts["seconds"] = round(time.perf_counter() - began, 3)
    facts |= _report(folder, target, mode)
    found = {name: proxy.cpu() for name, proxy in compiled(model.inputs).items()}
    if isinstance(compiled.function, DeviceFunction):
        facts["emulated"] = round(compiled.function.emulation_seconds, 3)
    difference = largest_difference(found, wanted)
    facts |= {"error": difference, "matched": difference <= NETWORKS[mode]}


def _report(folder: Path, target: Target, mode: str) -> dict[str, Any]:
    """Return the facts of a finished compile."""
    report = json.loads(read_file(folder, REPORT))
    hosted = report["host_fallback"]
    reasons: dict[str, str] = {}
    for row in hosted:
        reasons.setdefault(row["op"], _short(row["reason"]))
    work = bound_of(onnx.load_from_string(read_file(folder, MODEL_ONNX)), target, mode)
    return {
        "operators": report["operators"],
        "host": dict(Counter(row["op"] for row in hosted)),
        "host_reasons": reasons,
        "steps": report["steps"],
        "cycles": report["cycles"],
        "multiply_adds": work.multiply_adds,
        "words": work.words,
        "bound": work.cycles,
    }


def largest_difference(found: Tensors, wanted: Tensors) -> float:
    """Return the largest difference, divided by the largest magnitude of the same output.

    Infinite if an output is missing, has another shape or dtype, if integers differ, or if a
    number is not finite.
    """
    if set(found) != set(wanted):
        return float("inf")
    return max((_difference(found[name], wanted[name]) for name in wanted), default=0.0)


def _difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if not wanted.is_floating_point():
        return 0.0 if torch.equal(found, wanted) else float("inf")
    if not wanted.numel():
        return 0.0
    one, other = found.double().numpy(), wanted.double().numpy()
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return float("inf")
    largest = float(np.abs(other).max())
    error = float(np.abs(one - other).max())
    return error / largest if largest else float("inf") if error else 0.0


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _REASON else f"{plain[:_REASON]}..."


def write_row(row: Row, path: Path) -> None:
    """Write a row for the process that waits for it."""
    write_file(path, json.dumps(row.data()).encode())
