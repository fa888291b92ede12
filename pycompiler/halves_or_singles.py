"""`mixed` is never dearer than `float`: a small program in `mixed` is compared with one in `float`.

Halves save time in products and room in memories. A small model gains little by either, and halves
bind its layouts: a product of halves needs longer blocks of terms, so fewer units can share them.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import onnx

from .errors import PycompilerError
from .graph.dtypes import MNDtype
from .graph.graph import MNGraph
from .layers.dram_transfer import DOWNLOAD
from .layers.half_conversions import NARROW
from .layers.local_copy import COPY
from .layers.switch.layer import SWITCH
from .layers.tiling.layer import TILES
from .layers.view import VIEWS
from .layout_passes import LayoutPlans
from .machine import Target
from .options import Options
from .pipeline import Compiled, compile_onnx
from .planners.dtype import product_precisions
from .report.bound import bodies, bound_of, record_bound
from .report.report import Report
from .simulation.store import Outcomes

FLOAT, MIXED = "float", "mixed"
#: Operators that only bring halves to a product: those of parameters, and factors that are rounded.
_BRING = (SWITCH, COPY, DOWNLOAD, NARROW, TILES, *VIEWS)


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

    Both programs are emitted, so their cycles are compared and not estimates. The report has a row
    `float` for the second compile, and a note if its program is taken.
    """
    plans = LayoutPlans() if plans is None else plans
    made = compile_onnx(model, target, options, report, known, plans)
    if not _may_cost_less(model, made.graph, target, options, report):
        return made
    other = Report(report.data["device"], {})
    singles = replace(options, float_dtype=FLOAT)
    with report.running(FLOAT) as row, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first compile gave them
        try:
            found = compile_onnx(model, target, singles, other, known, plans)
        except PycompilerError as problem:  # singles may not fit
            row["problem"] = f"{problem.code}: {problem.message}"
            return made
        cycles = {MIXED: report.data["cycles"], FLOAT: other.data["cycles"]}
        row["cycles"] = cycles
    hosted = [len(one.data["host_fallback"]) for one in (report, other)]
    if hosted[1] > hosted[0] or cycles[FLOAT] >= cycles[MIXED]:
        return made
    row["taken"] = True
    report.take(other.data)
    report.files |= other.files
    # The bound stays that of what was asked for.
    precisions = product_precisions(MIXED, options.gemm_precision, options.overrides)
    record_bound(report, model, target, precisions)
    report.note(
        f"`{MIXED}` takes {cycles[MIXED]} cycles and `{FLOAT}` {cycles[FLOAT]}: the program "
        f"computes in `{FLOAT}` (with the option `compare_float=False` it would not)"
    )
    return found


def _may_cost_less(
    model: onnx.ModelProto, graph: MNGraph, target: Target, options: Options, report: Report
) -> bool:
    """Whether a program in halves is worth a comparison with one in singles.

    It is not if nodes store halves for others, which is where halves save most. Nor is it if the
    program spends little time on moving data, which is what singles may save, or if it comes near
    the bound of singles.
    """
    follows = options.float_dtype == MIXED and options.gemm_precision == "auto"
    if not follows or not options.compare_float:
        return False
    halves = {n for n, value in graph.values.items() if value.dtype is MNDtype.HALF}
    stored = any(
        name in halves and node.op not in _BRING
        for node in graph.device_nodes()
        for name in node.outputs
    )
    shares = report.data["cycle_shares"]
    moves = sum(shares.get(kind, 0.0) for kind in _MOVES)
    if not halves or stored or moves <= _MORE * shares.get("products", 0.0):
        return False
    if bodies(model) is not None:
        return False
    bound = bound_of(
        model, target, product_precisions(FLOAT, options.gemm_precision, options.overrides)
    ).cycles
    return _OVER_BOUND * bound <= int(report.data["cycles"])
