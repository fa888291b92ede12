"""`pycompiler disassemble`: the list of instructions, and the times of nodes."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from compiling import context, model_of
from torch import nn

from pycompiler.app.make_app import programs_of
from pycompiler.app.model import App
from pycompiler.app.reader import read_app
from pycompiler.build import build, load_function
from pycompiler.disassemble.bench import Bench, timings
from pycompiler.disassemble.instructions import Instruction, instructions
from pycompiler.errors import PycompilerError
from pycompiler.graph.graph import MNGraph, MNNode, MNValue, TensorType
from pycompiler.graph.text import parse_graph
from pycompiler.machine import load_target
from pycompiler.mlsdk import MNCoreSGD
from pycompiler.model_commands import commands
from pycompiler.profile.programs import pieces
from pycompiler.runtime.device import Board

MATRIX = np.linspace(-1, 1, 24 * 10, dtype=np.float32).reshape(24, 10)


@pytest.fixture(scope="module")
def step(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a training step."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Linear(5, 3))
    optimizer = MNCoreSGD(model.parameters(), lr=0.1, momentum=0.9)
    shared = context("emu2:mini")
    shared.registry.register("model0", model)
    shared.registry.register("optimizer0", optimizer)

    def train(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(d["x"]), d["y"])
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    folder = tmp_path_factory.mktemp("step") / "step"
    shared.compile(train, {"x": torch.randn(9, 7), "y": torch.randn(9, 3)}, folder)
    return folder


@pytest.fixture(scope="module", params=["l1merge", "concat"])
def inference(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodes = [
        ("MatMul", ["x", "w"], "h"),
        ("Relu", ["h"], "r"),
        ("Unsqueeze", ["r", "axis"], "u"),  # takes over the words of its operand
        ("Softmax", ["u"], "y"),
    ]
    constants = {"w": MATRIX, "axis": np.array([0])}
    model = model_of(nodes, {"x": (9, 24)}, ["y"], constants)
    folder = tmp_path_factory.mktemp("inference") / request.param
    board = Board(load_target("mini"))
    build(lambda: model, "emu2:mini", board, {"emit": request.param}, folder)
    return folder


def listed(folder: Path) -> tuple[list[Instruction], App]:
    app = read_app((folder / "model.app").read_bytes(), "model.app")
    graph = parse_graph((folder / "l3ir.txt").read_text())
    return instructions(graph, frozenset(port.value for port in app.updates)), app


def test_an_inference_is_all_forward(inference: Path) -> None:
    found, _ = listed(inference)
    graph = parse_graph((inference / "l3ir.txt").read_text())
    assert [one.node for one in found] == [node.name for node in graph.nodes]
    assert {one.phase for one in found} == {"forward"}
    assert [one.saved for one in found] == [()] * len(found)
    (relu,) = (one for one in found if one.operation == "Relu")
    assert relu.text.endswith(f" <- {relu.inputs[0]}")
    assert any(one.in_place in one.inputs for one in found if one.in_place)


def by_hand() -> MNGraph:
    """Return a step: y = f(x, w), loss = g(y); the backward pass reads y and what f has saved."""
    lines = [
        *("Mul(x, w) -> (h, kept)", "MNCoreUpload(kept) -> (kept.dram)", "Relu(h) -> (y)"),
        *("Sum(y) -> (loss)", "MNCoreDownload(kept.dram) -> (kept.back)", "Sign(y) -> (dy)"),
        *("Mul(dy, kept.back) -> (dw)", "Sub(w, dw) -> (new)", "MNCoreUpload(new) -> (w.new)"),
    ]
    names = {"x", "w"}
    nodes = []
    for k, line in enumerate(lines):
        op, reads, outs = re.findall(r"[\w.]+(?:, [\w.]+)*", line)
        node = MNNode(f"n{k}", op, tuple(reads.split(", ")), tuple(outs.split(", ")))
        nodes.append(replace(node, inplace=0 if op in ("Relu", "Sub") else None))
        names.update(node.outputs)
    values = {name: MNValue(name, TensorType("float", (2,))) for name in names}
    outputs = (("loss", "loss"), ("w", "w.new"))
    return MNGraph("step", "mini", nodes=tuple(nodes), outputs=outputs, values=values)


def test_a_step_by_hand() -> None:
    found = instructions(by_hand(), frozenset({"w.new"}))
    assert [one.number for one in found if one.phase == "forward"] == [0, 1, 2, 3]
    assert [one.saved for one in found] == [(), ("kept.dram",), ("y",), *[()] * 6]
    assert [one.in_place for one in found] == [None, None, "h", *[None] * 4, "w", None]
    assert [one.text for one in found][:2] == ["h, kept <- x, w", "kept.dram <- kept"]
    assert found[0].types == ("float[2]", "float[2]")
    whole = instructions(by_hand(), frozenset())
    assert {one.phase for one in whole} == {"forward"}


@pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="takes 10 s: EMU2_LONG=1")
def test_the_loss_needs_the_forward_pass_and_nothing_else(step: Path) -> None:
    found, app = listed(step)
    forward = [one for one in found if one.phase == "forward"]
    backward = [one for one in found if one.phase == "backward"]
    assert forward
    assert backward
    # The slow way: what is left out one at a time, and still leads to the loss.
    made = {name: one for one in found for name in one.outputs}
    (loss,) = (port.value for port in app.outputs)
    needed, asked = set(), [loss]
    while asked:
        one = made.get(asked.pop())
        if one is not None and one.number not in needed:
            needed.add(one.number)
            asked += one.inputs
    uploads = {one.number for one in forward if one.operation == "MNCoreUpload"}
    assert {one.number for one in forward} - uploads == needed - uploads
    assert {port.value for port in app.updates} <= {n for one in backward for n in one.outputs}
    assert sum(one.operation == "Relu" for one in forward) == 1
    later = {name for one in backward for name in one.inputs}
    for one in forward:
        assert set(one.saved) == later.intersection(one.outputs)
    assert any(one.saved for one in forward)
    assert not any(one.saved for one in backward)


def test_the_command_prints_one_list(inference: Path, tmp_path: Path) -> None:
    out = tmp_path / "list.json"
    done = CliRunner().invoke(commands, ["disassemble", str(inference), "--json", str(out)])
    assert done.exit_code == 0, done.exception
    found, _ = listed(inference)
    rows = json.loads(out.read_text())["instructions"]
    assert [row["node"] for row in rows] == [one.node for one in found]
    for one in found:
        assert one.operation in done.output


def test_pieces_compute_what_the_function_does(inference: Path) -> None:
    x = np.random.default_rng(2).standard_normal((9, 24)).astype(np.float32)
    target = load_target("mini")
    wanted = load_function(inference, Board(target)).run({"x": x})["y"].values()
    _, app = listed(inference)
    bench = Bench(inference, app, Board(target), {"x": x})
    seconds = bench.run(3)
    place = bench.function.place("y", output=True)
    assert place is not None
    assert place.read().tobytes() == wanted.tobytes()
    names = {node.name for node in parse_graph((inference / "l3ir.txt").read_text()).nodes}
    assert set(seconds) <= names
    assert all(own > 0 for own in seconds.values())


def test_pieces_are_the_program(inference: Path) -> None:
    code = (inference / "model.vsm").read_text()
    _, app = listed(inference)
    found = [piece for _, segment in programs_of(app, "model.app") for piece in pieces(segment)]
    lines = [line for line in code.split("\n") if line and not line.startswith("#")]
    assert "\n".join(text for _, text in found).split("\n") == lines
    for (one, _), (other, _) in pairwise(found):
        assert one != other


def test_times_are_sorted_and_their_shares_add_up() -> None:
    seconds = {"a": 1.0, "b": 5.0, "c": 2.0}
    rows = timings(seconds)
    assert [(row.name, row.share) for row in rows] == [("b", 0.625), ("c", 0.25), ("a", 0.125)]
    kinds = timings(seconds, lambda node: "k" if node in "ab" else "l")
    assert [(row.name, row.seconds, row.nodes) for row in kinds] == [("k", 6.0, 2), ("l", 2.0, 1)]
    assert timings({}) == []


def test_bench_prints_times_by_node_and_by_kind(inference: Path, tmp_path: Path) -> None:
    out = tmp_path / "times.json"
    arguments = ["disassemble", str(inference), "--bench", "2", "--json", str(out)]
    done = CliRunner().invoke(commands, arguments)
    assert done.exit_code == 0, done.exception
    found = json.loads(out.read_text())
    for rows in (found["nodes"], found["operations"]):
        assert sum(row["share"] for row in rows) == pytest.approx(1)
        assert [row["seconds"] for row in rows] == sorted(
            (r["seconds"] for r in rows), reverse=True
        )
    assert {"MatMul", "Relu"} <= {row["name"] for row in found["operations"]}
    assert "median of 2 runs" in done.output


def test_what_the_host_runs_is_listed_and_not_timed(tmp_path: Path) -> None:
    model = model_of([("Det", ["x"], "d"), ("Relu", ["d"], "y")], {"x": (4, 33, 33)}, ["y"])
    with pytest.warns(Warning, match="Det"):
        build(lambda: model, "emu2:mini", Board(load_target("mini")), {}, tmp_path / "in")
    done = CliRunner().invoke(commands, ["disassemble", str(tmp_path / "in")])
    assert "Det (host)" in done.output
    done = CliRunner().invoke(commands, ["disassemble", str(tmp_path / "in"), "--bench", "1"])
    assert isinstance(done.exception, PycompilerError)
    assert done.exception.code == "P0611"
    wrong = ["disassemble", str(tmp_path / "in"), "--bench", "1", "--device", "emu2:mncore2"]
    done = CliRunner().invoke(commands, wrong)
    assert isinstance(done.exception, PycompilerError)
    assert done.exception.code == "P0503"
