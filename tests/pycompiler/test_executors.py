"""Tasks on executors: every one has its result, whatever happens to the others."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pycompiler import executors
from pycompiler.errors import PycompilerError
from pycompiler.executors import DIED, PROCESSES, THREADS, TIME, Workers


def task(what: str, number: int) -> int:
    if what == "die":
        os._exit(3)
    if what == "hang":
        time.sleep(600)
    if what == "raise":
        raise ValueError(number)
    return number * number


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


def test_a_task_that_hangs_ends_with_the_time() -> None:
    start = time.monotonic()
    assert results(Workers(PROCESSES, 2), ["", "hang", "", "hang"], 4) == [0, TIME, 4, TIME]
    assert time.monotonic() - start < 60
    assert multiprocessing.active_children() == []


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
    root = Path(executors.__file__).parents[1]
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
