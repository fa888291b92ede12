"""What a nest takes is what its lines take, on machines with other numbers, and counted at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from compiling import compiled, with_seeds
from nest_counts import check_counts
from one_node import one_node
from random_models import random_model

from pycompiler.code.lines import BlockOperand, Line, Move, PeOperand, Special, Step, alu_step
from pycompiler.code.move_costs import move_cost
from pycompiler.code.nest import Nest, Repeat, expand, stages
from pycompiler.cost.moves import latency_steps
from pycompiler.cost.sequence import Stage, slots_of, steps_of, waiting_steps
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import Target, load_target

SLOW_MOVES = str(Path(__file__).parents[1] / "corpus" / "machines" / "slow_moves.toml")
MACHINES = ("mncore2", "mini", "what_if/odd", "what_if/wide_dram", SLOW_MOVES)
TARGET = load_target("mini")


def drawn_nest(rng: random.Random, depth: int, at: int = 0) -> Nest:
    """Lines and loops whose operands depend on the turn; the same for equal random numbers."""
    for _ in range(rng.randrange(1, 4)):
        kind = rng.choice(["step", "move", "loop"] if depth else ["step", "move"])
        if kind == "step":
            yield alu_step("ipassa", (PeOperand("lm0", (at,) * 4),), Special("nowrite"))
        elif kind == "move":
            words = rng.choice([64, 128])
            source, goal = BlockOperand("dram", at, words, "x"), BlockOperand("l2bm", 0, words)
            yield Move("mvb2", words, source, goal)
        else:
            seed = rng.randrange(1 << 30)
            yield Repeat(
                rng.randrange(4),
                lambda turn, seed=seed: drawn_nest(random.Random(seed), depth - 1, at + turn),
            )


def counted(lines: list[Line], target: Target) -> tuple[Counter[str], Counter[str]]:
    """Return the cycles of each slot and of each port, line by line."""
    slots, ports = Counter[str](), Counter[str]()
    for line in lines:
        if isinstance(line, Step):
            slots.update({one.slot: target.cycles for one in line.instructions})
        else:
            cost = move_cost(line, target)
            ports.update(dict.fromkeys(cost.ports, cost.holds))
    return slots, ports


def check_stages(found: list[Stage], lines: list[Line], target: Target) -> None:
    ports = Counter[str]()
    for one in found:
        ports.update(one.uses if one.ends else {})
    assert (slots_of(found), ports) == counted(lines, target)
    assert steps_of(found, target) == sum(isinstance(line, Step) for line in lines)


def waits(lines: list[Line], target: Target) -> int:
    """Count the lines, and the waits for MVs of each run between the same memories."""
    ends = [(x.source.memory, x.destination.memory) for x in lines if isinstance(x, Move)]
    runs = sum(1 for _ in groupby(ends))
    cycles = 0
    for pair in set(ends):
        own = [x for x in lines if isinstance(x, Move) and pair[0] == x.source.memory]
        cycles += max(counted(own, target)[1].values())
    steps = len(lines) - len(ends)
    return steps + runs * latency_steps(target) + cycles // target.cycles


def test_drawn_nests() -> None:
    def check(seed: int) -> None:
        lines = list(expand(drawn_nest(random.Random(seed), 3)))
        found = stages(drawn_nest(random.Random(seed), 3), TARGET)
        check_stages(found, lines, TARGET)
        assert waiting_steps(found, TARGET) == waits(lines, TARGET), seed

    with_seeds(check, 200, 2000)


def test_the_turns_of_a_loop_differ_in_their_operands() -> None:
    one = next(expand([Repeat(1, lambda turn: drawn_nest(random.Random(5), 0, turn))]))
    other = list(expand([Repeat(2, lambda turn: drawn_nest(random.Random(5), 0, turn))]))[-1]
    assert one != other


def test_a_million_turns_are_counted_without_making_them() -> None:
    made: list[int] = []

    def body(turn: int) -> Iterator[Line]:
        made.append(turn)
        yield alu_step("zero", (), Special("nowrite"))

    found = stages([Repeat(10**6, lambda turn: [Repeat(10**6, body)]), Repeat(0, body)], TARGET)
    assert steps_of(found, TARGET) == 10**12
    assert slots_of(found) == {"alu": 10**12 * TARGET.cycles}
    assert made == [0]


#: A depthwise convolution, which random models seldom have.
DEPTHWISE = one_node(
    "Conv",
    {"x": (2, 12, 9, 9)},
    {"w": np.ones((12, 1, 3, 3), np.float32), "b": np.ones(12, np.float32)},
    group=12,
)


@pytest.mark.parametrize("machine", MACHINES)
def test_nodes_of_drawn_models(machine: str) -> None:
    target = load_target(machine)

    def check(seed: int) -> None:
        print(f"seed {seed}")
        model = random_model(random.Random(seed))[0] if seed else DEPTHWISE
        graph = compiled(model, machine)[0].graph
        for node in graph.nodes:
            layer = LAYERS[node.op]
            lines = list(layer.emit(node, graph, target).lines)
            check_stages(stages(layer.code(node, graph, target), target), lines, target)
        check_counts(graph, target)

    with_seeds(check, 3, 30)
