"""Changes of a kept sequence, against the whole sequence; how many tasks they place."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from compiling import with_seeds

from pycompiler.cost.kept_sequence import KeptSequence
from pycompiler.cost.sequence import Flow, Stage, Task, Timeline, Words
from pycompiler.machine import Target, load_target

#: Long words of a value, and how many values LM holds.
SIZE, ROOM = 100, 8


def drawn(rng: random.Random, count: int, target: Target) -> list[Task]:
    """Return tasks whose words take turns in LM: downloads, and lines that read what was made."""
    tasks, made = list[Task](), dict[int, int]()
    for number in range(count):
        reads = [Words(f"input {number}", 0, 1)]
        if rng.random() < 0.3:
            spread = rng.randrange(1, 200) * target.cycles
            stages = [
                Stage(("dram", "l2bm"), 0, {"dram0": rng.randrange(1, 1500)}, rng.randrange(1, 3)),
                Stage(None, spread, {"l1bm": spread, "l2bm": spread}),
            ]
        else:
            stages = []
            for _ in range(rng.randrange(1, 4)):
                lines = rng.randrange(1, 500)
                slots = {s: rng.randrange(lines + 1) for s in ("alu", "mau", "l1bm")}
                uses = {slot: used * target.cycles for slot, used in slots.items()}
                stages.append(Stage(None, lines * target.cycles, uses))
            near = [at for at, since in made.items() if number - since < 12]
            reads = [_lm(at) for at in rng.sample(near, min(len(near), rng.randrange(3)))]
        at = rng.randrange(ROOM)
        made[at] = number
        tasks.append(Task(stages, reads, [_lm(at)]))
    return tasks


def _lm(at: int) -> Words:
    return Words("lm0", at * SIZE, (at + 1) * SIZE)


def times(task: Task, factor: float) -> Task:
    """Return a task that takes so many times what another one takes."""
    return replace(
        task,
        stages=[
            replace(
                one,
                least=int(one.least * factor),
                uses={name: int(used * factor) for name, used in one.uses.items()},
            )
            for one in task.stages
        ],
    )


def cycles(tasks: Sequence[Task], target: Target) -> int:
    """Return when the last of the tasks ends if all are placed."""
    line = Timeline(target)
    return round(max(line.add(task).end for task in tasks))


def changed(tasks: Sequence[Task], changes: Mapping[int, Task]) -> list[Task]:
    return [changes.get(number, task) for number, task in enumerate(tasks)]


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_a_change_gives_what_the_whole_sequence_gives(machine: str) -> None:
    """Up to four bins of the list schedule for each change, or a fiftieth of all cycles."""
    target = load_target(machine)

    def check(seed: int) -> None:
        print(f"seed {seed}")
        rng = random.Random(seed)
        tasks = drawn(rng, rng.randrange(2, 120), target)
        kept = KeptSequence(tasks, target)
        assert round(kept.cycles) == cycles(tasks, target)
        for _ in range(3):
            places = {rng.randrange(len(tasks)) for _ in range(rng.randrange(1, 4))}
            factors = (0, 0.5, 0.9, 1.1, 2, 3)
            changes = {at: times(tasks[at], rng.choice(factors)) for at in places}
            whole = cycles(changed(tasks, changes), target)
            bins = 4 * len(changes) * Flow.bin
            assert abs(kept.replaced(changes) - whole) <= max(bins, whole / 50)
        assert round(kept.replaced({})) == cycles(tasks, target)

    with_seeds(check, 30, 1000)


def test_other_words_are_seen_until_they_are_gone() -> None:
    """A change may read and write other words: what waits for them moves too."""
    target, rng = load_target("mini"), random.Random(5)
    tasks = drawn(rng, 60, target)
    kept = KeptSequence(tasks, target)
    for at in range(0, 60, 7):
        other = replace(tasks[at], reads=[_lm(1), _lm(2)], writes=[Words("lm0", 50, 350)])
        whole = cycles(changed(tasks, {at: other}), target)
        assert abs(kept.replaced({at: other}) - whole) <= 4 * Flow.bin


def test_what_nothing_holds_up_does_not_move() -> None:
    """A download runs ahead from the begin on, whatever the tasks before it take."""
    target = load_target("mini")
    step = target.cycles
    down = Stage(("dram", "l2bm"), 0, {"dram0": 1000}, 1)
    spread = Stage(None, 100 * step, {"l1bm": 100 * step})
    work = Stage(None, 150 * step, {"alu": 150 * step})
    tasks = [
        Task([work], [], [_lm(0)]),
        Task([down, spread], [Words("x", 0, 1)], [_lm(1)]),
        Task([work], [_lm(1)], [_lm(2)]),
    ]
    kept = KeptSequence(tasks, target)
    slower = {0: times(tasks[0], 2)}
    assert cycles(changed(tasks, slower), target) == cycles(tasks, target)
    assert round(kept.replaced(slower)) == cycles(tasks, target)


def test_a_change_places_its_window_only() -> None:
    """However long the sequence is, and wherever the change."""
    target = load_target("mini")
    placed = []
    for count in (100, 400, 1600):
        tasks = drawn(random.Random(7), count, target)
        kept = KeptSequence(tasks, target)
        before = kept.placed
        assert before == count
        for at in range(20, 80, 3):
            kept.replaced({at: times(tasks[at], 1.5)})
        placed.append(kept.placed - before)
        before = kept.placed
        kept.replaced({at: times(tasks[at], 1.5) for at in (count // 2, count - 5)})
        assert kept.placed - before < 100
        before = kept.placed
        kept.replaced({})
        assert kept.placed == before
    assert len(set(placed)) == 1
    assert placed[0] < 20 * 25
