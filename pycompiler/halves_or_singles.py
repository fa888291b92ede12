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

from .errors import PycompilerError
from .graph.dtypes import MNDtype
from .graph.graph import MNGraph
from .layers.dram_transfer import DOWNLOAD, UPLOAD
from .layers.half_conversions import NARROW
from .layers.local_copy import COPY
from .layers.switch.layer import SWITCH
from .layers.view import VIEWS
from .options import OPTIONS, Options, decisive
from .pfvm.device_functions import TILES
from .pipeline import Compiled, Planned, plan_onnx
from .report.bound import bodies, bound_of, record_bound
from .report.report import Report
from .request import Request
from .simulation.cheapest import NEAR, cheapest

FLOAT, MIXED = "float", "mixed"
#: Operators that only bring halves to a product: those of parameters, and factors that are rounded.
_BRING = (SWITCH, COPY, DOWNLOAD, UPLOAD, NARROW, TILES, *VIEWS)


#: The options with which programs are compared: these change no bits of results.
_JUDGED: Mapping[str, Any] = {
    name: OPTIONS[name].default
    for name in (
        *("scheduler", "emit", "tune", "search_seconds", "simulation_mode"),
        *("sa_expected_run_iters", "sa_seed"),
    )
}
#: guess: programs in singles take so many times their bound; no model took less and won
_OVER_BOUND = 6


class TooDearError(Exception):
    """A plan takes many more cycles than a program that is there."""


def compile_cheapest(request: Request, best: tuple[int, int] | None = None) -> Compiled:
    """Compile a model as :func:`compile_onnx`; in ``mixed``, take `float` where it costs less.

    Both are planned with the default scheduler and emit mode, whatever the options say, so results
    have the same bits with all of these. Programs decide where the estimates are near each other.
    The report has a row `float` for the comparison, and a note if a program in `float` is taken.
    Raises :class:`TooDearError` for a plan that will not come near the ``best`` program, which is
    given by its operators on the host and its cycles.
    """
    options, report, verdicts = request.options, request.report, request.plans.verdicts
    asked = plan_onnx(request)
    if best is not None and (_hosted(asked), asked.estimated / NEAR) > best:
        raise TooDearError(f"not near the best: estimated at {asked.estimated} cycles")
    if not _follows(options) or not _only_brings(asked.graph):
        return asked.program

    def planned(options: Options, mode: str) -> Planned:
        own = replace(options, float_dtype=mode)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first plan gave them
            return plan_onnx(replace(request, options=own, report=Report("", {})))

    judged = replace(options, **_JUDGED)
    key, ways = repr(sorted(decisive(judged).items())), {MIXED: asked}
    with report.running(FLOAT) as row:
        if key not in verdicts:
            ways = {MIXED: asked if judged == options else planned(judged, MIXED)}
            if _may_cost_less(ways[MIXED]):
                with suppress(PycompilerError):  # singles may not fit
                    singles = planned(judged, FLOAT)
                    if _hosted(singles) <= _hosted(ways[MIXED]):
                        ways[FLOAT] = singles
    if key not in verdicts:
        verdicts[key] = MIXED, {MIXED: asked.estimated}
        with suppress(PycompilerError):  # nor their program
            verdicts[key] = cheapest(ways)
    taken, row["cycles"] = verdicts[key]
    if taken == MIXED:
        return asked.program
    row["taken"] = True
    other = ways[FLOAT] if judged == options and FLOAT in ways else planned(options, FLOAT)
    made = other.program
    report.take(other.request.report.data)
    report.files |= other.request.report.files
    # The bound stays that of what was asked for.
    record_bound(report, request.model, request.target, options.precisions)
    report.note(
        f"`{MIXED}` takes {row['cycles'][MIXED]} cycles and `{FLOAT}` {row['cycles'][FLOAT]}: the "
        f"program computes in `{FLOAT}` (with the option `compare_float=False` it would not)"
    )
    return made


def _hosted(planned: Planned) -> int:
    return len(planned.request.report.data["host_fallback"])


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


def _may_cost_less(planned: Planned) -> bool:
    """Whether a plan in halves is worth a comparison: it is not near the bound of singles."""
    request = planned.request
    if bodies(request.model) is not None:
        return False
    precisions = replace(request.options, float_dtype=FLOAT).precisions
    bound = bound_of(request.model, request.target, precisions).cycles
    return _OVER_BOUND * bound <= planned.estimated
