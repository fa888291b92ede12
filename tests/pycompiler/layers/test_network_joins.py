"""Sums, maxima and minima over L1Bs and L2Bs by the reduction networks."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from compiling import compiled, model_of, run

from pycompiler.code.lines import Step
from pycompiler.graph.digits import PrimeDigit, primes
from pycompiler.graph.layout import Level
from pycompiler.layers.scratch import Scratch
from pycompiler.layers.switch.network_joins import (
    capacity,
    down,
    network_of,
    space,
    up,
    words_at_once,
)
from pycompiler.machine import Target, load_target

#: By machine: layouts of a value, reduced along its second axis, and what the code must have.
LAYOUTS = {
    "all L1Bs": ("mini", (8, 16), "((8:1), (2_L1B:1, 8:8))", ["l2bmr"]),
    "MABs and L1Bs": ("mini", (8, 16), "((8:1), (4_MAB:1, 2_L1B:1, 2:8))", ["l1bmr", "l2bmr"]),
    "some MABs, all L1Bs": (
        "mini",
        (8, 16),
        "((2_MAB:2, 4:1), (2_MAB:1, 2_L1B:1, 4:4))",
        ["l2bmr"],
    ),
    "words, PEs and L1Bs": (
        "mini",
        (8, 16),
        "((8:1), (2_L1B:1, 2_PE:2, 2_PE:1, 2_W:1))",
        ["l2bmr"],
    ),
    "the whole chip": (
        "mncore2",
        (16, 512),
        "((2_L1B:1, 8:1), (8_L2B:1, 4_L1B:2, 16_MAB:1))",
        ["l1bmr", "l2bmrffadd@", "mvrffadd", "mvb"],
    ),
    "L2Bs alone": ("mncore2", (16, 16), "((8_L1B:1, 2:1), (8_L2B:1, 2:2))", ["mvrffadd", "mvb"]),
    "more than half of L2BM at once": (
        "mncore2",
        (512, 16),
        "((8_L1B:1, 64:1), (8_L2B:1, 2:64))",
        ["mvrffadd", "mvb"],
    ),
    "one L2B of each group": (
        "mncore2",
        (4, 32),
        "((2_L2B:1, 2:1), (4_L2B:2, 8_L1B:1))",
        ["l2bmr", "mvp"],
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_results(name: str) -> None:
    """Whole numbers have exact sums, so every order of the terms gives the same bits."""
    machine, shape, layout, wanted = LAYOUTS[name]
    model: onnx.ModelProto = model_of(
        [("Neg", ["x"], "n"), ("ReduceSum", ["n", "axes"], "y")],
        {"x": shape},
        ["y"],
        {"axes": np.array([1])},
    )
    kept = layout.split("), ")[0] + "), ())"
    overrides = {"n": {"layout": layout}, "y": {"layout": kept}}
    result, _ = compiled(model, machine, overrides=overrides, layout_planner="first_arrival")
    x = np.random.default_rng(1).integers(-99, 99, shape).astype(np.float32)
    assert (run(result, {"x": x}, machine)["y"] == (-x).sum(1, keepdims=True)).all()
    assert all(part in result.vsm for part in wanted), result.vsm


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_maxima_and_minima(op: str) -> None:
    model = model_of(
        [("Neg", ["x"], "n"), (op, ["n", "axes"], "y")],
        {"x": (8, 16)},
        ["y"],
        {"axes": np.array([1])},
    )
    layout = LAYOUTS["MABs and L1Bs"][2]
    overrides = {"n": {"layout": layout}, "y": {"layout": "((8:1), ())"}}
    result, _ = compiled(model, overrides=overrides, layout_planner="first_arrival")
    x = np.random.default_rng(2).standard_normal((8, 16)).astype(np.float32)
    best = np.max if op == "ReduceMax" else np.min
    assert (run(result, {"x": x})["y"] == best(-x, 1, keepdims=True)).all()
    assert "l2bmr" in result.vsm


def test_the_number_of_steps() -> None:
    target = load_target("mncore2")
    l1bs = [PrimeDigit(2, 2), PrimeDigit(4, 2)]
    for digits in (l1bs, primes(target.level_range["L1B"])):
        over = frozenset((Level.L1B, digit) for digit in digits)
        found = network_of("ffadd", over, target)
        assert found is not None
        network, taken = found
        assert taken == over
        for vectors in (1, 2, 5):
            words = vectors * target.cycles
            part = Scratch("grf0")
            lines = [*up(network, part, words, 0, target)]
            lines += down(network, part, range(words), 0, target)
            room = space(network, words, target)
            pieces = room // target.transfer("l2bmrffadd", "up").source_words
            assert len(lines) == 2 * (vectors + pieces)
            assert all(isinstance(line, Step) for line in lines)
            assert room == len(network.l1bs) * vectors * network.vector


def test_without_l1bs_and_l2bs_there_is_no_network(target: Target) -> None:
    mabs = frozenset((Level.MAB, digit) for digit in primes(target.level_range["MAB"]))
    assert network_of("ffadd", mabs, target) is None


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_what_goes_up_at_once_fits(machine: str) -> None:
    """Even if each L1B is a set of its own, and without the network of the MABs."""
    target = load_target(machine)
    levels = [Level.L1B, Level.L2B, Level.MAB]
    units = {level: primes(target.level_range[level.value]) for level in levels}
    for taken in ([Level.L1B], [Level.L2B], [Level.L1B, Level.L2B], [Level.L2B, Level.MAB]):
        over = frozenset((level, digit) for level in taken for digit in units[level])
        found = network_of("ffadd", over, target)
        if found is None:
            continue
        words = words_at_once(found[0], target)
        assert words >= target.cycles
        assert space(found[0], words, target) <= capacity(found[0], target)
