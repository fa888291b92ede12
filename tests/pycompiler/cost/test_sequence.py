"""Estimates of tasks that overlap, against formulas of small cases and bounds of drawn ones."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from compiling import LONG, compiled, with_seeds
from corpus.networks import drawn_convolutions, drawn_product, perceptron

from pycompiler.cost.moves import latency
from pycompiler.cost.sequence import Flow, Stage, Task, Timeline, Words, waiting_steps
from pycompiler.machine import Target, load_target


def cycles(tasks: Sequence[Task], target: Target) -> int:
    """Return when the last of the tasks ends."""
    line = Timeline(target)
    return round(max(line.add(task).end for task in tasks))


def lines(count: int, target: Target, **uses: int) -> Stage:
    """Return a stage of so many lines, each of which takes a step of each slot in ``uses``."""
    step = target.cycles
    return Stage(None, count * step, {name: n * step for name, n in uses.items()})


def moves(ends: tuple[str, str], held: int) -> Stage:
    return Stage(ends, 0, {"dram0": held}, 1)


def task(*stages: Stage, reads: str = "", writes: str = "") -> Task:
    """Return a task that reads and writes the values of these letters."""
    return Task(
        stages, [Words(name, 0, 1) for name in reads], [Words(name, 0, 1) for name in writes]
    )


def test_tasks_share_steps_if_they_use_different_slots(target: Target) -> None:
    one, other = lines(100, target, alu=100), lines(80, target, mau=80)
    step = target.cycles
    assert cycles([task(one, writes="a"), task(other, writes="b")], target) == 100 * step
    assert cycles([task(one, writes="a"), task(one, writes="b")], target) == 200 * step
    # Half of the steps have room.
    half = lines(100, target, alu=50)
    assert cycles([task(half, writes="a"), task(half, writes="b")], target) == 100 * step


def test_a_task_waits_for_what_it_reads(target: Target) -> None:
    one, other = lines(100, target, alu=100), lines(80, target, mau=80)
    found = cycles([task(one, writes="a"), task(other, reads="a", writes="b")], target)
    # It may begin a little before the end of the other.
    assert 165 * target.cycles <= found <= 180 * target.cycles


def test_words_are_overwritten_when_they_have_been_read(target: Target) -> None:
    one, other = lines(100, target, alu=100), lines(80, target, mau=80)
    tasks = [task(one, writes="a"), task(other, reads="b", writes="a")]
    assert cycles(tasks, target) == 180 * target.cycles
    # Only the words that both have count.
    apart = Task([other], [], [Words("a", 1, 2)])
    assert cycles([tasks[0], apart], target) == 100 * target.cycles


def test_transfers_run_ahead_and_end_a_latency_later(target: Target) -> None:
    work, down = lines(1000, target, mau=1000), moves(("dram", "l2bm"), 64)
    spread = lines(10, target, l1bm=10)
    one = cycles([task(down, spread, writes="a")], target)
    assert one == 64 + latency(target) + 10 * target.cycles
    both = [task(work, writes="b"), task(down, spread, writes="a")]
    assert cycles(both, target) == 1000 * target.cycles
    assert waiting_steps([down, spread], target) == one // target.cycles


def test_drawn_tasks_stay_between_their_bounds() -> None:
    def check(seed: int) -> None:
        print(f"seed {seed}")
        rng, target = random.Random(seed), load_target("mini")
        tasks, serial, busy = [], 0.0, Counter[str]()
        for number in range(rng.randrange(1, 30)):
            stages = []
            for _ in range(rng.randrange(1, 4)):
                if rng.random() < 0.3:
                    held = rng.randrange(1, 3000)
                    stages.append(moves(rng.choice([("dram", "l2bm"), ("l2bm", "dram")]), held))
                    serial += held + latency(target)
                else:
                    count = rng.randrange(1, 500)
                    uses = {slot: rng.randrange(count + 1) for slot in ("alu", "mau", "l1bm")}
                    stages.append(lines(count, target, **uses))
                    serial += count * target.cycles
                busy.update(stages[-1].uses)
            reads = rng.sample(range(number), min(number, rng.randrange(3)))
            tasks.append(
                Task(stages, [Words(f"v{n}", 0, 1) for n in reads], [Words(f"v{number}", 0, 1)])
            )
        found = cycles(tasks, target)
        assert max(busy.values()) <= found * (1 + 1e-6) + 1, seed
        assert found <= serial * (1 + 1e-6) + 1, seed

    with_seeds(check, 30, 1000)


def test_no_slot_is_used_twice() -> None:
    """Each bin of each slot holds no more than its cycles."""
    rng, target, flow = random.Random(3), load_target("mini"), Flow()
    for _ in range(200):
        count = rng.randrange(1, 300)
        uses = {slot: rng.randrange(count + 1) for slot in ("alu", "mau")}
        begin, end = flow.place(lines(count, target, **uses), rng.randrange(20_000))
        assert end - begin >= count * target.cycles * (1 - 1e-6)
    assert all((used <= flow.bin * (1 + 1e-6)).all() for used in flow.used.values())
    total = sum(np.sum(used) for used in flow.used.values())
    assert total > 0


@pytest.mark.parametrize("mode", ["float", "mixed"])
def test_programs_take_what_was_estimated(mode: str) -> None:
    """A sample of `benches/estimates.py`."""
    made = [
        drawn_product(103),
        drawn_product(108),
        drawn_convolutions(101),
        perceptron(9, (70, 50, 5)),
    ]
    errors = []
    # In `make test` the modes take turns.
    for model in made if LONG else made[mode == "float" :: 2]:
        _, report = compiled(model, "mncore2", float_dtype=mode)
        errors.append(abs(report["estimated_cycles"] / report["cycles"] - 1))
    assert np.median(errors) <= 0.15
    assert max(errors) <= 0.35
