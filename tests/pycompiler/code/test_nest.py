"""What a nest takes is what its lines take, on machines with other numbers, and counted at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from compiling import compiled, with_seeds
from nest_counts import OWN_COUNTS, check_counts
from one_node import one_node
from random_models import random_model

from pycompiler.code.lines import BlockOperand, Line, Move, PeOperand, Special, Step, alu_step
from pycompiler.code.nest import Nest, Repeat, expand, resources
from pycompiler.cost.moves import move_cost
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
    """Return the lines of each slot and the cycles of each port, line by line."""
    slots, ports = Counter[str](), Counter[str]()
    for line in lines:
        if isinstance(line, Step):
            slots.update({one.slot for one in line.instructions})
        else:
            cost = move_cost(line, target)
            ports.update(dict.fromkeys(cost.ports, cost.holds))
    return slots, ports


def test_drawn_nests() -> None:
    def check(seed: int) -> None:
        lines = list(expand(drawn_nest(random.Random(seed), 3)))
        found = resources(drawn_nest(random.Random(seed), 3))
        assert found.steps == sum(isinstance(line, Step) for line in lines), seed
        assert (found.slots, found.port_cycles(TARGET)) == counted(lines, TARGET), seed
        assert found.moves.total() == len(lines) - found.steps, seed

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

    found = resources([Repeat(10**6, lambda turn: [Repeat(10**6, body)]), Repeat(0, body)])
    assert (found.steps, found.slots, found.moves) == (10**12, {"alu": 10**12}, {})
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
            if node.op not in OWN_COUNTS:
                lines = list(layer.emit(node, graph, target).lines)
                found = resources(layer.code(node, graph, target))
                assert (found.slots, found.port_cycles(target)) == counted(lines, target)
                assert found.steps == sum(isinstance(line, Step) for line in lines)
        check_counts(graph, target)

    with_seeds(check, 3, 30)
