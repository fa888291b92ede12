"""Tasks on executors: every one has its result, whatever happens to the others."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pycompiler import executors
from pycompiler.errors import PycompilerError
from pycompiler.executors import DIED, PROCESSES, THREADS, TIME, Processes, WorkerDiedError, Workers


def task(what: str, number: int) -> int:
    if what == "die":
        os._exit(3)
    if what == "hang":
        time.sleep(600)
    if what == "raise":
        raise ValueError(number)
    return number * number


class StubbornError(Exception):
    def __init__(self, count: int, what: str):
        super().__init__(f"{count} {what}")


def fail_stubbornly() -> None:
    raise StubbornError(2, "words")


def results(workers: Workers, whats: list[str], seconds: float | None = None) -> list[Any]:
    tasks = [(what, number) for number, what in enumerate(whats)]
    deadline = None if seconds is None else time.monotonic() + seconds
    with workers:
        found = dict(workers.run(task, tasks, deadline))
    assert sorted(found) == list(range(len(whats)))
    return [repr(f) if isinstance(f := found[n], Exception) else f for n in sorted(found)]


@pytest.mark.parametrize("executor", [PROCESSES, THREADS])
def test_every_task_has_its_result(executor: str) -> None:
    for count in (1, 2):
        wanted = [0, "ValueError(1)", 4, 9]
        assert results(Workers(executor, count), ["", "raise", "", ""]) == wanted
    assert results(Workers(executor), []) == []


def test_a_process_that_dies_costs_its_own_task_alone() -> None:
    assert results(Workers(PROCESSES, 2), ["", "die", "", "die", "", ""]) == [
        0,
        DIED,
        4,
        DIED,
        16,
        25,
    ]


def test_processes_die_and_hang_alone() -> None:
    workers = Processes(2, seconds=3.0)
    try:
        dies = workers.submit(os._exit, 3)
        hangs = workers.submit(time.sleep, 600)
        prints = workers.submit(print, "what a call prints is no answer")
        works = [workers.submit(os.getpid) for _ in range(3)]
        with pytest.raises(WorkerDiedError):
            dies.result()
        with pytest.raises(TimeoutError):
            hangs.result()
        assert prints.result() is None
        assert os.getpid() not in {one.result() for one in works}
        with pytest.raises(pickle.PicklingError):
            workers.submit(eval, "lambda: 3").result()
        # An exception that cannot be rebuilt from its pickle comes as text.
        with pytest.raises(RuntimeError, match="StubbornError: 2 words"):
            workers.submit(fail_stubbornly).result()
        raises = workers.submit(int, "x")
        with pytest.raises(ValueError, match="invalid literal"):
            raises.result()
        # A worker that dies between two calls costs none of them.
        for one in works:
            with suppress(ProcessLookupError):
                os.kill(one.result(), signal.SIGKILL)
        assert [workers.submit(abs, -n).result() for n in range(4)] == [0, 1, 2, 3]
    finally:
        workers.shutdown(cancel_futures=True)


def test_a_task_that_hangs_ends_with_the_time() -> None:
    start = time.monotonic()
    assert results(Workers(PROCESSES, 2), ["", "hang", "", "hang"], 4) == [0, TIME, 4, TIME]
    assert time.monotonic() - start < 60
    assert not [one for one in threading.enumerate() if one.name == Processes.__name__]


def test_the_executor_of_the_caller() -> None:
    with ThreadPoolExecutor(2) as pool:
        workers = Workers(pool)
        assert workers.name == "ThreadPoolExecutor"
        assert results(workers, ["", "raise", ""]) == [0, "ValueError(1)", 4]
        assert pool.submit(task, "", 5).result() == 25  # it is still open
    for wrong in ("gpu", 3, None):
        with pytest.raises(PycompilerError) as caught:
            Workers(wrong)  # type: ignore[arg-type]
        assert caught.value.code == "P0704"


def test_a_script_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "from pathlib import Path\n"
        "with open('runs', 'a') as file:\n"
        "    file.write('x')\n"
        "from pycompiler.executors import Workers\n"
        "with Workers(count=1) as workers:\n"
        "    print(list(workers.run(divmod, [(7, 2)])))\n"
    )
    root = Path(executors.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[(0, (3, 1))]\n", "")
    assert (tmp_path / "runs").read_text() == "x"
