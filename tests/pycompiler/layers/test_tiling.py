"""MNCoreTiles: axes cut into tiles with halo and padding, compared bit by bit with numpy."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import groupby
from math import prod

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from nest_counts import totals
from random_layouts import elements, some_layout
from tiled_shapes import result_shape

from pycompiler.code.lines import Fragment, Move
from pycompiler.code.nest import expand, stages
from pycompiler.cost.sequence import waiting_steps
from pycompiler.emit.program import concatenate
from pycompiler.graph import Layout, Level, Location, MNDtype, MNGraph, MNNode, MNValue, TensorType
from pycompiler.layers.switch.pass_code import aside_of
from pycompiler.layers.switch.pass_moves import Moves
from pycompiler.layers.tiling.axes import TILE_LEVELS, tiled_axes
from pycompiler.layers.tiling.code import tiles_code
from pycompiler.layers.tiling.layer import Tiles
from pycompiler.layers.tiling.plan import Exchange, Plan, Zeros
from pycompiler.machine import Target, load_target
from pycompiler.pfvm.device_functions import TILES

LAYER = Tiles()
DTYPES = (MNDtype.FLOAT, MNDtype.HALF, MNDtype.LONG)


def reference(x: np.ndarray, node: MNNode) -> np.ndarray:
    """Cut the axes of ``x`` from the last to the first; -1 where there is no element."""
    facts = dict(node.attributes)
    names = ("axes", "counts", "places", "before", "reach")
    rings = facts.get("rings", (0,) * len(facts["axes"]))
    rows = zip(*(facts[name] for name in names), rings, strict=True)
    for axis, count, places, before, reach, ring in reversed(list(rows)):
        index = np.arange(count)[:, None] * places + np.arange(reach) - before
        index = index % x.shape[axis] if ring else index
        inside = (index >= 0) & (index < x.shape[axis])
        wide = [1] * axis + [count, reach] + [1] * (x.ndim - axis - 1)
        x = np.take(x, np.clip(index, 0, x.shape[axis] - 1), axis=axis)
        x = np.where(inside.reshape(wide), x, -1)
        if count == 1:
            x = x.squeeze(axis)
    return x


def some_node(rng: random.Random, most: int) -> tuple[tuple[int, ...], MNNode]:
    """Draw the shape of an input, and a node that cuts one or two of its axes."""
    rank = rng.randint(1, 4)
    axes = sorted(rng.sample(range(rank), min(rank, rng.randint(1, 2))))
    shape = [rng.choice([1, 2, 3, 4, 8, 16]) for _ in range(rank)]
    columns = []
    for axis in axes:
        count, places = rng.choice([1, 1, 2, 3, 4, 7, 8, 16, 64]), rng.randint(1, 6)
        if count == 1 and rng.random() < 0.5:
            columns.append((axis, 1, shape[axis], 0, shape[axis] + rng.randint(1, 9)))
            continue
        before = rng.randint(0, min(4, places + 1))
        reach = max(1, before + places + rng.randint(-1 if not before else 0, 4))
        shape[axis] = max(1, count * places - rng.choice([0, 0, 1, places, places + 1]))
        columns.append((axis, count, places, before, reach))
    while prod(shape) > most:
        axis = max((a for a in range(rank) if a not in axes), key=lambda a: shape[a], default=None)
        if axis is None or shape[axis] == 1:
            break
        shape[axis] //= 2
    names = ("axes", "counts", "places", "before", "reach")
    attributes = tuple(zip(names, zip(*columns, strict=True), strict=True))
    full = [
        count > 1 and count & (count - 1) == 0 and shape[axis] == count * places
        for axis, count, places, *_ in columns
    ]
    near = [
        max(before, reach - before - places) < count * places
        for _, count, places, before, reach in columns
    ]
    if rng.random() < 0.5:
        rings = tuple(int(a and b) for a, b in zip(full, near, strict=True))
        attributes = (*attributes, ("rings", rings))
    return tuple(shape), MNNode("n", TILES, ("x",), ("y",), attributes)


def laid_out(
    rng: random.Random, node: MNNode, shape: tuple[int, ...], dtype: MNDtype, target: Target
) -> MNGraph | None:
    """Return a graph of the node with layouts near to random hints; None if LM has no room."""
    x = MNValue("x", TensorType("x", shape), dtype, Location.LM0)
    y = replace(x, name="y", location=Location.LM1)
    graph = MNGraph("g", target.name, nodes=(node,), values={"x": x, "y": y})
    wide = result_shape(node, graph)
    y = replace(y, type=TensorType("x", wide))
    graph = replace(graph, values={"x": x, "y": y})
    hints: dict[str, Layout] = {}
    if rng.random() < 0.7:
        name, own = rng.choice([("x", shape), ("y", wide)])
        hints[name] = some_layout(rng, own, dtype, target)
    ways = [LAYER.layouts(node, graph, target, hints)]
    ways += LAYER.candidates(node, graph, target, hints)
    chosen = rng.choice(ways)
    values = {
        n: replace(v, layout=chosen[n], num_lw=chosen[n].num_lw(target.cycles))
        for n, v in graph.values.items()
    }
    if any((v.num_lw or 0) > target.words("lm0") for v in values.values()):
        return None
    graph = replace(graph, values=values)
    said = list(LAYER.refusals(node, graph, target))
    assert all(dtype is MNDtype.HALF and "within long words" in reason for reason in said)
    return None if said else graph


def check(node: MNNode, graph: MNGraph, target: Target) -> None:
    """Run the node on random bits and compare every word of the result."""
    x, y = graph.values["x"], graph.values["y"]
    assert x.layout is not None
    assert y.layout is not None
    made = np.random.default_rng(5)
    bits, words, most = np.uint64(x.dtype.bits), x.dtype.words_per_long, 2**x.dtype.bits
    values = made.integers(1, most, prod(x.shape) + 1, dtype=np.uint64, endpoint=False)
    values[-1] = 0
    before = elements(x.layout, x.shape, x.dtype, target)
    junk = made.integers(1, most, before.shape, dtype=np.uint64, endpoint=False)
    data = np.where(before >= 0, values[before], junk)
    packed = np.zeros(before.shape[:-1], np.uint64)
    for word in range(words):
        packed |= data[..., word] << bits * np.uint64(words - 1 - word)
    machine = target.new_machine()
    machine.write("lm0", np.ascontiguousarray(packed.reshape(*target.pe_shape, -1)))
    made_code = LAYER.emit(node, graph, target)
    addresses = {"x": 0, "y": 0, aside_of(node): 64}
    text = concatenate([("n", TILES, made_code)], addresses, target).text
    machine.run(target.assemble(text, "tiles.vsm"))
    wanted = elements(y.layout, y.shape, y.dtype, target)
    found = machine.read("lm1", count=wanted.shape[-2]).reshape(wanted.shape[:-1])
    origin = reference(np.arange(prod(x.shape)).reshape(x.shape), node).reshape(-1)
    for word in range(words):
        here = found >> bits * np.uint64(words - 1 - word) & np.uint64(most - 1)
        held = wanted[..., word] >= 0
        assert np.array_equal(here[held], values[origin[wanted[..., word][held]]]), y.layout
    taken = stages(LAYER.code(node, graph, target), target)
    assert totals(taken, target) == totals(stages(made_code.lines, target), target)
    assert LAYER.cost(node, graph, target) == waiting_steps(taken, target)


@pytest.mark.parametrize(("machine", "examples"), [("mini", 60), ("mncore2", 12)])
def test_tiles_of_random_axes(machine: str, examples: int) -> None:
    target, done = load_target(machine), set[Level]()

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples, 25 * examples))
    def cut(seed: int) -> None:
        rng = random.Random(seed)
        shape, node = some_node(rng, 1 << 12)
        graph = laid_out(rng, node, shape, rng.choice(DTYPES), target)
        if graph is not None:
            check(node, graph, target)
            y = graph.values["y"]
            assert y.layout is not None
            for axis in tiled_axes(node, graph):
                if axis.count > 1:
                    done.update(sub.level for sub in y.layout.axes[axis.tiles] if sub.size > 1)

    cut()
    assert done >= {Level.ADDR, Level.MAB, Level.L1B}


@pytest.mark.parametrize(("halo", "together"), [(1, True), (2, True), (40, False)])
def test_halos_of_both_sides_cross_together(halo: int, together: bool) -> None:
    """All words go up before one comes down, if there is room: so MVs are waited for twice."""
    target = load_target("mncore2")
    count = prod(target.level_range[level.value] for level in TILE_LEVELS)
    places = 2 * halo + 1
    facts = {"axes": 0, "counts": count, "places": places, "before": halo, "reach": 4 * halo + 1}
    columns = tuple((name, (fact,)) for name, fact in facts.items())
    node = MNNode("n", TILES, ("x",), ("y",), columns)
    graph = laid_out(random.Random(0), node, (count * places - 2,), MNDtype.LONG, target)
    assert graph is not None
    check(node, graph, target)
    moves = [line for line in expand(LAYER.code(node, graph, target)) if isinstance(line, Move)]
    runs = [upwards for upwards, _ in groupby(moves, lambda move: move.source.memory == "l2bm")]
    assert (len(runs) == 2) == together


@pytest.mark.parametrize("shared", [True, False])
def test_zeros_behind_a_pass_over_mabs(shared: bool) -> None:
    """A line clears what it brings for one set of units; others are cleared behind it."""
    target = load_target("mini")
    count, cycles = target.counts["mab"], target.cycles
    own = np.arange(cycles)
    unit = np.repeat(np.arange(count), cycles)

    def neighbour(first: int, step: int) -> Exchange:
        at = np.tile(own, count)
        return Exchange(Level.MAB, [(Moves(unit, at + first, (unit + step) % count, at), {})])

    first, second = cycles + own, (cycles if shared else 2 * cycles) + own
    steps: list[Exchange | Zeros] = [
        neighbour(cycles, -1),
        Zeros(first, {Level.MAB: 1}),
        Zeros(second, {Level.MAB: 8}),
    ]
    if not shared:
        steps.insert(0, neighbour(2 * cycles, 1))
    found = Plan(np.stack([own, own], axis=1), tuple(steps))
    values = [
        MNValue(name, TensorType("float", (1,)), MNDtype.FLOAT, at)
        for name, at in (("x", Location.LM0), ("y", Location.LM1))
    ]
    lines = tuple(expand(tiles_code(found, *values, target)))
    machine = target.new_machine()
    place = {"group": 0, "l2b": 0, "l1b": 0, "pe": 0}
    x = np.arange(1, 1 + count * cycles, dtype=np.uint64).reshape(count, cycles)
    for mab in range(count):
        machine.write("lm0", x[mab], addr=0, mab=mab, **place)
    text = concatenate([("n", TILES, Fragment(lines))], {"x": 0, "y": 0}, target).text
    machine.run(target.assemble(text, "zeros.vsm"))
    wanted = np.concatenate([x, np.roll(x, 1, 0), 0 * x if shared else np.roll(x, -1, 0)], 1)
    wanted[0, first], wanted[count - 1, second] = 0, 0
    got = [machine.read("lm1", addr=0, count=3 * cycles, mab=m, **place) for m in range(count)]
    assert np.array_equal(np.asarray(got).reshape(count, -1), wanted)
