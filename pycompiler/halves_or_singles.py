"""`mixed` is never dearer than `float`: a small program in `mixed` is compared with one in `float`.

Halves save time in products and room in memories. A small model gains little by either, and halves
bind its layouts: a product of halves needs longer blocks of terms, so fewer units can share them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
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

    def program(options: Options) -> tuple[Report, Compiled]:
        own = Report("", {})
        return own, compile_onnx(model, target, options, own, known, plans)

    made = compile_onnx(model, target, options, report, known, plans)
    if not _follows(options) or not _only_brings(made.graph):
        return made
    judged, found = replace(options, **_JUDGED), None
    with report.running(FLOAT) as row, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first compile gave them
        key = repr(sorted(decisive(judged).items()))
        if key not in plans.verdicts:
            own = report if judged == options else program(judged)[0]
            plans.verdicts[key] = {MIXED: int(own.data["cycles"])}
            if _may_cost_less(model, target, judged, own):
                with suppress(PycompilerError):  # singles may not fit
                    found = program(replace(judged, float_dtype=FLOAT))
                    if _hosted(found[0]) <= _hosted(own):
                        plans.verdicts[key][FLOAT] = int(found[0].data["cycles"])
        cycles = plans.verdicts[key]
        row |= {"cycles": {**cycles}}
        if cycles.get(FLOAT, cycles[MIXED]) >= cycles[MIXED]:
            return made
        row["taken"] = True
        if found is None or judged != options:
            found = program(replace(options, float_dtype=FLOAT))
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
