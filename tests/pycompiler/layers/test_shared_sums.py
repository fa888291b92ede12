"""Gradients of weights of which every unit keeps a share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from compiling import compiled, run, sampled
from gradient_models import Case, gradient_model, wanted_gradient
from nest_counts import check_counts

from pycompiler.code.lines import BlockOperand, Move, Step
from pycompiler.code.nest import expand
from pycompiler.graph.dtypes import MNDtype
from pycompiler.graph.graph import Location, MNGraph, MNNode, MNValue, TensorType
from pycompiler.graph.layout import Broadcast, Layout, Level, SubAxis
from pycompiler.graph.verify import layout_ranges
from pycompiler.layers.weight_gradient import joining, layer, layouts
from pycompiler.layers.weight_gradient.joining import JOIN
from pycompiler.layers.weight_gradient.layouts import shared, ways
from pycompiler.layers.weight_gradient.share_pieces import Shares
from pycompiler.layers.weight_gradient.shares import shares_of
from pycompiler.machine import Target, load_target
from pycompiler.planners.lpz import planner

MACHINE = "mncore2"
CASES: dict[str, Case] = {
    "all L1Bs joined": (32, 16, 16, (8, 8), (3, 3), 1, 1, 1),
    "columns on L1Bs": (32, 16, 32, (8, 8), (3, 3), 1, 1, 1),
    "two batches, 3 not among MABs": (32, 64, 64, (8, 8), (3, 3), 1, 1, 1),
    "one tap": (32, 32, 16, (8, 8), (1, 1), 1, 1, 0),
    "odd columns": (32, 16, 23, (8, 8), (3, 3), 1, 1, 1),
}


def _shared_only(
    node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
) -> Iterator[dict[str, Layout]]:
    """Yield only layouts in which units keep shares."""
    for found in ways(node, graph, target, hints):
        _, *others = shared(node, graph, target, found)
        yield from others


def _everywhere_only(
    node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
) -> Iterator[dict[str, Layout]]:
    """Yield only layouts in which each L2B has all shares."""
    for one in _shared_only(node, graph, target, hints):
        if not one[node.outputs[0]].on(Level.L2B):
            yield one


#: A case that other tests here have.
LONGER = ("two batches, 3 not among MABs",)


@pytest.mark.parametrize(
    ("name", "kind", "everywhere"),
    [
        *(
            pytest.param(name, "mixed", False, marks=pytest.mark.long if name in LONGER else ())
            for name in CASES
        ),
        ("columns on L1Bs", "float", True),
        ("two batches, 3 not among MABs", "mixed", True),
    ],
)
def test_sums(name: str, kind: str, everywhere: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole numbers of few bits have exact sums in every order."""
    monkeypatch.setattr(layer, "ways", _everywhere_only if everywhere else _shared_only)
    monkeypatch.setattr(layer, "shared", lambda *_: iter(()))
    case = CASES[name]
    model, shapes = gradient_model(case)
    result, _ = compiled(model, MACHINE, float_dtype=kind)
    check_counts(result.graph, load_target(MACHINE))
    (join,) = (node for node in result.graph.nodes if node.op == JOIN)
    own = result.graph.values[join.outputs[0]].layout
    assert own is not None
    assert bool(own.on(Level.L2B)) != everywhere
    rng = np.random.default_rng(list(CASES).index(name))
    data = {key: rng.integers(-7, 8, shape).astype(np.float32) for key, shape in shapes.items()}
    assert (run(result, data, MACHINE)["y"] == wanted_gradient(data["x"], data["g"], case)).all()


@pytest.mark.parametrize("share", sampled([0.1, 0.4, 0.6, 0.9]))
def test_other_digits_on_l2bs(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways differ in the digits that L2Bs get, and each gives the same sums."""
    seen: list[tuple[int, Layout]] = []

    def one_only(
        node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
    ) -> Iterator[dict[str, Layout]]:
        for found in ways(node, graph, target, hints):
            _, *others = shared(node, graph, target, found)
            if others:
                assert len({one[node.outputs[0]] for one in others}) == len(others)
                one = others[int(share * len(others))]
                seen.append((len(others), one[node.outputs[0]]))
                yield one

    monkeypatch.setattr(layer, "ways", one_only)
    monkeypatch.setattr(layer, "shared", lambda *_: iter(()))
    case = CASES["two batches, 3 not among MABs"]
    model, shapes = gradient_model(case)
    result, _ = compiled(model, MACHINE, float_dtype="mixed")
    check_counts(result.graph, load_target(MACHINE))
    (join,) = (node for node in result.graph.nodes if node.op == JOIN)
    assert result.graph.values[join.outputs[0]].layout in {layout for _, layout in seen}
    assert min(count for count, _ in seen) > 4
    rng = np.random.default_rng(int(10 * share))
    data = {key: rng.integers(-7, 8, shape).astype(np.float32) for key, shape in shapes.items()}
    assert (run(result, data, MACHINE)["y"] == wanted_gradient(data["x"], data["g"], case)).all()


@pytest.mark.parametrize("number", sampled([0, 7, 20, -1]))
@pytest.mark.parametrize("name", ["two batches, 3 not among MABs", "columns on L1Bs"])
def test_parts_from_all_drams(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """L2Bs that gather their pieces from all DRAMs have the same sums, also on 6 of 8 L2Bs."""
    case, sizes = CASES[name], set[int]()

    def gathered_only(
        partial: Layout, over: tuple[SubAxis, ...], dtype: MNDtype, target: Target
    ) -> tuple[Shares, ...]:
        found = [s for s in shares_of(partial, over, dtype, target) if s.plan.gathered]
        sizes.update(s.l2bs for s in found)
        return (found[number % len(found)],) if found else ()

    monkeypatch.setattr(layouts, "shares_of", gathered_only)
    monkeypatch.setattr(layer, "ways", _shared_only)
    monkeypatch.setattr(layer, "shared", lambda *_: iter(()))
    model, shapes = gradient_model(case)
    result, _ = compiled(model, MACHINE, float_dtype="mixed")
    check_counts(result.graph, load_target(MACHINE))
    (join,) = (node for node in result.graph.nodes if node.op == JOIN)
    assert (6 in sizes) == (name == "two batches, 3 not among MABs")
    homes = {m.source.group for m in _moves(join, result.graph) if m.source.memory == "dram"}
    assert homes == set(range(load_target(MACHINE).groups))
    rng = np.random.default_rng(number + 1)
    data = {key: rng.integers(-7, 8, shape).astype(np.float32) for key, shape in shapes.items()}
    assert (run(result, data, MACHINE)["y"] == wanted_gradient(data["x"], data["g"], case)).all()


def _moves(join: MNNode, graph: MNGraph) -> list[Move]:
    lines = joining.Join().emit(join, graph, load_target(MACHINE)).lines
    return [line for line in lines if isinstance(line, Move)]


def test_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares have the bits of sums that all units get, also if the parts pass through DRAM."""
    case = CASES["columns on L1Bs"]
    model, shapes = gradient_model(case)
    draw = np.random.default_rng(5)
    data = {key: draw.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
    found = set()
    for made, scheduler in (
        (ways, "spill_opt"),
        (_everywhere_only, "spill_opt"),
        (_shared_only, "always_from_dram"),
        (_shared_only, "auto_recompute_sa"),
    ):
        monkeypatch.setattr(layer, "ways", made)
        monkeypatch.setattr(layer, "shared", lambda *_: iter(()))
        options = {"float_dtype": "mixed", "scheduler": scheduler}
        result, _ = compiled(model, MACHINE, **options, sa_expected_run_iters=50)
        joins = [node for node in result.graph.nodes if node.op == JOIN]
        assert bool(joins) == (made is not ways)
        found.add(run(result, data, MACHINE)["y"].tobytes())
    assert len(found) == 1


def test_small_machine() -> None:
    """A machine with one L2B has nothing to share between L2Bs."""
    target = load_target("mini")
    assert target.level_range["L2B"] == 1
    model, _ = gradient_model(CASES["one tap"])
    result, _ = compiled(model, "mini", float_dtype="mixed")
    assert JOIN not in {node.op for node in result.graph.nodes}


@pytest.mark.long
def test_the_planner_takes_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares are tried behind the search for layouts, and taken where they cost fewer steps."""
    model, _ = gradient_model(CASES["two batches, 3 not among MABs"])
    steps = []
    for shares in (True, False):
        if not shares:
            monkeypatch.setattr(planner, "add_variants", lambda *_: False)
        result, report = compiled(model, MACHINE, float_dtype="mixed")
        assert (JOIN in {node.op for node in result.graph.nodes}) == shares
        (row,) = (row for row in report["passes"] if row["pass"] == "layout")
        steps.append(row["estimated_steps"]["lpz"]["steps"])
    assert steps[0] < 0.9 * steps[1]


#: Machines whose L2BM, L1BM or PDM is short of room for a vector of addresses.
SMALL = """extends = "mini"
[machine]
name = "small"
doc = "Groups of one L2B."
[counts]
group = {groups}
l1b = 8
mab = {mabs}
[[memory]]
name = "{memory}"
words = {words}
"""


@pytest.mark.parametrize(
    ("groups", "mabs", "memory", "words"),
    [
        (3, 8, "l2bm", 2048),
        (3, 4, "l1bm", 256),
        (3, 8, "pdm", 512),
        # Four DRAMs have parts for two places of MABs only.
        (4, 4, "l2bm", 8192),
        (4, 8, "l2bm", 4096),
    ],
)
def test_no_word_lies_outside_of_a_memory(
    groups: int, mabs: int, memory: str, words: int, tmp_path: Path
) -> None:
    """Where a memory has no room for a vector of addresses, there are fewer ways."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL.format(groups=groups, mabs=mabs, memory=memory, words=words))
    target = load_target(str(path))
    over = (SubAxis(groups, Level.L2B), SubAxis(mabs, Level.MAB))
    columns = (SubAxis(8, Level.L1B), SubAxis(4, Level.PE), SubAxis(2, Level.W))
    tried = 0
    for rows in (16, 32, 96, 192):
        partial = Layout(
            ((SubAxis(rows, Level.ADDR),), columns), (Broadcast(Level.L2B), Broadcast(Level.MAB))
        )
        for found in shares_of(partial, over, MNDtype.FLOAT, target):
            tried += 1
            for level, count in layout_ranges(target).items():
                assert found.layout.extent(level) <= count or level is Level.ADDR
            ends = [
                MNValue(
                    name,
                    TensorType("float", (rows, 64)),
                    MNDtype.FLOAT,
                    location,
                    layout,
                    layout.num_lw(target.cycles),
                    addr=0,
                )
                for name, location, layout in (
                    ("parts", Location.LM0, partial),
                    ("sum", Location.LM1, found.layout),
                )
            ]
            for line in expand(joining.join_code(found, *ends, "sums", target)):
                if isinstance(line, Move):
                    operands: list[object] = [line.source, line.destination]
                else:
                    assert isinstance(line, Step)
                    (one,) = line.instructions
                    operands = [*one.sources, *one.destinations]
                for operand in operands:
                    if isinstance(operand, BlockOperand):
                        end = operand.offset + operand.words
                        assert end <= target.words(operand.memory), (rows, found.everywhere)
    assert tried
