"""The cycle model: steps, MV occupancy, stalls at waits; expected numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

import emu2

LATENCY, RATE = 256, 16  # of an MV: cycles to its first word, then long words a cycle


def cost(text: str, spec: str = "mncore2") -> dict[str, Any]:
    """Return the report of a program."""
    return emu2.assemble(text, emu2.Spec.load(spec)).report()


@pytest.mark.parametrize(
    ("text", "steps", "stall"),
    [
        ("nop\n", 1, 0),
        ("nop/7\nlinc $lr0 $ls0\n", 8, 0),
        # Nobody waits: the MV takes no step and stalls nothing.
        ("mvp/n640i01 $d0@0 $lc0@0.0\nnop\n", 1, 0),
        ("mvp/n640i01 $d0@0 $lc0@0.0\nnop; wait i01\n", 1, LATENCY + 640 // RATE),
        # Steps before the wait are not stalled for again.
        ("mvp/n640i01 $d0@0 $lc0@0.0\nnop/10\nnop; wait i01\n", 11, LATENCY + 640 // RATE - 40),
        ("mvp/n64i01 $d0@0 $lc0@0.0\nnop/100\nnop; wait i01\n", 101, 0),
        # Two MVs from one DRAM queue for its port; their latencies overlap.
        (
            "mvp/n640i01 $d0@0 $lc0@0.0\nmvp/n640i02 $d0@0 $lc0@0.1\nnop; wait i02\n",
            1,
            LATENCY + 2 * 640 // RATE,
        ),
        # Disjoint ports: both at once.
        (
            "mvp/n640i01 $d0@0 $lc0@0.0\nmvp/n640i02 $d0@1 $lc0@1.0\n"
            "nop; wait i01\nnop; wait i02\n",
            2,
            LATENCY + 640 // RATE,
        ),
        # Every group for itself: the size counts once.
        ("mvp/n640i01 $d0 $lc0@.0\nnop; wait i01\n", 1, LATENCY + 640 // RATE),
        # PDM to L2BM: 16 long words a cycle inside a group, 8 across.
        ("mvp/n640i01 $p0@1 $lc0@1.0\nnop; wait i01\n", 1, LATENCY + 640 // 16),
        ("mvp/n640i01 $p0@0 $lc0@1.0\nnop; wait i01\n", 1, LATENCY + 640 // 8),
        ("mvb/n640i01 $p0@0 $lc0\nnop; wait i01\n", 1, LATENCY + 640 // 8),
        # The second wait for a tag finds it done.
        ("mvp/n64i01 $d0@0 $lc0@0.0\nnop; wait i01\nnop; wait i01\n", 2, LATENCY + 64 // RATE),
    ],
)
def test_cycles(text: str, steps: int, stall: int) -> None:
    found = cost(text)
    assert (found["steps"], found["stall_cycles"]) == (steps, stall)
    assert found["cycles"] == 4 * steps + stall


def test_words_count_the_whole_chip() -> None:
    found = cost("mvp/n128 $d0 $lc0@.1\nl2bmd $lc0 $lb0\nl2bmb $lc0 $lb64\nl1bmp $lb0 $lr0v\n")
    words = found["words"]
    assert found["dram_words"] == words["dram"] == {"read": 4 * 128, "written": 0}
    assert words["l2bm"] == {"read": 8 * (256 + 64), "written": 4 * 128}
    assert words["l1bm"] == {"read": 64 * 4, "written": 64 * (32 + 64)}
    assert found["busy_steps"] == {"l2bm": 2, "l1bm": 1}


def test_a_run_reports_what_the_text_says() -> None:
    spec = emu2.Spec.load("mini")
    program = emu2.assemble("mvp/n64i01 $d0@0 $lc0@0.0\nnop; wait i01\nlinc $lr0 $ls0\n", spec)
    assert emu2.Machine(spec).run(program).counters == program.report()


def test_huge_repetitions_cost_no_time() -> None:
    assert cost("nop/4000000000\n" * 3)["steps"] == 12_000_000_000
