"""Executors: the same outcomes in any number of workers; one that fails costs only its task."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from compiling import compiled, model_of

from pycompiler.errors import PycompilerError
from pycompiler.executors import WorkerDiedError
from pycompiler.graph.text import parse_graph
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.simulation import run as running
from pycompiler.simulation.outcome import Outcome
from pycompiler.simulation.run import executor_of, run
from pycompiler.simulation.settings import own_setting, placed
from pycompiler.simulation.task import Task, task_of

TARGET = load_target("mini")


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    nodes = [("Exp", ["x"], "a"), ("Sqrt", ["a"], "b"), ("Neg", ["b"], "c"), ("Abs", ["c"], "y")]
    model = model_of(nodes, {"x": (30, 24)}, ["y"])
    graph = parse_graph(compiled(model)[0].dumps["layout.slices.txt"])
    found = []
    for node in graph.device_nodes():
        own = own_setting(node, graph)
        there = placed(node, graph, own)
        found.append(task_of(node, there, own, TARGET.name, TARGET.digest))
    return found


@pytest.fixture(scope="module")
def wanted(tasks: list[Task]) -> dict[str, Outcome]:
    return run(tasks, TARGET, None)[0]


@pytest.mark.parametrize(("kind", "count"), [("processes", 1), ("processes", 2), ("threads", 3)])
def test_outcomes_are_the_same(
    kind: str, count: int, tasks: list[Task], wanted: dict[str, Outcome]
) -> None:
    with executor_of(kind, count) as executor:
        assert (executor is None) == (count == 1)
        found, remarks = run(tasks, TARGET, executor)
    assert (found, remarks) == (wanted, [])
    assert list(found) == [task.key for task in tasks]


class Faulty(Executor):
    """Runs calls at once, but for the first, of which it makes what a bad worker would."""

    def __init__(self, fault: Callable[[], Any]):
        self.calls, self.fault = 0, fault

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        if self.calls > 1:
            future.set_result(fn(*args, **kwargs))
            return future
        try:
            found = self.fault()
        except Exception as problem:
            future.set_exception(problem)
        else:
            if found is not Faulty:
                future.set_result(found)  # else it never ends
        return future


def fails() -> Any:
    raise WorkerDiedError("the worker has died")


@pytest.mark.parametrize(
    "fault",
    [fails, lambda: None, lambda: {"key": "x"}, lambda: b"\0", lambda: Faulty],
    ids=["dies", "nothing", "other key", "bytes", "hangs"],
)
def test_a_bad_worker_costs_only_its_task(
    fault: Callable[[], Any],
    tasks: list[Task],
    wanted: dict[str, Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patient = running.wait

    def impatient(out: Any, timeout: float, return_when: str) -> Any:
        assert timeout == 10.0
        return patient(out, timeout=0.5, return_when=return_when)

    # The other tasks are done at once.
    monkeypatch.setattr(running, "wait", impatient)
    executor = Faulty(fault)
    found, remarks = run(tasks, TARGET, executor, seconds=8.0)
    assert executor.calls == len(tasks)
    assert (found, remarks) == (wanted, [])


def test_a_task_that_fails_twice_is_estimated(tasks: list[Task]) -> None:
    class Broken(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise RuntimeError("closed")

    wrong = Task(tasks[0].node, tasks[0].values, tasks[0].setting, TARGET.name, "another digest")
    found, remarks = run([wrong, tasks[1]], TARGET, Broken())
    assert found[wrong.key].estimated
    assert found[wrong.key].cycles > 0
    assert not found[tasks[1].key].estimated
    assert len(remarks) == 1
    assert "closed" in remarks[0]
    assert "another machine" in remarks[0]


@pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="starts pools; EMU2_LONG=1")
def test_pools_of_the_standard_library(tasks: list[Task], wanted: dict[str, Outcome]) -> None:
    pools: list[Executor] = [
        ThreadPoolExecutor(2),
        ProcessPoolExecutor(2, mp_context=get_context("spawn")),
    ]
    for pool in pools:
        with pool:
            assert run(tasks, TARGET, pool) == (wanted, [])
    # A worker that dies breaks the whole pool: every task runs again, alone.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(os._exit, 1)
        assert run(tasks, TARGET, pool) == (wanted, [])


@pytest.mark.skipif(not os.environ.get("EMU2_LONG"), reason="starts a cluster; EMU2_LONG=1")
def test_a_cluster(tasks: list[Task], wanted: dict[str, Outcome]) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
        executor_of(cluster.scheduler_address, 2) as executor,
    ):
        assert run(tasks, TARGET, executor) == (wanted, [])


def test_a_cluster_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    client = distributed.Client

    def impatient(address: str, timeout: float, **facts: Any) -> Any:
        assert timeout > 1
        return client(address, timeout=1, **facts)

    monkeypatch.setattr(distributed, "Client", impatient)
    with pytest.raises(PycompilerError) as caught, executor_of("tcp://127.0.0.1:1", 2):
        pass
    assert caught.value.code == "P0703"


def test_the_option_takes_any_executor() -> None:
    with ThreadPoolExecutor(1) as pool:
        for legal in ("processes", "threads", "tcp://host:1", pool):
            assert parse_options({"executor": legal}).executor == legal
    with pytest.raises(PycompilerError) as caught:
        parse_options({"executor": "cloud"})
    assert caught.value.code == "P0702"
