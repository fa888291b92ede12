"""Runs tasks on an executor. Whatever becomes of a worker, every task gets its outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager, suppress
from typing import Any

from ..executors import EXECUTORS, PROCESSES, opened
from ..machine import Target
from .estimate import estimated
from .outcome import Outcome, outcome_of
from .task import Task, simulate

#: Seconds that one simulation may take.
SECONDS = 120.0
#: How many tasks are handed out for each answer that comes back.
_AHEAD = 64


@contextmanager
def executor_of(wanted: str | Executor, count: int) -> Iterator[Executor | None]:
    """Give the executor that the options ask for; None stands for this process.

    ``wanted`` is ``processes``, ``threads``, the address of a Dask scheduler, or an executor. P0703
    if Dask is missing or its scheduler does not answer.
    """
    if wanted in EXECUTORS and count < 2:
        yield None
    else:
        with opened(wanted, count, SECONDS) as executor:
            yield executor


def run(
    tasks: Sequence[Task],
    target: Target,
    executor: Executor | None,
    done: Callable[[], None] = lambda: None,
    seconds: float = SECONDS,
) -> tuple[dict[str, Outcome], list[str]]:
    """Return the outcome of each task by its key, and remarks about tasks that failed.

    A task whose worker died, hung, or answered nonsense runs again, alone, in a process of its own.
    If it fails again, its outcome is an estimate. ``done`` is called after every task.
    """
    found: dict[str, Outcome] = {}
    lost: dict[str, str] = {}
    if executor is None:
        for task in tasks:
            found[task.key] = outcome_of(simulate(task), task.key)
            done()
        return found, []
    for task, answer, problem in _answers(tasks, executor, seconds):
        reason = problem
        if not problem:
            try:
                found[task.key] = outcome_of(answer, task.key)
            except (ValueError, TypeError) as wrong:
                reason = f"the worker answered nonsense: {wrong}"
        if reason:
            lost[task.key] = reason
        else:
            done()
    remarks: list[str] = []
    again = [task for task in tasks if task.key in lost]
    if again:
        with opened(PROCESSES, 1, seconds) as alone:
            for task in again:
                found[task.key] = _second_try(task, alone, target, lost[task.key], remarks)
                done()
    return {task.key: found[task.key] for task in tasks}, remarks


def _second_try(
    task: Task, alone: Executor, target: Target, first: str, remarks: list[str]
) -> Outcome:
    try:
        return outcome_of(alone.submit(simulate, task).result(), task.key)
    except Exception as problem:  # whatever a worker raises
        remarks.append(f"{task.node.op} {task.setting.text}: estimated ({first}; then {problem})")
        return estimated(task, target)


def _answers(
    tasks: Sequence[Task], executor: Executor, seconds: float
) -> Iterator[tuple[Task, Any, str]]:
    """Yield each task with the answer of its worker, or with the reason why there is none.

    Tasks with many words come first: then no worker is left with a long one at the end. If no task
    ends within the time of one, those that are out are given up.
    """
    waiting = sorted(tasks, key=_words)
    out: dict[Future[Any], Task] = {}
    while waiting or out:
        while waiting and len(out) < _AHEAD:
            task = waiting.pop()
            try:
                out[executor.submit(simulate, task)] = task
            except Exception as problem:  # a broken or closed executor
                yield task, None, f"the executor takes no tasks ({problem})"
        # The margin is for executors that stop a call themselves.
        ended, _ = wait(out, timeout=seconds * 1.25, return_when=FIRST_COMPLETED)
        if not ended:
            for future, task in out.items():
                with suppress(Exception):
                    future.cancel()
                yield task, None, "the worker has hung"
            out.clear()
        for future in ended:
            task = out.pop(future)
            failure = RuntimeError("cancelled") if future.cancelled() else future.exception()
            yield task, None if failure else future.result(), _named(failure)


def _words(task: Task) -> int:
    return sum(value.num_lw or 0 for value in task.values)


def _named(failure: BaseException | None) -> str:
    return "" if failure is None else f"{type(failure).__name__}: {failure}"
