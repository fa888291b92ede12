"""Estimates of graphs that have most nodes in common: what is placed again, and what is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from compiling import compiled
from corpus.networks import perceptron

from pycompiler.cost.sequence import Flow, Timeline
from pycompiler.graph.graph import MNGraph
from pycompiler.layers.dram_transfer import DOWNLOAD
from pycompiler.machine import load_target
from pycompiler.simulation.sequence import Estimates


def test_only_what_changed_is_placed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = [0]
    add = Timeline.add

    def counted(*given: Any) -> Any:
        placed[0] += 1
        return add(*given)

    monkeypatch.setattr(Timeline, "add", counted)
    graph = compiled(perceptron(9, (70, 50, 40, 30, 5)))[0].graph
    target, estimates = load_target("mini"), Estimates()

    def asked(own: Estimates, graph: MNGraph) -> tuple[int, int]:
        before = placed[0]
        return own.cycles(graph, target), placed[0] - before

    nodes = list(graph.device_nodes())
    first, all_nodes = asked(estimates, graph)
    assert all_nodes == len(nodes)
    assert asked(estimates, graph) == (first, 0)
    # The last download brings words of another place in DRAM, which is another value.
    last = [node for node in nodes if node.op == DOWNLOAD][-1]
    source = graph.values[last.inputs[0]]
    other = replace(source, name="other")
    changed = replace(
        graph,
        nodes=tuple(
            replace(node, inputs=("other",)) if node is last else node for node in graph.nodes
        ),
        values={**graph.values, "other": other},
    )
    again, few = asked(estimates, changed)
    assert 0 < few < all_nodes / 2
    assert abs(again - asked(Estimates(), changed)[0]) <= 4 * Flow.bin
