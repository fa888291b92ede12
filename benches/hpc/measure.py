"""Compiles a program, runs it on the emulator and compares the result with numpy."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pycompiler
from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.mlsdk import Context, MNDevice
from pycompiler.report.bound import peak

from .programs import Program
from .work import operations

DTYPES = {"doubles": np.float64, "singles": np.float32}
#: A result is right if it is off by at most so many units in the last place of its largest number,
#: or so many times as much as numpy's in the same dtype: some programs enlarge errors.
UNITS, TIMES_NUMPY = 64, 16
#: numpy is timed for at least this many seconds of CPU.
TIMED = 0.02


@dataclass(frozen=True)
class Row:
    """A line of the table; what is not known is None.

    ``result`` is `right`, `WRONG`, or the code with which the program was refused; operators on
    the host stand behind it. ``error`` is relative to the largest number of a result. ``share`` is
    that of the peak of products in this dtype. ``seconds`` and ``numpy_seconds`` are of CPU.
    ``reason`` is why a program was refused; the table does not show it.
    """

    name: str
    dtype: str
    size: str
    result: str
    error: float | None = None
    seconds: float | None = None
    cycles: int | None = None
    factor: float | None = None
    binds: str | None = None
    share: float | None = None
    numpy_seconds: float | None = None
    reason: str = ""

    def cells(self) -> list[str]:
        """Return the row as texts of a table."""

        def text(value: float | None, form: str) -> str:
            return "" if value is None else format(value, form)

        micro = None if self.numpy_seconds is None else 1e6 * self.numpy_seconds
        factor = text(self.factor, ".3g" if (self.factor or 0) < 1000 else ",.0f")
        percent = None if self.share is None else 100 * self.share
        return [
            *(self.name, self.dtype, self.size, self.result),
            *(text(self.error, ".1e"), text(self.seconds, ".1f"), text(self.cycles, ",d")),
            *(factor, self.binds or "", text(percent, ".2g"), text(micro, ",.0f")),
        ]


def measure(program: Program, dtype: str, machine: str = "mncore2", **options: Any) -> Row:
    """Return the row of a program; ``dtype`` is a key of `DTYPES`."""
    arrays = program.arrays(DTYPES[dtype])
    head = {"name": program.name, "dtype": dtype, "size": program.size}
    exact, near = references(program, dtype)
    taken = seconds_of(lambda: program.reference(np, **arrays))
    run = _through_compile if program.through_compile else _compiled
    started = time.process_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            seconds, facts, found = run(program, arrays, machine, options)
    except PycompilerError as problem:
        seconds = time.process_time() - started
        facts_known = {"seconds": seconds, "numpy_seconds": taken, "reason": str(problem)}
        return Row(**head, result=f"refused {problem.code}", **facts_known)
    error = largest_error(found, exact)
    right = is_right(error, largest_error(near, exact), DTYPES[dtype])
    row = Row(
        **head,
        result="right" if right else "WRONG",
        error=error,
        seconds=seconds,
        numpy_seconds=taken,
    )
    if not facts:
        return Row(**{**asdict(row), "result": f"{row.result}, all on the host"})
    hosted = sorted({str(entry["op"]) for entry in facts["host_fallback"]})
    on_host = f", on the host: {' '.join(hosted)}" if hosted else ""
    precision = "double" if dtype == "doubles" else "single"
    cycles, bound = facts["cycles"], facts["bound"]
    share = None
    if cycles and not program.through_compile:
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        work = operations(program.function, tensors)
        share = work / (2 * cycles * peak(load_target(machine), precision))
    found_facts = {"cycles": cycles, "factor": bound["factor"], "binds": bound["binds"]}
    return Row(**{**asdict(row), **found_facts, "share": share, "result": row.result + on_host})


def references(program: Program, dtype: str) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """Return what numpy computes in more digits, and in those of the program.

    More digits are long doubles for doubles, where numpy has them, and doubles for singles.
    """
    arrays = program.arrays(DTYPES[dtype])
    near = _listed(program.reference(np, **arrays))

    def widened(to: type[np.floating[Any]]) -> Sequence[np.ndarray]:
        wide = {n: a.astype(to) if a.dtype.kind == "f" else a for n, a in arrays.items()}
        return _listed(program.reference(np, **wide))

    if dtype == "singles":
        return widened(np.float64), near
    try:
        return widened(np.longdouble), near
    except TypeError:  # numpy's linear algebra has no long doubles
        return near, near


def largest_error(found: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> float:
    """Return the largest difference of a result, over the largest number of that result."""
    errors = []
    for one, wanted in zip(found, exact, strict=True):
        if one.shape != wanted.shape:
            return float("inf")
        scale = np.abs(wanted).max() or 1
        difference = np.abs(one.astype(wanted.dtype) - wanted).max() / scale
        errors.append(float(difference) if np.isfinite(difference) else float("inf"))
    return max(errors)


def is_right(error: float, of_numpy: float, dtype: type[np.floating[Any]]) -> bool:
    """Whether an error is that of rounding, see `UNITS`."""
    return error <= max(UNITS * float(np.finfo(dtype).eps), TIMES_NUMPY * of_numpy)


def seconds_of(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call, the least of several."""
    best, spent = float("inf"), 0.0
    while spent < TIMED:
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
        spent += max(best, 1e-6)
    return best


_Found = tuple[float, dict[str, Any] | None, Sequence[np.ndarray]]


def _compiled(
    program: Program, arrays: dict[str, np.ndarray], machine: str, options: dict[str, Any]
) -> _Found:
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}

    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        result = program.function(torch, **given)
        results = result if isinstance(result, tuple) else (result,)
        return {f"out{place}": one for place, one in enumerate(results)}

    with tempfile.TemporaryDirectory() as folder:
        context = Context(MNDevice(f"emu2:{machine}"))
        began = time.process_time()
        compiled = context.compile(
            function, tensors, Path(folder) / "out", options=options, quiet=True
        )
        seconds = time.process_time() - began
        facts = compiled.report.facts
        found = compiled(tensors)
        return seconds, facts, [found[key].cpu().numpy() for key in found]


def _through_compile(
    program: Program, arrays: dict[str, np.ndarray], machine: str, options: dict[str, Any]
) -> _Found:
    torch._dynamo.reset()

    def function(*given: np.ndarray) -> Any:
        return program.function(np, **dict(zip(arrays, given, strict=True)))

    options = {"device": f"emu2:{machine}", **options}
    compiled = torch.compile(function, backend="emu2", options=options)
    began = time.process_time()
    result = compiled(*arrays.values())  # the run on the emulator counts too
    seconds = time.process_time() - began
    report = pycompiler.last_report()
    facts = report.facts or (report.parts[0].facts if report.parts else None)
    return seconds, facts, _listed(result)


def _listed(result: Any) -> list[np.ndarray]:
    return [np.asarray(one) for one in (result if isinstance(result, tuple) else (result,))]
