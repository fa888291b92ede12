"""Memory plans for several streams: safe for every order of execution, and near the bound."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from resnet18 import resnet18

from pycompiler.errors import PycompilerError
from pycompiler.memory import WEIGHT_GRADIENT, Tensor, lower_bound, training_tensors
from pycompiler.plugins import Plan, Step, plan_reuse

_MADE = Step(0, (), ("x",))
MOST = 1.1  # times the lower bound


def _drawn(seed: int) -> tuple[list[Step], dict[str, int]]:
    """Return steps of several streams, each tensor with a maker, readers that wait for it."""
    draw = random.Random(seed)
    sizes: dict[str, int] = {}
    maker: dict[str, int] = {}
    steps: list[Step] = []
    for number in range(draw.randint(1, 25)):
        reads = tuple(draw.sample(sorted(maker), min(len(maker), draw.randint(0, 3))))
        name = f"t{number}"
        after = {maker[read] for read in reads}
        if number and draw.random() < 0.3:
            after.add(draw.randrange(number))
        maker[name], sizes[name] = number, draw.randint(1, 50)
        steps.append(Step(draw.randint(0, 2), reads, (name,), tuple(sorted(after))))
    return steps, sizes


def _reachable(steps: Sequence[Step]) -> list[set[int]]:
    """Return the steps before each, by walking along all waits."""
    found: list[set[int]] = []
    for number, step in enumerate(steps):
        same = [n for n in range(number) if steps[n].stream == step.stream]
        direct = {*step.after, *same}
        found.append(direct.union(*(found[n] for n in direct)))
    return found


def _conflicts(steps: Sequence[Step], sizes: dict[str, int], plan: Plan) -> list[tuple[str, str]]:
    """Return pairs that share memory although neither comes wholly before the other's maker."""
    before = _reachable(steps)
    users = {
        name: [n for n, step in enumerate(steps) if name in (*step.reads, *step.writes)]
        for name in sizes
    }
    found = []
    for one in sizes:
        for two in sizes:
            if one < two:
                apart = (
                    plan.offsets[one] + sizes[one] <= plan.offsets[two]
                    or plan.offsets[two] + sizes[two] <= plan.offsets[one]
                )
                ordered = any(
                    set(users[a]) <= before[users[b][0]] for a, b in ((one, two), (two, one))
                )
                if not apart and not ordered:
                    found.append((one, two))
    return found


@pytest.mark.parametrize("seed", range(24))
def test_plans_are_safe(seed: int) -> None:
    steps, sizes = _drawn(seed)
    align = (1, 4)[seed % 2]
    names = sorted(sizes)
    groups = [names[:2], names[3:6]] if seed % 3 == 0 else []
    plan = plan_reuse(steps, sizes, alignment=align, groups=groups, seconds=0.5)
    assert _conflicts(steps, sizes, plan) == []
    assert max(plan.offsets[n] + sizes[n] for n in sizes) <= plan.size
    assert plan.lower_bound <= plan.size
    inside = {name for group in groups for name in group[1:]}
    assert all(at % align == 0 for name, at in plan.offsets.items() if name not in inside)
    for group in groups:
        for one, two in pairwise(group):
            assert plan.offsets[two] == plan.offsets[one] + sizes[one]


def test_conflicts_are_found() -> None:
    """The check above sees a plan in which two streams share memory without a wait."""
    steps = [Step(0, (), ("a",)), Step(1, (), ("b",))]
    assert _conflicts(steps, {"a": 4, "b": 4}, Plan({"a": 0, "b": 2}, 6, 4)) == [("a", "b")]


def test_streams_keep_tensors_alive() -> None:
    """A reader on another stream keeps the memory until somebody waits for it."""
    sizes = {"a": 10, "b": 10, "c": 10}
    steps = [
        Step(0, (), ("a",)),
        Step(1, ("a",), (), (0,)),
        Step(0, (), ("b",)),
    ]
    free = plan_reuse([*steps, Step(0, ("b",), ("c",))], sizes)
    waited = plan_reuse([*steps, Step(0, ("b",), ("c",), (1,))], sizes)
    assert (free.size, waited.size) == (30, 20)
    alone = [Step(0, step.reads, step.writes) for step in steps]
    assert plan_reuse(alone, {"a": 10, "b": 10}).size == 10


def _training() -> list[Tensor]:
    return training_tensors(resnet18(), half=True, vectors=False, inputs=True)


def _steps(tensors: Sequence[Tensor], streams: bool) -> list[Step]:
    """Return a step per time; with ``streams``, weight gradients are used on a second stream."""
    first: dict[int, list[str]] = {}
    last: dict[int, list[str]] = {}
    for tensor in tensors:
        first.setdefault(tensor.start, []).append(tensor.name)
        last.setdefault(tensor.end - 1, []).append(tensor.name)
    gradients = {t.name for t in tensors if t.kind == WEIGHT_GRADIENT}
    steps: list[Step] = []
    for time in range(max(tensor.end for tensor in tensors)):
        reads = tuple(last.get(time, ()))
        beside = tuple(name for name in reads if streams and name in gradients)
        rest = tuple(name for name in reads if name not in beside)
        # Every fourth step the main stream waits for the updates.
        waits = (len(steps) - 1,) if streams and time % 4 == 0 and steps else ()
        steps.append(Step(0, rest, tuple(first.get(time, ())), waits))
        if beside:
            steps.append(Step(1, beside, (), (len(steps) - 1,)))
    return steps


def test_resnet18_training() -> None:
    tensors = _training()
    sizes = {tensor.name: tensor.size for tensor in tensors}
    one = plan_reuse(_steps(tensors, False), sizes)
    assert one.lower_bound == lower_bound(tensors)
    assert one.size <= MOST * lower_bound(tensors)
    steps = _steps(tensors, True)
    two = plan_reuse(steps, sizes)
    assert _conflicts(steps, sizes, two) == []
    assert two.lower_bound >= one.lower_bound
    assert two.size <= MOST * two.lower_bound


@pytest.mark.parametrize(
    ("steps", "sizes", "groups", "code"),
    [
        ([Step(0, ("x",))], {"x": 1}, [], "P0826"),
        ([Step(0, (), ("x",))], {}, [], "P0826"),
        ([Step(0, (), ("x",))], {"x": 0}, [], "P0826"),
        ([Step(0, (), ("x",))], {"x": 1, "y": 1}, [], "P0826"),
        ([Step(0, (), ("x",), (0,))], {"x": 1}, [], "P0826"),
        ([Step(0, (), ("x",))], {"x": 1}, [["x"], ["x"]], "P0826"),
        ([Step(0, (), ("x",))], {"x": 1}, [["y"]], "P0826"),
        ([Step(0, (), ("x",)), Step(1, ("x",))], {"x": 1}, [], "P0822"),
        (
            [Step(0, (), ("x",)), Step(1, ("x",), (), (0,)), Step(0, (), ("x",))],
            {"x": 1},
            [],
            "P0822",
        ),
    ],
)
def test_wrong_plans_are_refused(
    steps: list[Step], sizes: dict[str, int], groups: list[list[str]], code: str
) -> None:
    with pytest.raises(PycompilerError) as caught:
        plan_reuse(steps, sizes, groups=groups)
    assert caught.value.code == code
