"""The schedulers ``reuse_consecutive`` and ``spill_opt``.

They try orders of nodes and fractions of LM; :mod:`.keep_in_lm` inserts the moves.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import NoRoomError, PycompilerError
from ..graph.graph import MNGraph
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..machine import Target
from ..planners.overrides import Overrides, wanted_keeping
from .address_planner import plan_addresses
from .early_updates import update_early
from .keep_in_lm import Walk

#: Fractions of LM that are tried in turn. A smaller one leaves words for gaps between addresses.
SHARES = (1.0, 0.85, 0.7, 0.5, 0.3)


def schedule_in_lm(
    graph: MNGraph,
    target: Target,
    fraction: float,
    overrides: Overrides,
    renewed: Mapping[str, str] | None = None,
    *,
    consecutive: bool,
) -> MNGraph:
    """Insert the moves between DRAM and LM.

    ``fraction`` is the part of LM that may be used. ``renewed`` maps the key of an output to the
    registered value whose new value it is. ``consecutive`` keeps only the values that the next node
    reads. P0301 or P0304 if LM is too small, P0306 for an override that cannot be followed.
    """
    if consecutive:
        return _scheduled(graph, target, fraction, overrides, consecutive=True)
    best = _scheduled(graph, target, fraction, overrides, consecutive=False)
    # In another order, values that an override keeps in LM might have to leave.
    keeping = wanted_keeping(overrides)
    early = None if keeping else update_early(graph, renewed or {}, target)
    if early is None:
        return best
    try:
        scheduled = _scheduled(early, target, fraction, overrides, consecutive=False)
    except PycompilerError:
        # LM has no room, or an override cannot be followed in this order.
        return best
    return scheduled if _moved_words(scheduled) <= _moved_words(best) else best


def _moved_words(scheduled: MNGraph) -> int:
    """Return the long words of a PE that downloads and uploads move."""
    return sum(
        scheduled.values[node.outputs[0]].num_lw or 0
        for node in scheduled.nodes
        if node.op in (DOWNLOAD, UPLOAD)
    )


def _scheduled(
    graph: MNGraph, target: Target, fraction: float, overrides: Overrides, *, consecutive: bool
) -> MNGraph:
    problem: NoRoomError | None = None
    for part in SHARES:
        try:
            scheduled = Walk(graph, target, consecutive, part * fraction, overrides).run()
            plan_addresses(scheduled, target, overrides)
        except NoRoomError as found:
            problem = problem or found
        else:
            return scheduled
    assert problem is not None
    raise problem
