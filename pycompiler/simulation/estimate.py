"""Costs of nodes without their code: what the layout planner counts, too."""

from __future__ import annotations

from ..graph.graph import MNGraph
from ..layers.base import layout_of
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.dram_transfer_plan import plan_transfer
from ..layers.operators import LAYERS
from ..machine import Target
from .outcome import Outcome
from .sequence import Estimates
from .settings import LM
from .task import Task


def estimated(task: Task, target: Target) -> Outcome:
    """Return the estimated outcome of a task.

    The words of DRAM are exact for downloads and uploads.
    """
    values = {value.name: value for value in task.values}
    graph = MNGraph("", target.name, nodes=(task.node,), values=values)
    steps = LAYERS[task.node.op].cost(task.node, graph, target)
    read = written = 0
    if task.node.op in (DOWNLOAD, UPLOAD):
        plan = plan_transfer(layout_of(values[task.node.inputs[0]]), target)
        words = plan.mv_words * target.groups
        read, written = (words, 0) if task.node.op == DOWNLOAD else (0, words)
    words_of = dict.fromkeys(LM, 0)
    for value in task.values:
        if value.location in LM:
            words_of[value.location] += value.num_lw or 0
    if task.node.inplace is not None:
        first = values[task.node.outputs[0]]
        taken = values[task.node.inputs[task.node.inplace]]
        words_of[first.location] -= min(first.num_lw or 0, taken.num_lw or 0)
    return Outcome(
        task.key,
        steps=steps,
        cycles=max(steps * target.cycles, Estimates().cycles(graph, target)),
        lm0=words_of[LM[0]],
        lm1=words_of[LM[1]],
        read=read,
        written=written,
        estimated=True,
    )
