"""The debugger at the ends of a run: before its first move, and behind its last statement."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import emu2

MINI = emu2.Spec.load("mini")


def test_a_breakpoint_at_the_start_stops_a_run_that_has_not_begun() -> None:
    run = emu2.Debugger(emu2.assemble("nop\nnop\n", MINI))
    run.add("line 1")
    assert [run.run()["reason"] for _ in range(2)] == ["breakpoint", "end"]
    assert [run.run(back=True)["reason"], run.run()["reason"]] == ["breakpoint", "end"]
    other = emu2.Debugger(emu2.assemble("nop\nnop\n", MINI))
    other.add("line 1")
    # Who asked to stand there has seen it.
    assert [other.go(0)["reason"], other.run()["reason"]] == ["start", "end"]


@pytest.mark.parametrize(
    "call",
    [
        lambda run: run.go(4),
        lambda run: run.differences(0, 4),
        lambda run: run.differences(4, 0),
        lambda run: run.at_line(4),
        lambda run: run.at_cycle(1 << 40),
    ],
)
def test_positions_behind_the_end_are_refused(call: Callable[[emu2.Debugger], object]) -> None:
    run = emu2.Debugger(emu2.assemble("nop\nnop\nnop\n", MINI))
    with pytest.raises(emu2.EmulatorError) as caught:
        call(run)
    assert (caught.value.code, run.position) == ("D0002", 0)
    assert run.go(3)["reason"] == "end"
