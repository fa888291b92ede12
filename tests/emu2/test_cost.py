"""The cycle model: steps, MV occupancy, stalls at waits. Expected numbers are computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import emu2

LATENCY, RATE = 256, 16  # of an MV: cycles to its first word, then long words per cycle


def cost(text: str, spec: str = "mncore2") -> dict[str, Any]:
    """Return the report of a program."""
    return emu2.assemble(text, emu2.Spec.load(spec)).report()


@pytest.mark.parametrize(
    ("text", "steps", "stall"),
    [
        ("nop\n", 1, 0),
        ("nop/7\nlinc $lr0 $ls0\n", 8, 0),
        # Without a wait, the MV takes no step and causes no stall.
        ("mvp/n640i01 $d0@0 $lc0@0.0\nnop\n", 1, 0),
        ("mvp/n640i01 $d0@0 $lc0@0.0\nnop; wait i01\n", 1, LATENCY + 640 // RATE),
        # The steps before the wait shorten the stall.
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
        # Every group moves its own words: the size counts once.
        ("mvp/n640i01 $d0 $lc0@.0\nnop; wait i01\n", 1, LATENCY + 640 // RATE),
        # PDM to L2BM: 16 long words a cycle inside a group, 8 between groups.
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


@pytest.mark.parametrize(
    ("text", "ports", "busy", "end"),
    [
        ("nop\n", {}, 0, 0),
        # 640 words at 16 a cycle through DRAM 1 and L2BM 2.1; the latency holds no port.
        ("mvp/n640 $d0@1 $lc0@2.1\n", {"dram1": 40, "l2bm2.1": 40}, 256 + 40, 256 + 40),
        # The second waits for DRAM 0 from cycle 0 to 40; then its latency begins.
        (
            "mvp/n640 $d0@0 $lc0@0.0\nmvp/n640 $d0@0 $lc0@0.1\n",
            {"dram0": 80, "l2bm0.0": 40, "l2bm0.1": 40},
            256 + 80,
            256 + 80,
        ),
        # Far apart: after 1000 steps the first MV is done.
        (
            "mvp/n640 $d0@0 $lc0@0.0\nnop/1000\nmvp/n640 $d0@0 $lc0@0.0\n",
            {"dram0": 80, "l2bm0.0": 80},
            2 * (256 + 40),
            4000 + 256 + 40,
        ),
        # The third queues for 80 cycles; the fourth, issued after it, starts at once.
        (
            "mvp/n640 $d0@0 $lc0@0.0\nmvp/n640 $d0@0 $lc0@0.0\nmvp/n640 $d0@0 $lc0@0.0\n"
            "mvp/n64 $d0@3 $lc0@3.0\n",
            {"dram0": 120, "l2bm0.0": 120, "dram3": 4, "l2bm3.0": 4},
            256 + 120,
            256 + 120,
        ),
        # A broadcast occupies its PDM and all eight L2BMs, 8 words a cycle.
        (
            "mvb/n64 $p0@1 $lc0\n",
            {"pdm1": 8, **{f"l2bm{g}.{q}": 8 for g in range(4) for q in range(2)}},
            256 + 8,
            256 + 8,
        ),
    ],
)
def test_mv_occupancy(text: str, ports: dict[str, int], busy: int, end: int) -> None:
    found = cost(text)
    assert (found["port_cycles"], found["mv_busy_cycles"], found["mv_end"]) == (ports, busy, end)


def test_waits_are_counted() -> None:
    text = "nop; wait i05\nmvp/n64i05 $d0@0 $lc0@0.0\nnop; wait i05\nnop; wait i05\n"
    found = cost(text)
    assert (found["waits"], found["stalled_waits"], found["host_tags"]) == (3, 1, [5])


def test_busy_steps_by_unit() -> None:
    text = """
        lpassa $lm0v $nowrite; dvmulu $ln0v $ln0v $nowrite
        dvmulu $lr0v $lr0v $nowrite; dmwrite $lr0v $lx0
        l1bmd $lb0 $lm0v; l2bmb $lc0 $lb64
        nop/5
    """
    assert cost(text)["busy_steps"] == {"alu": 1, "mau": 2, "mwrite": 1, "l1bm": 1, "l2bm": 1}


MV_RATES = """
[[transfer]]
name = "mvtest"
slot = "mv"
level = "chip"
doc = "One form of each kind of rate."
evidence = "guess"
[[transfer.form]]
name = "distribute"
unit = "group*mv_block"
source = { operand = "pdm", selectors = ["group"], align = "mv_block" }
destination = { operand = "dram", selectors = [], align = "mv_block" }
RATE
loop = { s = "group", k = "mv_block" }
from = { group = "src_group", addr = "i*group*mv_block + s*mv_block + k" }
to = { group = "s", addr = "i*mv_block + k" }
[[transfer.example]]
text = "mvtest/n64 $p0@0 $d0"
expect = { "$lm0n0c0b0m0p0" = ["0000000000000000"] }
"""


@pytest.mark.parametrize(
    ("rate", "cycles"),
    [
        # 640 words leave the PDM, 160 enter each DRAM; the slower side decides.
        ("", 640 // 16),
        ("throughput = { source = 8 }", 640 // 8),
        ("throughput = { destination = 1 }", 160),
        ("throughput = { source = 8, destination = 2 }", 80),
        ("throughput = { same_group = 32, across = 10 }", 64),
    ],
)
def test_rates_of_each_side(rate: str, cycles: int, tmp_path: Path) -> None:
    spec = tmp_path / "rates"
    spec.mkdir()
    head = 'extends = "mncore2"\n[machine]\nname = "rates"\n'
    (spec / "rates.toml").write_text(head + MV_RATES.replace("RATE", rate))
    found = cost("mvtest/n640i01 $p0@0 $d0\nnop; wait i01\n", str(spec))
    assert found["stall_cycles"] == LATENCY + cycles


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ("{ source = 8, destination = 4 }", "64 words at 8 a cycle and 16 at 4 differ"),
        ("{ same_group = 8 }", "give `same_group` and `across`"),
        ("{ same_group = 8, across = 8, source = 8 }", "give `same_group` and `across`"),
        ("{ source = 0 }", "rates are at least 1"),
        ("{}", "give `same_group` and `across`"),
    ],
)
def test_rates_that_contradict_are_refused(rate: str, message: str, tmp_path: Path) -> None:
    head = 'extends = "mncore2"\n[machine]\nname = "rates"\n'
    text = head + MV_RATES.replace("RATE", f"throughput = {rate}")
    (tmp_path / "rates.toml").write_text(text)
    with pytest.raises(emu2.EmulatorError, match=message) as refused:
        emu2.Spec.load(str(tmp_path))
    assert refused.value.code == "S0006"


def test_a_run_reports_what_the_text_says() -> None:
    spec = emu2.Spec.load("mini")
    program = emu2.assemble("mvp/n64i01 $d0@0 $lc0@0.0\nnop; wait i01\nlinc $lr0 $ls0\n", spec)
    assert emu2.Machine(spec).run(program).counters == program.report()


def test_stalls_name_their_lines() -> None:
    """Lines count from 1, comments and empty lines too; a wait that does not stall is left out."""
    text = (
        "# 640 long words at 16 a cycle\nmvp/n640i01 $d0@0 $lc0@0.0\nmvp/n640i02 $d0@1 $lc0@1.0\n"
        "\nnop/10\nlinc $lr0 $ls0; wait i01\nnop; wait i01\nmvp/n64i03 $d0@0 $lc0@0.0\n"
        "nop; wait i02\nnop; wait i03\n"
    )
    program = emu2.assemble(text, emu2.Spec.load("mncore2"))
    # The second MV ended with the first. The third is issued after the step of line 7 and begins
    # at once, so the step of line 9 shortens its stall.
    assert program.stalls() == [
        (6, LATENCY + 640 // RATE - 4 * 10),
        (10, LATENCY + 64 // RATE - 4),
    ]
    assert sum(cycles for _, cycles in program.stalls()) == program.report()["stall_cycles"]
    assert "stalls" not in program.report()
    assert emu2.assemble("nop/3\n", emu2.Spec.load("mncore2")).stalls() == []


def test_huge_repetitions_cost_no_time() -> None:
    assert cost("nop/4000000000\n" * 3)["steps"] == 12_000_000_000
