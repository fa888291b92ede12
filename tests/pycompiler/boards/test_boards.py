"""Batches over processes, and training over ranks, against one board."""

from __future__ import annotations

import os
import pickle
import runpy
import socket
import subprocess
import sys
from math import inf
from pathlib import Path

import numpy as np
import onnx
import pytest
import ranks_program as program
import torch
from ranks_program import on_one_board

import pycompiler
from pycompiler.app import write_app
from pycompiler.boards import AppTask, DataParallel, Pipeline, Ranks, batches
from pycompiler.errors import PycompilerError

ROOT = Path(__file__).parents[3]
LONG = pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="several processes with torch")
MODEL = """<ir_version: 10, opset_import: ["": 20]>
network (float[5,6] x) => (float[5,6] y) { a = Relu(x) y = Add(a, x) }"""
X = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def task() -> AppTask:
    model = onnx.parser.parse_model(MODEL)
    return AppTask(pycompiler.partition(model, "emu2:mini", threshold=inf).app())


def test_a_task_pickles_small_and_loads_once(task: AppTask, tmp_path: Path) -> None:
    data = pickle.dumps(task)
    app = pycompiler.partition(onnx.parser.parse_model(MODEL), "emu2:mini", threshold=inf).app()
    assert len(data) < len(write_app(app)) + 500
    batches._functions.clear()
    copy = pickle.loads(data)
    for own in (task, copy, copy):
        np.testing.assert_array_equal(own({"x": X})["y"], np.maximum(X, 0) + X)
    assert len(batches._functions) == 1
    (tmp_path / "model.app").write_bytes(write_app(app))
    assert AppTask(tmp_path / "model.app")._digest == task._digest


@pytest.mark.parametrize(
    "inputs", [{}, {"z": X}, {"x": X, "z": X}, {"x": X.T}, {"x": X.astype(np.float64)}]
)
def test_wrong_batches(task: AppTask, inputs: dict[str, np.ndarray]) -> None:
    with pytest.raises(PycompilerError) as caught:
        task(inputs)
    assert caught.value.code == "P0603"


def test_no_more_functions_than_stated_are_kept(task: AppTask) -> None:
    for number in range(batches._KEPT + 2):
        other = pickle.loads(pickle.dumps(task))
        other._digest += str(number)
        other({"x": X})
    assert len(batches._functions) == batches._KEPT


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])


@LONG
def test_one_rank_trains_like_plain_torch() -> None:
    ranks = Ranks(rank=0, size=1, address="localhost", port=free_port(), timeout=60)
    try:
        losses, parameters = program.train(ranks)
        wanted, weights = on_one_board()
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
        for own, weight in zip(parameters, weights, strict=True):
            torch.testing.assert_close(own, weight, rtol=1e-4, atol=1e-5)
        model = program.network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        training = DataParallel(model, lambda m, x: m(x).sum(), optimizer, ranks, "emu2:mini")
        stage = Pipeline(model, ranks, device="emu2:mini")
        for wrong in (
            lambda: training.step(torch.ones(0, 6)),
            lambda: stage.forward(torch.ones(2, 6), micro_batches=3),
            lambda: stage.forward(torch.ones(2, 6), micro_batches=0),
        ):
            with pytest.raises(PycompilerError) as caught:
                wrong()
            assert caught.value.code == "P0812"
    finally:
        ranks.close()


def test_missing_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(PycompilerError) as caught:
        Ranks()
    assert (caught.value.code, caught.value.fields["name"]) == ("P0704", "RANK")


def start(*arguments: str | Path) -> list[subprocess.Popen[str]]:
    """Start two ranks of a script with its arguments."""
    port, started = free_port(), []
    for rank in range(2):
        facts = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        environment = {**os.environ, **{name: str(value) for name, value in facts.items()}}
        environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, *map(str, arguments)]
        started.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        )
    return started


@LONG
@pytest.mark.parametrize("mode", ["train", "stream"])
def test_two_ranks_train_like_one_board(mode: str, tmp_path: Path) -> None:
    for process in start(program.__file__, mode, tmp_path):
        process.communicate(timeout=500)
        assert process.returncode == 0
    found = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    wanted, weights = on_one_board()
    for losses, _ in found:
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
    parameters = found[0][1] + found[1][1] if mode == "stream" else found[0][1]
    for own, weight in zip(parameters, weights, strict=True):
        torch.testing.assert_close(own, weight, rtol=1e-4, atol=1e-5)
    if mode == "train":
        for own, other in zip(found[0][1], found[1][1], strict=True):
            assert torch.equal(own, other)


def test_a_rank_that_waits_alone_names_the_others() -> None:
    place = {"address": "localhost", "port": free_port()}
    with pytest.raises(PycompilerError) as caught:
        Ranks(rank=0, size=3, timeout=2.0, **place)
    assert (caught.value.code, caught.value.fields["lost"]) == ("P0811", "1, 2")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RANK", "5"),
        ("RANK", "-1"),
        ("RANK", "²"),
        ("RANK", ""),
        ("WORLD_SIZE", "0"),
        ("MASTER_PORT", "65536"),
    ],
)
def test_a_number_that_torchrun_would_not_set_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    numbers = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "29500", variable: value}
    for name, number in numbers.items():
        monkeypatch.setenv(name, number)
    with pytest.raises(PycompilerError, match=variable) as caught:
        Ranks(timeout=2.0)
    assert caught.value.code == "P0704"


@LONG
@pytest.mark.parametrize("mode", program.LOST)
def test_a_lost_rank_is_named_within_the_time_out(mode: str, tmp_path: Path) -> None:
    first, second = start(program.__file__, mode, tmp_path)
    said, _ = first.communicate(timeout=300)
    second.kill()
    second.wait()
    code, lost, seconds = said.split()
    assert (code, lost) == ("P0811", "1")
    assert float(seconds) < program.TIMEOUT


@LONG
def test_the_pipeline_of_the_examples_with_two_ranks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = ROOT / "examples" / "pipeline_on_boards.py"
    ranks = start(example)
    first, second = (process.communicate(timeout=500)[0] for process in ranks)
    assert [process.returncode for process in ranks] == [0, 0]
    variables = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}
    for name, value in {**variables, "MASTER_PORT": str(free_port())}.items():
        monkeypatch.setenv(name, value)
    runpy.run_path(str(example), run_name="__main__")
    alone = capsys.readouterr().out.splitlines()
    # Rank 0 prints the losses, the last rank what the model makes of the batch.
    for own, line in zip(first.splitlines(), alone[:3], strict=True):
        assert own.split()[:3] == line.split()[:3]
        assert float(own.split()[-1]) == pytest.approx(float(line.split()[-1]), rel=1e-5)
    assert second.splitlines() == alone[3:]
    assert len(alone) == 4


@LONG
def test_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    for name in ("batches_on_workers", "train_on_boards", "pipeline_on_boards"):
        path = ROOT / "examples" / f"{name}.py"
        assert len(path.read_text().splitlines()) <= 40
    command = [sys.executable, str(ROOT / "examples" / "batches_on_workers.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert "8 batches" in done.stdout, done.stderr
    variables = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": str(free_port())}
    os.environ.update(variables)
    try:
        for name in ("train_on_boards", "pipeline_on_boards"):
            os.environ["MASTER_PORT"] = str(free_port())
            runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
            shown = capsys.readouterr().out
            losses = [float(line.split()[-1]) for line in shown.splitlines() if "loss" in line]
            assert losses == sorted(losses, reverse=True)
            assert len(losses) == 3
    finally:
        for name in variables:
            del os.environ[name]
