"""What a compile shows without a terminal: lines with pass, node and count."""

from __future__ import annotations

import io
import re
import sys
import time
from typing import Any

import pytest
import torch
from compiling import compiled, context, model_of, random_inputs

from pycompiler import build
from pycompiler.graph.graph import MNGraph, MNNode
from pycompiler.planners import side
from pycompiler.report import progress
from pycompiler.report.progress import progress_bar
from pycompiler.report.report import Report
from pycompiler.report.whereabouts import frames_of, node_at


def slow(seconds: float) -> Any:
    def work(node: MNNode) -> None:
        time.sleep(seconds)

    return work


@pytest.mark.parametrize("shown", [True, False])
def test_lines_name_pass_node_and_count(shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.05)
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    nodes = tuple(MNNode(f"n{k}", "Relu", (), ()) for k in range(5))
    graph, report = MNGraph("g", "mini", nodes=nodes), Report("mini", {})

    def walk(graph: MNGraph) -> None:
        for one in graph.nodes:
            slow(0.04)(one)

    with progress_bar(report, shown=shown), report.running("layout"):
        walk(graph)
        report.progress("simulation 3/7")
        time.sleep(0.2)
    lines = said.getvalue().splitlines()
    assert bool(lines) == shown
    if shown:
        assert re.fullmatch(r"compiling: layout: node [1-5] of 5 \(n\d\), 0 s", lines[0])
        assert lines[-1] == "compiling: simulation 3/7, 0 s"


def test_every_door_but_a_quiet_one_shows_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.01)
    shared, sample = context("emu2:mini"), {"x": torch.ones(4)}
    for quiet in (False, True):
        shared.compile(lambda d: {"y": d["x"] + 1.0}, sample, tmp_path / "out", quiet=quiet)
        assert ("compiling: " in capsys.readouterr().err) != quiet


@pytest.mark.parametrize(("call", "place"), [("app_content", "app"), ("DeviceFunction", "load")])
def test_what_comes_behind_the_passes_has_names(
    call: str, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, call, stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        context("emu2:mini").compile(
            lambda d: {"y": d["x"] + 1.0}, {"x": torch.ones(4)}, tmp_path / "out"
        )
    assert vars(caught.value)["__notes__"] == [f"in {place}"]


def test_an_exception_says_which_node_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass of the compiler, as it is, tells the node without doing anything for it."""
    depth = 6
    shapes = {f"w{k}": (8, 8) for k in range(depth)}
    nodes = [("MatMul", [f"v{k}", f"w{k}"], f"v{k + 1}") for k in range(depth)]
    model = model_of(nodes, {"v0": (5, 8)}, [f"v{depth}"], random_inputs(shapes, 1))
    plain, seen = side._decide, []

    def stop(node: MNNode, *rest: Any) -> Any:
        seen.append(node.name)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return plain(node, *rest)

    monkeypatch.setattr(side, "_decide", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        compiled(model)
    assert node_at(frames_of(caught.value.__traceback__)) == f"node 4 of {depth} ({seen[3]})"


def test_a_node_that_is_being_made_has_no_name() -> None:
    """Another thread may look at a frame in which a node is not filled yet."""
    graph = MNGraph("g", "mini", nodes=(MNNode("n", "Relu", (), ()),))

    def frame(node: MNNode, whole: MNGraph) -> Any:
        return sys._getframe()

    assert node_at([frame(object.__new__(MNNode), graph)]) == ""
    assert node_at([frame(graph.nodes[0], graph)]) == "node 1 of 1 (n)"
