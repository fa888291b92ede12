"""`mixed` is never dearer than `float`: a small program in `mixed` is compared with one in `float`.

Halves save time in products and room in memories. A small model gains little by either, and halves
bind its layouts: a product of halves needs longer blocks of terms, so fewer units can share them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import onnx

from .errors import PycompilerError
from .graph.dtypes import MNDtype
from .graph.graph import MNGraph
from .layers.dram_transfer import DOWNLOAD, UPLOAD
from .layers.half_conversions import NARROW
from .layers.local_copy import COPY
from .layers.switch.layer import SWITCH
from .layers.tiling.layer import TILES
from .layers.view import VIEWS
from .layout_passes import LayoutPlans
from .machine import Target
from .options import OPTIONS, Options, decisive
from .pipeline import Compiled, compile_onnx
from .planners.dtype import product_precisions
from .report.bound import bodies, bound_of, record_bound
from .report.report import Report
from .simulation.store import Outcomes

FLOAT, MIXED = "float", "mixed"
#: Operators that only bring halves to a product: those of parameters, and factors that are rounded.
_BRING = (SWITCH, COPY, DOWNLOAD, UPLOAD, NARROW, TILES, *VIEWS)


#: The options with which programs are compared: these change no bits of results.
_JUDGED: Mapping[str, Any] = {
    name: OPTIONS[name].default
    for name in (
        *("scheduler", "emit", "tune", "tune_seconds", "simulation_mode"),
        *("sa_expected_run_iters", "sa_seconds", "sa_seed"),
    )
}
_Program = tuple[Report, Compiled]
#: The shares of a program that singles may save.
_MOVES = ("switches", "transfers", "waits")
#: guess: what products of singles take more than products of halves, in times of the latter
_MORE = 2
#: guess: programs in singles take so many times their bound; no model took less and won
_OVER_BOUND = 6


def compile_cheapest(
    model: onnx.ModelProto,
    target: Target,
    options: Options,
    report: Report,
    known: Outcomes | None = None,
    plans: LayoutPlans | None = None,
) -> Compiled:
    """Compile a model as :func:`compile_onnx`; in ``mixed``, take `float` where it costs less.

    Programs decide, and not estimates: those of the default scheduler and emit mode, whatever the
    options say. So results have the same bits with all of these. The report has a row `float` for
    the other compiles, and a note if a program in `float` is taken. ``plans`` keeps what was
    decided for the next compile of the model.
    """
    plans = LayoutPlans() if plans is None else plans
    made = compile_onnx(model, target, options, report, known, plans)
    if not _follows(options) or not _only_brings(made.graph):
        return made
    judged = replace(options, **_JUDGED)
    with report.running(FLOAT) as row, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first compile gave them
        own = report if judged == options else None
        key = repr(sorted(decisive(judged).items()))
        found = None
        if key not in plans.verdicts:
            plans.verdicts[key], found = _compared(model, target, judged, own, known, plans)
        row |= {"cycles": dict(plans.verdicts[key])}
        cycles = plans.verdicts[key]
        if cycles.get(FLOAT, cycles[MIXED]) >= cycles[MIXED]:
            return made
        row["taken"] = True
        if found is None or own is None:
            singles = replace(options, float_dtype=FLOAT)
            found = _program(model, target, singles, known, plans)
    other, made = found
    report.take(other.data)
    report.files |= other.files
    # The bound stays that of what was asked for.
    precisions = product_precisions(MIXED, options.gemm_precision, options.overrides)
    record_bound(report, model, target, precisions)
    report.note(
        f"`{MIXED}` takes {cycles[MIXED]} cycles and `{FLOAT}` {cycles[FLOAT]}: the program "
        f"computes in `{FLOAT}` (with the option `compare_float=False` it would not)"
    )
    return made


def _compared(
    model: onnx.ModelProto,
    target: Target,
    options: Options,
    own: Report | None,
    known: Outcomes | None,
    plans: LayoutPlans,
) -> tuple[dict[str, int], _Program | None]:
    """Return the cycles in ``mixed`` and in ``float``, and the program in ``float``.

    What belongs to ``float`` is absent if it is not worth a compile, or has no program. ``own`` is
    the report of a program in ``mixed`` with these options, if there is one.
    """
    if own is None:
        own, _ = _program(model, target, options, known, plans)
    cycles = {MIXED: int(own.data["cycles"])}
    if not _may_cost_less(model, target, options, own):
        return cycles, None
    try:
        found = _program(model, target, replace(options, float_dtype=FLOAT), known, plans)
    except PycompilerError:  # singles may not fit
        return cycles, None
    if _hosted(found[0]) <= _hosted(own):
        cycles[FLOAT] = int(found[0].data["cycles"])
    return cycles, found


def _program(
    model: onnx.ModelProto,
    target: Target,
    options: Options,
    known: Outcomes | None,
    plans: LayoutPlans,
) -> _Program:
    report = Report("", {})
    return report, compile_onnx(model, target, options, report, known, plans)


def _hosted(report: Report) -> int:
    return len(report.data["host_fallback"])


def _follows(options: Options) -> bool:
    """Whether the precision of products is the compiler's choice."""
    follows = options.float_dtype == MIXED and options.gemm_precision == "auto"
    return follows and options.compare_float


def _only_brings(graph: MNGraph) -> bool:
    """Whether there are halves, but no node stores any for others, where they save most."""
    halves = {n for n, value in graph.values.items() if value.dtype is MNDtype.HALF}
    return bool(halves) and not any(
        name in halves and node.op not in _BRING
        for node in graph.device_nodes()
        for name in node.outputs
    )


def _may_cost_less(
    model: onnx.ModelProto, target: Target, options: Options, report: Report
) -> bool:
    """Whether a program in halves is worth a comparison with one in singles.

    It is not if the program spends little time on moving data, which is what singles may save, or
    if it comes near the bound of singles.
    """
    shares = report.data["cycle_shares"]
    moves = sum(shares.get(kind, 0.0) for kind in _MOVES)
    if moves <= _MORE * shares.get("products", 0.0) or bodies(model) is not None:
        return False
    precisions = product_precisions(FLOAT, options.gemm_precision, options.overrides)
    bound = bound_of(model, target, precisions).cycles
    return _OVER_BOUND * bound <= int(report.data["cycles"])
