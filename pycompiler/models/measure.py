"""Compiles, emulates and compares one model."""

from __future__ import annotations

import json
import resource
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..build import build
from ..errors import PycompilerError
from ..frontend.export import export
from ..mlsdk.function import CompiledFunction
from ..report.codegen_dir import REPORT, read_file
from ..runtime.device import Board, find_device
from ..runtime.executable import DeviceFunction
from ..tolerance import NETWORKS
from ..torch_backend import emu2
from ..torch_backend.partition import Parts
from .catalogue import Entry
from .libraries import Tensors, build_model, shuffled
from .row import DOOR, MODES, RAISED, Row

_REASON = 300  # characters of a reason
_KILO = 1024


def measure(
    entry: Entry, modes: Sequence[str], batch: int, device: str, folder: Path
) -> Iterator[Row]:
    """Yield the row of a model for each mode; ``folder`` gets the files of the compiles.

    A model that cannot be built or compiled is a row with a code. The model is exported once, with
    other inputs than those of the run.
    """
    case: _Case | None = None
    for mode in modes:
        facts: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            try:
                if case is None:
                    case = _Case(entry, batch, device)
                if mode == DOOR:
                    case.through_torch(facts)
                else:
                    case.measure(mode, folder / mode, facts)
            except PycompilerError as problem:
                facts |= {"code": problem.code, "reason": _short(problem.message)}
            except Exception as problem:
                reason = _short(f"{type(problem).__name__}: {problem}")
                facts |= {"code": RAISED, "reason": reason}
            facts.setdefault("seconds", round(time.perf_counter() - began, 3))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _KILO
        yield Row(entry.name, batch, mode, megabytes=peak, **facts)


class _Case:
    """A model that was built, run by torch and, for a compile of ours, exported."""

    def __init__(self, entry: Entry, batch: int, device: str):
        self._device = find_device(device)
        self._model = model = build_model(entry, batch)
        self._inputs = model.inputs
        with torch.no_grad():
            outputs = model.function(model.inputs)
            self._wanted = {name: tensor.clone() for name, tensor in outputs.items()}

    @cached_property
    def _exported(self) -> tuple[Any, float]:
        """The model as the exporter writes it, and the seconds that it took."""
        began = time.perf_counter()
        exported = export(self._model.function, shuffled(self._inputs))
        return exported, time.perf_counter() - began

    def measure(self, mode: str, folder: Path, facts: dict[str, Any]) -> None:
        """Compile, emulate and compare; add what is known to ``facts`` as soon as it is."""
        exported, spent = self._exported
        began = time.perf_counter()
        options = {"float_dtype": mode}
        board = Board(self._device.target)
        try:
            function = build(lambda: exported, self._device.name, board, options, folder)
        finally:
            seconds = spent + time.perf_counter() - began
            facts["seconds"] = round(seconds, 3)
        facts |= _report(folder)
        outputs = CompiledFunction(function, folder)(self._inputs)
        found = {name: proxy.cpu() for name, proxy in outputs.items()}
        board.close()
        if isinstance(function, DeviceFunction):
            facts["emulated"] = round(function.emulation_seconds, 3)
        difference = largest_difference(found, self._wanted)
        facts |= {"error": difference, "matched": difference <= NETWORKS[mode]}

    def through_torch(self, facts: dict[str, Any]) -> None:
        """Compile by ``torch.compile``, with other inputs than those that are compared."""
        graphs: list[Parts] = []
        backend = partial(
            emu2,
            options={"device": self._device.name, "float_dtype": MODES[0]},
            watcher=lambda _, parts: graphs.append(parts),
        )
        compiled = self._model.through(torch.compile(self._model.plain, backend=backend))
        began = time.perf_counter()
        with torch.no_grad():
            compiled(shuffled(self._inputs))
            facts["seconds"] = round(time.perf_counter() - began, 3)
            began = time.perf_counter()
            found = compiled(self._inputs)
        facts |= _door_report(graphs) | {"emulated": round(time.perf_counter() - began, 3)}
        difference = largest_difference(found, self._wanted)
        facts |= {"error": difference, "matched": difference <= NETWORKS[MODES[0]]}


def _door_report(graphs: Sequence[Parts]) -> dict[str, Any]:
    """Return the facts of the graphs that torch captured."""
    pieces = [piece for parts in graphs for piece in parts.pieces]
    reports = [report.facts for piece in pieces for report in piece.reports]
    hosted = [row for report in reports for row in report["host_fallback"]]
    return {
        "operators": sum(parts.operators for parts in graphs),
        "graphs": len(graphs),
        "pieces": len(pieces),
        "in_torch": dict(Counter(name for parts in graphs for name, _ in parts.in_torch)),
        "host": dict(Counter(row["op"] for row in hosted)),
        "host_reasons": {row["op"]: _short(row["reason"]) for row in hosted},
        "steps": sum(report["steps"] for report in reports),
        "cycles": sum(report["cycles"] for report in reports),
    }


def _report(folder: Path) -> dict[str, Any]:
    """Return the facts of a finished compile."""
    report = json.loads(read_file(folder, REPORT))
    hosted = report["host_fallback"]
    reasons: dict[str, str] = {}
    for row in hosted:
        reasons.setdefault(row["op"], _short(row["reason"]))
    bound = {key: value or 0 for key, value in report["bound"].items()}
    return {
        "operators": report["operators"],
        "host": dict(Counter(row["op"] for row in hosted)),
        "host_reasons": reasons,
        "steps": report["steps"],
        "cycles": report["cycles"],
        "multiply_adds": bound["multiply_adds"],
        "words": bound["words"],
        "mau": bound["mau"],
        "dram": bound["dram"],
        "vector": bound["vector"],
        "bound": bound["cycles"],
        "shares": report["cycle_shares"],
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
