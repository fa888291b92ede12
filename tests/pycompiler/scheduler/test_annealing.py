"""`auto_recompute_sa`: the bits of other schedulers, never worse, reproducible; walk and plans."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from compiling import LONG, compiled, model_of, random_inputs, run, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_functions import random_function
from reference_walk import Walk

from pycompiler.frontend.export import export
from pycompiler.graph.graph import MNGraph
from pycompiler.graph.text import parse_graph
from pycompiler.layers.forget import FORGET
from pycompiler.layout_passes import LayoutPlans
from pycompiler.machine import Target, load_target
from pycompiler.options import parse_options
from pycompiler.pfvm.optimise import optimise
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request
from pycompiler.scheduler.annealing import search as searching
from pycompiler.scheduler.annealing.orders import first_orders
from pycompiler.scheduler.annealing.plan import Action, Plan
from pycompiler.scheduler.annealing.problem import Problem, problem_of
from pycompiler.scheduler.annealing.rebuild import rebuilt
from pycompiler.scheduler.annealing.scheduler import NAME, Annealing
from pycompiler.scheduler.schedulers import SCHEDULERS
from pycompiler.search_budget import SearchBudget
from pycompiler.simulation.graph_costs import simulate_graph
from pycompiler.simulation.settings import BEST, FAKE


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(1, 20))
def test_same_bits_and_never_worse(seed: int) -> None:
    """Test drawn functions, with little room, against every other scheduler."""
    rng = random.Random(seed)
    function, inputs = random_function(rng)
    model = optimise(export(function, inputs))
    arrays = {name: value.numpy() for name, value in inputs.items()}
    share = rng.choice([0.01, 0.02, 0.05, 0.25])
    mode = rng.choice(["float", "mixed"])
    given = {"sram_budget": share, "float_dtype": mode}
    found, costs = {}, {}
    for scheduler in (*SCHEDULERS, NAME):
        own: dict[str, Any] = {"scheduler": scheduler, **given}
        if scheduler == NAME:
            own |= {"sa_expected_run_iters": 300, "simulation_mode": rng.choice(["fake", "best"])}
        result, report = compiled(model, **own)
        found[scheduler] = run(result, arrays)
        costs[scheduler] = report["cycles"], sum(report["dram_words"].values())
    for name, wanted in found["always_from_dram"].items():
        for scheduler, own_results in found.items():
            assert np.array_equal(own_results[name], wanted, equal_nan=True), scheduler
    assert all(a <= b for a, b in zip(costs[NAME], costs["spill_opt"], strict=True))


#: A value is read early and late; between them is a chain that needs its room.
CHAIN = [
    ("Exp", ["x"], "v"),
    ("Neg", ["v"], "a"),
    ("Exp", ["a"], "b"),
    ("Mul", ["b", "a"], "c"),
    ("Mul", ["c", "b"], "d"),
    ("Add", ["d", "c"], "e"),
    ("Add", ["e", "v"], "y"),
]
SHAPES = {"x": (200, 8, 8)}


@lru_cache
def laid_out(share: float = 0.3) -> tuple[MNGraph, Problem, list[int]]:
    """Return the graph of the chain before it is scheduled, its problem, and the room."""
    model = model_of(CHAIN, SHAPES, ["y"])
    result, _ = compiled(model, scheduler="spill_opt", time_slice="off")
    graph = parse_graph(result.dumps["layout.slices.txt"])
    target = load_target("mini")
    problem = problem_of(graph, target, simulate_graph(graph, target, FAKE), {})
    return graph, problem, [int(target.words(bank) * share) for bank in ("lm0", "lm1")]


def test_what_is_remade_gives_the_same_bits() -> None:
    """Test every value that may be computed again, one by one; in `make test` the first."""
    model = model_of(CHAIN, SHAPES, ["y"])
    _, problem, rooms = laid_out()
    inputs = random_inputs(SHAPES, 3)
    plans = LayoutPlans()
    plain, _ = compiled(model, plans=plans, scheduler="always_from_dram", time_slice="off")
    wanted = run(plain, inputs)["y"]
    remade = 0
    for value, may in enumerate(problem.remakable):
        plan = Plan(tuple(problem.order), remade=frozenset({value}))
        if remade and not LONG:
            break
        if not may or searching.walked(problem, rooms, plan) is None:
            continue

        class Fixed(Annealing):
            def _searched(
                self, own: Problem, room: list[int], machine: Target, plan: Plan = plan
            ) -> MNGraph:
                found = searching.walked(own, room, plan)
                assert found is not None
                _, actions = found
                self.plain = None  # its program is taken, however slow it is
                nonlocal remade
                remade += any(action.again for action in actions)
                return rebuilt(own, actions, machine)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pycompiler.search_passes.Annealing", Fixed)
            options = {"sram_budget": 0.3, "simulation_mode": "fake", "time_slice": "off"}
            result, _ = compiled(model, plans=plans, scheduler=NAME, **options)
        assert np.array_equal(run(result, inputs)["y"], wanted)
        text = result.dumps[f"layout.{NAME}.txt"]
        assert (FORGET in text) == (".again" in text)
        parse_graph(text)
    assert remade


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(10))
def test_the_walk_is_that_of_the_reference(seed: int) -> None:
    """Test costs and actions of drawn plans."""
    rng = random.Random(seed)
    _, problem, _ = laid_out()
    rooms = [rng.randrange(0, 900) for _ in range(2)]
    order = rng.choice(list(first_orders(problem)))
    count, most = len(problem.values), len(order)
    plan = Plan(
        order,
        {value: rng.randint(-most, most) for value in rng.sample(range(count), 3)},
        frozenset(rng.sample(range(count), rng.randint(0, count))),
        {
            node: rng.randrange(len(choices))
            for node, choices in enumerate(problem.choices)
            if choices and rng.random() < 0.3
        },
    )
    actions: list[Action] = []
    found = Walk(problem, rooms).cost(plan, actions)
    assert searching.walked(problem, rooms, plan) == (None if found is None else (found, actions))


def test_a_search_is_reproducible_and_ends_early() -> None:
    _, problem, rooms = laid_out()
    one, two = (searching.search(problem, rooms, 500, seed=7) for _ in range(2))
    assert one == two
    assert one.tried == 500
    budget = SearchBudget(0.05, {})
    late = searching.search(problem, rooms, 10**9, budget=budget)
    assert late.tried < 10**9
    assert budget.facts["time_limited"]
    assert f"after {late.tried} of" in budget.facts["reason"]
    cycles = [row["cycles"] for row in budget.facts["found"]]
    assert cycles == sorted(set(cycles), reverse=True) != []

    def interrupted(tried: int, steps: int) -> None:
        if tried >= 128:
            raise KeyboardInterrupt

    stopped = searching.search(problem, rooms, 10**9, seed=7, progress=interrupted)
    assert stopped.tried == 128
    assert isinstance(stopped.interrupted, KeyboardInterrupt)
    with pytest.raises(ZeroDivisionError):
        searching.search(problem, rooms, 500, progress=lambda tried, steps: print(1 // 0))


def test_a_search_with_time_goes_on_with_other_seeds() -> None:
    model, plans = model_of(CHAIN, SHAPES, ["y"]), LayoutPlans()
    options = {"scheduler": NAME, "simulation_mode": FAKE, "time_slice": "off", "sram_budget": 0.3}
    found = {}
    for limit in ({}, {"search_seconds": 1.0}, {"search_seconds": 1.0, "sa_expected_run_iters": 9}):
        _, report = compiled(model, plans=plans, **options, **limit)
        (row,) = (one for one in report["passes"] if one["pass"] == NAME)
        found[len(limit)] = row["search"]["plans"], report["search"]["time_limited"]
    assert found[0] == (searching.LEAST, False)
    assert found[1][0] > searching.LEAST
    assert found[1][1]
    assert found[2] == (9, False)


def test_all_orders_are_possible() -> None:
    _, problem, rooms = laid_out()
    for order in first_orders(problem):
        place = {node: at for at, node in enumerate(order)}
        assert len(place) == len(problem.inputs)
        assert all(place[o] < place[n] for n in order for o in problem.before[n])
        assert searching.walked(problem, rooms, Plan(order)) is not None


def test_the_first_order_costs_what_spill_opt_does() -> None:
    """Test that a search begins with the words of DRAM that ``spill_opt`` moves."""
    model = model_of(CHAIN, SHAPES, ["y"])
    _, report = compiled(model, scheduler="spill_opt", time_slice="off", sram_budget=0.3)
    _, problem, rooms = laid_out()
    found = searching.walked(problem, rooms, Plan(tuple(problem.order)))
    assert found is not None
    assert found[0].words == sum(report["dram_words"].values())


def test_progress_and_facts() -> None:
    model = model_of(CHAIN, SHAPES, ["y"])
    shown: list[str] = []
    report = Report("mini", {})
    report.listener = lambda name, ended, expected: shown.append(name)
    options = {"scheduler": NAME, "sa_expected_run_iters": 200, "simulation_mode": BEST}
    compile_onnx(Request(model, load_target("mini"), parse_options(options), report))
    assert f"{NAME} 128/200" in shown
    assert any(name.startswith("simulation ") for name in shown)
    row = next(row for row in report.data["passes"] if row["pass"] == NAME)
    assert row["search"]["plans"] == 200


def test_overrides_leave_nothing_to_search() -> None:
    model = model_of(CHAIN, SHAPES, ["y"])
    overrides = {"v": {"keep": "DRAM"}}
    plain, _ = compiled(model, scheduler="spill_opt", overrides=overrides, time_slice="off")
    found, report = compiled(model, scheduler=NAME, overrides=overrides, time_slice="off")
    assert found.vsm == plain.vsm
    assert any("nothing is searched" in note for note in report["notes"])
