"""The debugger: every position, however it is reached, is the state of the program cut there."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emu2

MINI = emu2.Spec.load("mini")
ROOT = Path(__file__).parents[2]
# Two units at every upper level.
TREE_PATH = str(ROOT / "emu2" / "tests" / "naive" / "tree.toml")
TREE = emu2.Spec.load(TREE_PATH)
VECTORS = sorted((Path(__file__).parents[1] / "data" / "vectors").glob("*.vsm"))


def state(reader: emu2.Machine | emu2.Debugger) -> dict[str, np.ndarray]:
    """All memories; of DRAM the first words."""
    return {
        name: reader.read(name, count=min(memory["words"], 1 << 14))
        for name, memory in reader.spec.memories.items()
    }


def is_statement(line: str) -> bool:
    words = [part.strip().split(" ")[0] for part in line.split("#", 1)[0].split(";")]
    return any(word and not word.startswith("mask") and word != "mvnop" for word in words)


def cut(text: str, position: int) -> str:
    """The program without its statements from number ``position`` on."""
    kept: list[str] = []
    for line in text.splitlines():
        if is_statement(line):
            position -= 1
        if position < 0:
            break
        kept.append(line)
    return "\n".join(kept) + "\nnop\n"


@cache
def programs() -> list[str]:
    """The test programs that run on mini."""
    found = []
    for path in VECTORS:
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            emu2.Machine(MINI).run(emu2.assemble(text, MINI))
        except emu2.Emu2Error:
            continue
        found.append(text)
    assert len(found) > 50
    return found


def drawn(seed: int) -> str:
    """A program of some vectors, one behind the other."""
    rng = random.Random(seed)
    return "\n".join(rng.choice(programs()) + "\nmask 0" for _ in range(rng.randint(1, 5))) + "\n"


@pytest.mark.parametrize(
    ("seed", "every", "room"),
    [(seed, seed % 4 or None, (1 << 18) * (seed % 3)) for seed in range(16)],
)
def test_every_position_is_the_program_cut_there(seed: int, every: int | None, room: int) -> None:
    text = drawn(seed)
    run = emu2.Debugger(emu2.assemble(text, MINI), room=room, every=every)
    rng = random.Random(seed)
    for _ in range(8):
        position = rng.randint(0, run.statements)
        assert run.go(position)["error"] is None
        assert run.position == position
        machine = emu2.Machine(MINI)
        machine.run(emu2.assemble(cut(text, position), MINI))
        ours, theirs = state(run), state(machine)
        for name, words in ours.items():
            np.testing.assert_array_equal(words, theirs[name], err_msg=f"{name} at {position}")


@pytest.mark.parametrize("every", [1, 7, None])
def test_every_unit_of_a_tree_goes_back(every: int | None) -> None:
    command = [sys.executable, "examples/chip_sum.py", "--print", "--spec", TREE_PATH]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    start = emu2.Machine(TREE)
    start.write("pdm", np.arange(1, 1 + (1 << 12), dtype=np.uint64))
    run = emu2.Debugger(emu2.assemble(text, TREE), start, every=every)
    run.run()
    for position in random.Random(every).sample(range(run.statements), 4):
        run.go(position)
        machine = emu2.Machine(TREE)
        machine.write("pdm", np.arange(1, 1 + (1 << 12), dtype=np.uint64))
        machine.run(emu2.assemble(cut(text, position), TREE))
        ours, theirs = state(run), state(machine)
        for name, words in ours.items():
            np.testing.assert_array_equal(words, theirs[name], err_msg=f"{name} at {position}")


def test_differences_name_their_units() -> None:
    places: list[tuple[str, str, int, dict[str, int]]] = [
        ("lm1", "n1c0b1m2p3", 77, {"group": 1, "l2b": 0, "l1b": 1, "mab": 2, "pe": 3}),
        ("l1bm", "n0c1b1", 8, {"group": 0, "l2b": 1, "l1b": 1}),
        ("l2bm", "n1c1", 9, {"group": 1, "l2b": 1}),
        ("dram", "n1", 12345, {"group": 1}),
    ]
    machine = emu2.Machine(TREE)
    for name, _, addr, units in places:
        machine.write(name, np.array([1], np.uint64), addr=addr, **units)
    program = emu2.assemble("nop\n", TREE)
    found = emu2.Debugger(program).parting(emu2.Debugger(program, machine))
    assert found is not None
    told = [(word["memory"], word["unit"], word["addr"]) for word in found["words"]]
    assert sorted(told) == sorted((name, unit, addr) for name, unit, addr, _ in places)


def stops(run: emu2.Debugger) -> list[tuple[int, list[int]]]:
    found = []
    while (stop := run.run())["reason"] == "breakpoint":
        found.append((stop["position"], stop["breakpoints"]))
    assert stop["reason"] == "end"
    return found


BREAKPOINTS = (
    "when lm0[0] != 0",
    "when grf0[0:4].f > 0.5 or omr[4] != 0",
    "when aluf[0].i[0] of p1 < 0",
    "write lm0[0:4]",
    "write lm1 [2] of n0c0b1",
    "write omr[4:8]",
    "write l1bm[0:64]",
    "infinity",
    "flag",
    "overflow",
    "hazard",
)


# In the last two, an image stands where two breakpoints stop.
@pytest.mark.parametrize("seed", [*range(12), 1092, 1145])
def test_going_back_finds_the_stops_of_going_forwards(seed: int) -> None:
    rng = random.Random(seed)
    run = emu2.Debugger(emu2.assemble(drawn(seed), MINI), every=rng.choice([None, 1, 2, 5]))
    for text in rng.sample(BREAKPOINTS, 3):
        run.add(text)
    run.add(f"line {rng.randint(1, run.line_of(run.statements))}")
    forwards = stops(run)
    backwards = []
    while (stop := run.run(back=True))["reason"] == "breakpoint":
        backwards.append((stop["position"], stop["breakpoints"]))
    assert (stop["reason"], run.position) == ("start", 0)
    # The end is where the way back begins: a stop there does not count.
    assert backwards[::-1] == [found for found in forwards if found[0] < run.statements]


@pytest.mark.parametrize("seed", range(8))
def test_watched_runs_end_like_plain_ones(seed: int) -> None:
    """Statements that run alone, because a breakpoint looks at them, do what they do in regions."""
    program = emu2.assemble(drawn(seed), MINI)
    plain, watched = emu2.Debugger(program), emu2.Debugger(program)
    for text in BREAKPOINTS:
        watched.add(text)
    stops(watched)
    plain.run()
    ours, theirs = state(watched), state(plain)
    for name, words in ours.items():
        np.testing.assert_array_equal(words, theirs[name], err_msg=name)


ONE = "d set $lm0 1 3F8000003F800000\n"
HUGE = "d set $lm0n0c0b1m2p3 1 7F0000007F000000\n"

# Program, breakpoint, positions of its stops, and words of the first stop's text.
CASES: list[tuple[str, str, list[int], str]] = [
    (HUGE + "nop\nfvmul $lm0v $lm0v $lr0v\n", "infinity", [3], "mauf[0]: 0x7f8"),
    (HUGE + "nop\nfvmul $lm0v $lm0v $nowrite\n", "infinity", [3], "n0c0b1m2p3"),
    (HUGE + "nop\nfvmul $lm0v $lm0v $lr0v; noforward\n", "infinity", [3], "n0c0b1m2p3"),
    (ONE + "nop\nfvmul $lm0v $lm0v $lr0v\n", "infinity", [], ""),
    ("lpassa $ls0v $omr1\n", "flag", [1], "omr[4]"),
    (ONE + "nop\nlsub $lm0v $lm0v $omr2\n", "flag", [3], "omr[8]"),
    (HUGE + "nop\nfftoi $lm0v $lr0v\n", "overflow", [3], "1.70141e+38"),
    (ONE + "nop\nfftoi $lm0v $lr0v\n", "overflow", [], ""),
    (
        "lpassa $lr0v $lm16v\nlpassa $lr0v $lm8v\nlpassa $lr0v $lm8v\n",
        "write lm0[5]",
        [2, 3],
        "lm0[5]",
    ),
    ("lpassa $lr0v $lm8v/1000\n", "write lm0[4:8]", [1], "lm0[4]"),
    ("lpassa $lr0v $lm8v/1000\n", "write lm0[5:8]", [], ""),
    ("nop\nlpassa $lr0v $omr1\nlpassa $lr0v $lm8v/$imr1\n", "write lm0[4:8]", [3], "lm0[4]"),
    (ONE + "d set $lm0n0c0b0m0p0 1 0000000000000000\n", "write lm0[0] of b1", [1, 2], "lm0[0]"),
    ("nop\nnop\nnop\n", "line 2", [1], "line 2"),
    ("# first\nnop\nnop\n", "line 1", [0], "line 1"),
    ("nop\nnop\n", "line 1 if lm0[0] of n0c0b0m0p0 == 0", [0], "line 1"),
    ("nop\nnop\n", "line 1 if lm0[0] of n0c0b0m0p0 == 1", [], ""),
    (ONE + "nop\nlpassa $lm0v $ln8v\nnop\n", "line 4 if lm1[4].f == 1", [3], "line 4"),
    (ONE + "nop\nlpassa $lm0v $ln8v\nnop\n", "line 3 if lm1[4].f == 1", [], ""),
    (ONE + "nop\nlpassa $lm0v $ln8v\n", "when lm1[4].f of n0c0b1m3p3 == 1.0", [3], "when"),
    (ONE + "nop\nlpassa $lm0v $ln8v\n", "when $ln8n0c0b1m3p3 == 0x3F8000003F800000", [3], "when"),
    (ONE + "nop\nlpassa $lm0v $ln8v\n", "when lm1[4].f[1] == 1 and lm0[0].i[0] > 5", [3], "when"),
    (ONE + "nop\nlpassa $lm0v $lr0v\nlpassa $lr0v $lm8v\n", "hazard", [3], "A0702"),
]


@pytest.mark.parametrize(("text", "breakpoint", "expected", "words"), CASES)
def test_breakpoints_stop_where_they_should(
    text: str, breakpoint: str, expected: list[int], words: str
) -> None:
    run = emu2.Debugger(emu2.assemble(text, MINI))
    run.add(breakpoint)
    found, first = [], ""
    while (stop := run.run())["reason"] == "breakpoint":
        found.append(stop["position"])
        first = first or stop["text"]
    assert found == expected
    assert words in first


BAD: list[tuple[str, str]] = [
    ("lm0", "D0003"),
    ("line", "D0003"),
    ("line x", "D0003"),
    ("line 99", "D0002"),
    ("line 1 if lm0[0]", "D0001"),
    ("when", "D0001"),
    ("when lm0[0] = 1", "D0001"),
    ("when lm0[0] == one", "D0001"),
    ("when lm0[0].q == 1", "D0001"),
    ("when lm0[0].f[2] == 1", "D0001"),
    ("when lm9[0] == 1", "D0001"),
    ("when lm0[512] == 1", "D0001"),
    ("when lm0[3:3] == 1", "D0001"),
    ("when lm0[0] of n1 == 1", "D0001"),
    ("when l2bm[0] of m0 == 1", "D0001"),
    ("when lm0[0] of p0p1 == 1", "D0001"),
    ("when $m0n0 == 1", "D0001"),
    ("write", "D0001"),
    ("infinity now", "D0003"),
]


@pytest.mark.parametrize(("text", "code"), BAD)
def test_wrong_breakpoints_are_refused(text: str, code: str) -> None:
    run = emu2.Debugger(emu2.assemble("nop\n", MINI))
    with pytest.raises(emu2.EmulatorError) as caught:
        run.add(text)
    assert caught.value.code == code
    assert run.breakpoints == []


def test_steps_by_line_step_and_region() -> None:
    steps = "lpassa $lr0v $lm0v\nlpassa $lr0v $lm8v\nnop; wait i01\n"
    text = f"nop/3\nmvp/n64i01 $p0@0 $d0@0\n{steps}d get $lr0 1\nnop\n"
    run = emu2.Debugger(emu2.assemble(text, MINI))
    table = [
        ("step", False, 1), ("step", False, 3), ("region", False, 5), ("region", False, 7),
        ("step", True, 6), ("region", True, 5), ("region", True, 1), ("line", False, 2),
    ]  # fmt: skip
    for unit, back, position in table:
        assert run.step(unit, back=back)["position"] == position, (unit, back)
    assert (run.at_line(5), run.at_tag(1), run.at_cycle(13)) == (4, 4, 3)
    with pytest.raises(emu2.EmulatorError) as caught:
        run.at_tag(2)
    assert caught.value.code == "D0002"
    with pytest.raises(emu2.EmulatorError):
        run.step("page")
    found = [run.first_write(place, 0, 7) for place in ("lm0[0:4]", "lm0[3:8]", "dram[0:1]")]
    assert found == [2, 2, 1]
    assert run.first_write("lm0[4:5]", 3, 7) == 3
    assert run.first_write("lm0[8:9]", 0, 7) is None


def test_dump_lines_come_on_the_way_forwards_only() -> None:
    run = emu2.Debugger(emu2.assemble("d get $lr0n0c0b0m0p0 1\nnop\n", MINI))
    assert len(run.run()["dump"]) == 1
    assert run.step(back=True)["dump"] == []
    assert run.step(back=True)["dump"] == []
    assert len(run.step()["dump"]) == 1


def test_the_machine_gives_the_start_and_is_left_alone() -> None:
    machine = emu2.Machine(MINI)
    machine.write("lm0", np.array([7], np.uint64))
    run = emu2.Debugger(emu2.assemble("linc $lm0 $lm0\n", MINI), machine)
    run.run()
    assert run.evaluate("lm0[0] of n0c0b0m0p0")[0]["word"] == 8
    assert machine.read("lm0", group=0, l2b=0, l1b=0, mab=0, pe=0)[0] == 7
    run.go(0)
    assert run.evaluate("lm0[0].l of n0c0b0m0p0")[0]["text"] == "7"


def test_writes_are_written_again_on_every_pass() -> None:
    run = emu2.Debugger(emu2.assemble("nop\nlpassa $lm0v $ln8v\nnop\n", MINI), every=1)
    run.run()
    run.go(1)
    run.write("lm0", np.array([9], np.uint64), addr=2, pe=1)
    for position in (3, 0, 1, 2, 0, 3):
        run.go(position)
        there = run.evaluate("lm0[2] of n0c0b0m0p1")[0]["word"]
        assert there == (9 if position >= 1 else 0), position
        copied = run.evaluate("lm1[6] of n0c0b0m0p1")[0]["word"]
        assert copied == (9 if position >= 2 else 0), position


def test_differences_between_two_moments() -> None:
    run = emu2.Debugger(emu2.assemble(ONE + "nop\nlpassa $lm0v $ln8v\n", MINI))
    run.go(2)
    found = run.differences(0, 3, most=3)
    lanes = 32
    assert (found["count"], run.position) == (3 * lanes, 2)
    assert found["words"][0] == {
        "memory": "lm0", "unit": "n0c0b0m0p0", "addr": 0, "before": 0, "after": 0x3F8000003F800000,
    }  # fmt: skip
    assert run.differences(3, 3)["count"] == 0


PARTINGS: list[tuple[str, str, tuple[int, int] | None]] = [
    ("nop\nlinc $lm0 $lm0\n", "nop/4\nnop\nlinc $lm0 $lm0\nd get $lm0 1\n", None),
    ("lpassa $lr0v $lm0v\nlinc $lm0 $ln8\n", "lpassa $ls0v $lm0v\nldec $lm0 $ln8\n", (2, 2)),
    ("linc $lm0 $ln8\nnop\n", "linc $lm0 $ln16\nnop\n", (1, 1)),
    ("linc $lm0 $ln8\n", "linc $lm0 $ln8\nnop\nlinc $lm0 $ln16\n", (0, 3)),
]


@pytest.mark.parametrize(("one", "other", "lines"), PARTINGS)
def test_the_first_step_at_which_two_runs_part(
    one: str, other: str, lines: tuple[int, int] | None
) -> None:
    ours, theirs = (emu2.Debugger(emu2.assemble(text, MINI)) for text in (one, other))
    found = ours.parting(theirs)
    assert (found and tuple(found["lines"])) == lines
    swapped = theirs.parting(ours)
    assert (swapped and tuple(swapped["lines"])) == (lines and lines[::-1])


def test_runs_of_different_memories_part_at_the_start() -> None:
    machine = emu2.Machine(MINI)
    machine.write("pdm", np.array([1], np.uint64), addr=77)
    program = emu2.assemble("nop\n", MINI)
    found = emu2.Debugger(program).parting(emu2.Debugger(program, machine))
    assert found is not None
    assert (found["lines"], found["count"]) == ([0, 0], 1)
    assert found["words"][0]["memory"] == "pdm"
    run = emu2.Debugger(program)
    with pytest.raises(emu2.EmulatorError) as caught:
        run.parting(run)
    assert caught.value.code == "D0004"


def test_long_programs_whose_statements_are_read_again() -> None:
    count = (1 << 16) + 9000
    text = "".join(f"linc $lm{2 * (k % 64)} $lm{2 * (k % 64)}\n" for k in range(count))
    run = emu2.Debugger(emu2.assemble(text, MINI))
    run.add(f"line {count - 70}")
    assert run.run()["position"] == count - 71
    for position in (count, 70000, 3, 69999, count - 64):
        assert run.go(position)["line"] == min(position + 1, count)
        low, high = (run.evaluate(f"lm0[{k}] of n0c0b0m0p0")[0]["word"] for k in (63, 0))
        assert (low, high) == (position // 64, (position + 63) // 64)
    assert run.run(back=True)["position"] == count - 71
    assert run.step(back=True)["line"] == count - 71


def test_pause_stops_a_run_between_statements() -> None:
    text = "linc $lm0 $lm0\n" * 60000
    run = emu2.Debugger(emu2.assemble(text, MINI))
    run.add("when lm0[0] == 0xFFFFFFFFFFFF")
    found: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: found.append(run.run()))
    thread.start()
    while thread.is_alive():
        time.sleep(0.005)
        run.pause()
    (stop,) = found
    assert stop["reason"] == "pause"
    assert 0 < run.position < 60000
    assert run.evaluate("lm0[0] of n0c0b0m0p0")[0]["word"] == run.position
    assert run.run(limit=run.position + 10)["reason"] == "step"
