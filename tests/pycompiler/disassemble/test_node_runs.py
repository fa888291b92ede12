"""Functions that run node by node: logs, checks, and the same bits with and without them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from compiling import context, model_of
from torch import nn

from pycompiler.app.reader import read_app
from pycompiler.build import build, load_function
from pycompiler.disassemble.node_runs import NodeRuns, Record, Safety, log_lines
from pycompiler.errors import PycompilerError
from pycompiler.graph.text import parse_graph
from pycompiler.machine import load_target
from pycompiler.mlsdk import MNCoreSGD, set_tensor_name
from pycompiler.model_commands import commands
from pycompiler.pfvm.session import Array
from pycompiler.runtime.device import Board

MATRIX = np.linspace(-1, 1, 24 * 10, dtype=np.float32).reshape(24, 10)
X = np.random.default_rng(2).standard_normal((9, 24)).astype(np.float32)


@pytest.fixture(scope="module", params=["float", "mixed"])
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    nodes = [
        *(("MatMul", ["x", "w"], "h"), ("Relu", ["h"], "r"), ("MatMul", ["r", "v"], "m")),
        *(
            ("Softmax", ["m"], "s"),
            ("Greater", ["s", "limit"], "t"),
            ("Where", ["t", "s", "m"], "y"),
        ),
    ]
    constants = {"w": MATRIX, "v": MATRIX[:10], "limit": np.full(1, 0.1, np.float32)}
    model = model_of(nodes, {"x": (9, 24)}, ["y"], constants)
    folder = tmp_path_factory.mktemp("network") / request.param
    options = {"float_dtype": request.param}
    build(lambda: model, "emu2:mini", Board(load_target("mini")), options, folder)
    return folder


def runner(folder: Path, inputs: dict[str, Array]) -> NodeRuns:
    app = read_app((folder / "model.app").read_bytes(), "model.app")
    graph = parse_graph((folder / "l3ir.txt").read_text())
    return NodeRuns(folder, app, graph, Board(load_target("mini")), inputs)


def output(runs: NodeRuns) -> bytes:
    place = runs.function.place("y", output=True)
    assert place is not None
    return place.read().tobytes()


def test_safety_changes_checks_and_no_bit(network: Path) -> None:
    wanted = load_function(network, Board(load_target("mini"))).run({"x": X})["y"].values()
    made = []
    for safety in Safety:
        runs = runner(network, {"x": X})
        records = [record for number in range(2) for record in runs.run(number, safety)]
        assert output(runs) == wanted.tobytes(), safety
        assert not any(record.failed for record in records)
        assert "MatMul" not in {
            r.node.op for r in records if r.node.name in runs.checks.not_compared
        }
        made.append([(r.arguments, r.results) for r in records])
    for other in made[1:]:
        for (arguments, results), (own_arguments, own_results) in zip(made[0], other, strict=True):
            for name, array in {**arguments, **results}.items():
                mine = {**own_arguments, **own_results}[name]
                assert array.tobytes() == mine.tobytes(), name


def test_inputs_that_are_not_given_are_zeros(network: Path) -> None:
    records = list(runner(network, {}).run(0, Safety.EVERY_RUN))
    assert not any(record.failed for record in records)
    (download,) = (record for record in records if "x" in record.arguments)
    assert not np.any(download.arguments["x"])


def test_records_are_the_values_of_the_nodes(network: Path) -> None:
    runs = runner(network, {"x": X})
    records = list(runs.run(0, Safety.NEVER))
    near = 1e-4 if network.name == "float" else 5e-2
    h = X @ MATRIX
    relu = next(record for record in records if record.node.op == "Relu")
    (given,), (made,) = relu.arguments.values(), relu.results.values()
    np.testing.assert_allclose(given, h, atol=near * np.abs(h).max())
    assert (made == np.maximum(given, 0)).all()
    # What one node makes is what the next one gets.
    last: dict[str, bytes] = {}
    for record in records:
        for name, array in record.arguments.items():
            assert last.get(name, array.tobytes()) == array.tobytes(), name
        last |= {name: array.tobytes() for name, array in record.results.items()}
    lines = list(log_lines(relu))
    assert lines[0].startswith(f"run 0 #{relu.number} Relu {relu.node.name}: ")
    assert f"float32[9, 10] from {given.min():.7g} to {given.max():.7g}" in lines[1]


def broken(folder: Path, op: str, code: str, safety: Safety, count: int = 2) -> list[Record]:
    """Run with other code for the nodes of an operator; return the records with problems."""
    runs = runner(folder, {"x": X})
    target = load_target("mini")
    graph = parse_graph((folder / "l3ir.txt").read_text())
    for place, node in enumerate(graph.nodes):
        if node.op == op:
            value = graph.values[node.outputs[0]]
            bank = "mn"[value.location.value == "LM1"]
            first = value.addr or 0
            words = range(first, first + (value.num_lw or 0))
            made = code.format(every="\n".join(f"lpassa $lr0 $l{bank}{2 * word}" for word in words))
            runs._programs[place] = target.assemble(made, "node.vsm")
    found = [record for number in range(count) for record in runs.run(number, safety)]
    return [record for record in found if record.failed]


def test_wrong_code_is_found_at_its_node(network: Path) -> None:
    ones = 'imm f"1" $lr0\nnop/2\n{every}'
    infinite = 'imm i"0x7F800000" $lr0\nnop/2\n{every}'
    for code, problem in (
        (ones, "differ from the host's (1.0 on the device"),
        (infinite, "infinite"),
    ):
        (first, second) = broken(network, "Relu", code, Safety.EVERY_RUN)
        assert (first.run, second.run) == (0, 1)
        assert first.node.op == "Relu"
        assert problem in first.failed[0].problem
        assert first.failed[0].diagnostic.code == "P0612"
        assert first.failed[0].problem in list(log_lines(first))[-1]
        assert [record.run for record in broken(network, "Relu", code, Safety.FIRST_RUN)] == [0]
        assert broken(network, "Relu", code, Safety.NEVER) == []
    nothing = broken(network, "MNCoreDownload", "nop", Safety.EVERY_RUN, count=1)
    assert "nothing has written, first [0, 0]" in nothing[0].failed[0].problem


def test_the_command_logs_and_checks(network: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=X)
    own = ["disassemble", str(network), "-i", str(tmp_path / "in.npz"), "--safety", "2"]
    done = CliRunner().invoke(commands, [*own, "--bench", "2", "--log", str(tmp_path / "a.txt")])
    assert done.exit_code == 0, done.exception
    assert "nodes checked in 1 of 2 runs, 0 failed" in done.output
    text = (tmp_path / "a.txt").read_text()
    assert "run 0 #0 " in text
    assert "run 1 #0 " in text
    done = CliRunner().invoke(commands, [*own, "--log", str(tmp_path / "a.npz")])
    assert done.exit_code == 0, done.exception
    with np.load(tmp_path / "a.npz") as arrays:
        (name,) = (key for key in arrays.files if key.startswith("0/0/in/"))
        np.testing.assert_allclose(arrays[name], X, rtol=2.0**-9)
    np.savez(tmp_path / "in.npz", z=X)
    done = CliRunner().invoke(commands, own)
    assert isinstance(done.exception, PycompilerError)
    assert done.exception.code == "P0603"


def test_training_goes_on_from_run_to_run(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = nn.Linear(7, 3)
    optimizer = MNCoreSGD(model.parameters(), lr=0.1)
    # What went before: the oldest is read, the others are copies that no operator reads.
    past = [torch.zeros(3) for _ in range(3)]
    shared = context("emu2:mini")
    for place, tensor in enumerate(past):
        set_tensor_name(tensor, f"past{place}")
        shared.register_buffer(tensor)
    shared.registry.register("model0", model)
    shared.registry.register("optimizer0", optimizer)

    def train(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(d["x"]) + past[2], d["y"])
        loss.backward()
        optimizer.step()
        for new, old in ((past[1], past[2]), (past[0], past[1]), (d["now"], past[0])):
            old.copy_(new)
        return {"y": loss}

    inputs = {"x": torch.randn(5, 7), "y": torch.randn(5, 3), "now": torch.ones(3)}
    shared.compile(train, inputs, tmp_path / "out")
    arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
    function = load_function(tmp_path / "out", Board(load_target("mini")))
    wanted = [function.run(arrays)["y"].values().tobytes() for _ in range(5)]
    assert len(set(wanted)) == 5
    runs, made = runner(tmp_path / "out", arrays), []
    for number in range(5):
        records = runs.run(number, Safety.EVERY_RUN)
        assert [one for record in records for one in record.failed] == []
        made.append(output(runs))
    assert made == wanted
