"""Downloads and uploads: DRAM images against the layout's formula, read from the emulator."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_layouts import brute_force

import emu2
from pycompiler.emit.program import concatenate
from pycompiler.errors import PycompilerError
from pycompiler.graph import (
    Broadcast,
    Layout,
    Level,
    Location,
    MNDtype,
    MNGraph,
    MNNode,
    MNValue,
    SubAxis,
    TensorType,
    parse_layout,
)
from pycompiler.graph.layout import UNIT_LEVELS
from pycompiler.layers.dram_transfer import DOWNLOAD, UPLOAD
from pycompiler.layers.dram_transfer_plan import plan_transfer
from pycompiler.layers.operators import LAYERS
from pycompiler.machine import Target, load_target
from pycompiler.planners.axis_classes import machine_digits
from pycompiler.runtime.image import DramImage


@st.composite
def placed(draw: st.DrawFn, target: Target) -> tuple[Layout, tuple[int, ...]]:
    """A legal float layout that uses the machine's digits in any order, and a shape for it."""
    axes: list[list[SubAxis]] = [[] for _ in range(draw(st.integers(0, 3)))]
    broadcast: list[Broadcast] = []
    used: set[Level] = set()
    for digit in draw(st.permutations(machine_digits(target, 2))):
        where = draw(st.integers(-2, len(axes) - 1))
        if where >= 0:
            axes[where].append(SubAxis(digit.size, digit.level, digit.stride))
            used.add(digit.level)
        elif where == -1 or digit.level is Level.W:
            broadcast.append(Broadcast(digit.level, digit.size, digit.stride))
    stride = 1
    for axis in axes:
        if draw(st.booleans()):
            size = draw(st.sampled_from([2, 3, 5]))
            axis.insert(draw(st.integers(0, len(axis))), SubAxis(size, Level.ADDR, stride))
            stride *= size
    layout = Layout(tuple(map(tuple, axes)), tuple(broadcast))
    shape = tuple(draw(st.integers(1, size)) for size in layout.padded_shape)
    return layout, shape


def run_transfers(
    layout: Layout, shape: tuple[int, ...], target: Target, array: np.ndarray
) -> tuple[emu2.Machine, np.ndarray]:
    """Move ``array`` to LM1 address 8 and back to DRAM; return the machine and the result."""
    words = plan_transfer(layout, target).dram_words
    home = TensorType("float", shape)
    lw = layout.num_lw(target.cycles)
    dram = MNValue("a", home, MNDtype.FLOAT, Location.DRAM, layout, lw, addr=target.mv_unit)
    values = {
        "a": dram,
        "b": replace(dram, name="b", location=Location.LM1, addr=8),
        "c": replace(dram, name="c", addr=target.mv_unit + words),
    }
    nodes = (MNNode("d", DOWNLOAD, ("a",), ("b",)), MNNode("u", UPLOAD, ("b",), ("c",)))
    graph = MNGraph("g", target.name, inputs=("a",), nodes=nodes, values=values)
    fragments = [(n.name, n.op, LAYERS[n.op].emit(n, graph, target)) for n in nodes]
    assert [f.steps for *_, f in fragments] == [LAYERS[n.op].cost(n, graph, target) for n in nodes]
    code = concatenate(fragments, {name: v.addr or 0 for name, v in values.items()}, target)
    image = DramImage(layout, shape, MNDtype.FLOAT, target)
    machine = target.new_machine()
    for group, packed in enumerate(image.pack(array)):
        machine.write("dram", packed, addr=target.mv_unit, group=group)
    program = target.assemble(code.text, "transfer.vsm")
    machine.run(program)
    moved = program.report()["dram_words"]
    assert moved["read"] == sum(row.dram_read for row in code.nodes)
    assert moved["written"] == sum(row.dram_written for row in code.nodes)
    back = np.stack(
        [
            machine.read("dram", addr=values["c"].addr or 0, count=words, group=group)
            for group in range(target.groups)
        ]
    )
    return machine, image.unpack(back, np.dtype(np.float32))


def check_lm(
    layout: Layout, shape: tuple[int, ...], target: Target, array: np.ndarray, lm: np.ndarray
) -> None:
    """Every element must be at its place, and at the place of each of its copies."""
    ranges = {Level(k): v for k, v in target.level_range.items()} | {Level.W: 2}
    copies = [{}]
    for sub in layout.copies(ranges):
        copies = [
            {**c, sub.level: c.get(sub.level, 0) + d * sub.stride}
            for c in copies
            for d in range(sub.size)
        ]
    if not layout.on(Level.W) and not any(e.level is Level.W for e in layout.broadcast):
        copies = [{**c, Level.W: w} for c in copies for w in range(2)]
    rng = np.random.default_rng(0)
    elements = list(np.ndindex(shape))
    chosen = [elements[i] for i in rng.permutation(len(elements))[:60]]
    for index in chosen:
        own = brute_force(str(layout), index)
        for copy in [copies[i] for i in rng.permutation(len(copies))[:12]]:
            at = {lv: own.get(lv.value, 0) + copy.get(lv, 0) for lv in Level}
            group, l2b = divmod(at[Level.L2B], target.l2bs_per_group)
            unit = (group, l2b, at[Level.L1B], at[Level.MAB], at[Level.PE])
            word = int(lm[(*unit, at[Level.ADDR])])
            bits = word >> 32 if at[Level.W] == 0 else word & 0xFFFFFFFF
            assert np.uint32(bits).view(np.float32) == array[index], (index, at)


def some_array(shape: tuple[int, ...]) -> np.ndarray:
    return (np.arange(prod(shape), dtype=np.float32) + 1).reshape(shape)


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_any_layout_arrives_and_returns(machine: str) -> None:
    target = load_target(machine)

    @given(placed(target))
    @settings(max_examples=tried(30, 600) if machine == "mini" else tried(6, 150))
    def check(case: tuple[Layout, tuple[int, ...]]) -> None:
        layout, shape = case
        array = some_array(shape)
        board, back = run_transfers(layout, shape, target, array)
        lm = board.read("lm1", addr=8, count=layout.num_lw(target.cycles))
        check_lm(layout, shape, target, array, lm)
        assert np.array_equal(back, array)

    check()


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("((8_L2B:1, 4:2, 8_L1B:1), (2:1, 4_PE:1, 2_W:1); B@[MAB])", (256, 16)),
        ("((4_L2B:2, 64:2), (2:1, 4_PE:1, 2_W:1); B@[MAB,L1B,2_L2B:1])", (256, 16)),
        ("((16:1), (8_MAB:2, 8_L1B:1, 2_MAB:1, 4_PE:1, 2_W:1); B@[L2B])", (16, 1024)),
        # The groups hold copies, the L2Bs of a group do not: in one chunk, and in several.
        ("((2_L2B:1, 8_L1B:1), (5:1, 4_PE:1, 2_W:1); B@[MAB,4_L2B:2])", (15, 37)),
        ("((700:1, 2_L2B:1, 8_L1B:1), (16_MAB:1, 4_PE:1, 2_W:1); B@[4_L2B:2])", (11000, 128)),
        # As before, but nothing says that the groups hold copies.
        ("((2_L2B:1, 8_L1B:1), (5:1, 4_PE:1, 2_W:1); B@[MAB])", (15, 37)),
        ("((2_L2B:1, 8_L1B:1), (5:1, 4_PE:1, 2_W:1); B@[MAB,2_L2B:2])", (15, 37)),
        ("((8_L2B:1, 8:2), (16_MAB:1, 2:1, 4_PE:1); B@[L1B,W])", (64, 128)),
        ("((512:1, 8_L2B:1), (8_L1B:1, 16_MAB:1, 4_PE:1, 2_W:1))", (4096, 1024)),
        ("((100:1); B@[W,PE,MAB,L1B,L2B])", (100,)),
        ("(; B@[W,...])", ()),
        ("((20:1, 2_MAB:2, 4_PE:1, 2_W:1); B@[2_MAB:1,4_MAB:4,L1B,L2B])", (300,)),
        ("((36:1, 8_MAB:2, 4_PE:1, 2_W:1); B@[2_MAB:1,L1B,L2B])", (2000,)),
        ("((5:1, 2_L1B:4, 2_MAB:1, 4_PE:1, 2_W:1); B@[8_MAB:2,4_L1B:1,L2B])", (150,)),
        # The fourth MAB of each four has no element.
        ("((3_MAB:1, 4_PE:1, 2_W:1), (9:1); B@[4_MAB:4,L1B,L2B])", (24, 9)),
        ("((5:1, 3_L1B:1, 4_PE:1, 2_W:1), (2:5); B@[MAB,2_L1B:4,L2B])", (120, 2)),
    ],
)
def test_known_layouts(text: str, shape: tuple[int, ...]) -> None:
    target, layout, array = load_target("mncore2"), parse_layout(text), some_array(shape)
    board, back = run_transfers(layout, shape, target, array)
    lm = board.read("lm1", addr=8, count=layout.num_lw(target.cycles))
    check_lm(layout, shape, target, array, lm)
    assert np.array_equal(back, array)


@pytest.mark.parametrize(
    ("text", "to_pe", "to_l1", "words"),
    [
        # Two sets of MABs: each long word of a PE once per set, 64 steps of 16 long words for each.
        ("((64:1, 2_MAB:2, 4_PE:1); B@[W,2_MAB:1,4_MAB:4,L1B,L2B])", "l1bmm", "l2bmb", 512),
        # Pairs of L1Bs: two sets, each with 64 long words for each of its 64 PEs.
        ("((64:1, 2_L1B:4, 16_MAB:1, 4_PE:1); B@[W,4_L1B:1,L2B])", "l1bmd", "l2bmb", 8192),
        # A whole level apart, or a whole level alike: no sets.
        ("((64:1, 8_L1B:1, 16_MAB:1, 4_PE:1); B@[W,L2B])", "l1bmd", "l2bmd", 32768),
        ("((64:1, 4_PE:1); B@[W,MAB,L1B,L2B])", "l1bmm", "l2bmb", 256),
        # 5, 6 and 65 long words, where vectors have 8, 8 and 68: two L2Bs of 512 PEs each.
        ("((5:1, 8_L2B:1, 8_L1B:1, 16_MAB:1, 4_PE:1); B@[W])", "l1bmd", "l2bmd", 5 * 1024),
        ("((6:1, 8_L2B:1, 8_L1B:1, 16_MAB:1, 4_PE:1); B@[W])", "l1bmd", "l2bmd", 6 * 1024),
        ("((65:1, 8_L2B:1, 8_L1B:1, 16_MAB:1, 4_PE:1); B@[W])", "l1bmd", "l2bmd", 65 * 1024),
    ],
)
def test_dram_holds_no_copies_of_equal_units(text: str, to_pe: str, to_l1: str, words: int) -> None:
    plan = plan_transfer(parse_layout(text), load_target("mncore2"))
    assert (plan.to_pe.mnemonic, plan.to_l1.mnemonic, plan.dram_words) == (to_pe, to_l1, words)


@pytest.mark.parametrize(
    ("text", "moves", "dram_words", "mv_words"),
    [
        # 64 MABs of 64 long words on each L2B: 4,096 long words.
        ("((64:1, 8_L2B:1, 4_PE:1, 16_MAB:1); B@[W,L1B])", ("mvp", "mvp"), 8192, 8192),
        ("((64:1, 4_L2B:2, 4_PE:1, 16_MAB:1); B@[W,L1B,2_L2B:1])", ("mvb2", "mvp"), 4096, 4096),
        # Each DRAM has a quarter of what the two L2Bs of a group hold.
        (
            "((64:1, 2_L2B:1, 4_PE:1, 16_MAB:1); B@[W,L1B,4_L2B:2])",
            ("mvb4", "mvr4lbor"),
            2048,
            4096,
        ),
        # Copies that the layout does not promise.
        ("((64:1, 2_L2B:1, 4_PE:1, 16_MAB:1); B@[W,L1B])", ("mvp", "mvp"), 8192, 8192),
    ],
)
def test_each_dram_has_a_part_of_what_all_groups_hold(
    text: str, moves: tuple[str, str], dram_words: int, mv_words: int
) -> None:
    plan = plan_transfer(parse_layout(text), load_target("mncore2"))
    (chunk,) = plan.chunks
    down, up = plan.moves_down(chunk, 0), plan.moves_up(chunk, 0)
    assert (next(down).mnemonic, next(up).mnemonic) == moves
    assert (plan.dram_words, plan.mv_words) == (dram_words, mv_words)


def test_the_largest_share(target: Target) -> None:
    words = target.words("lm1") - 8
    axes = [SubAxis(words, Level.ADDR)]
    axes += [SubAxis(target.level_range[lv.value], lv) for lv in UNIT_LEVELS]
    layout = Layout((tuple(axes),), (Broadcast(Level.W),))
    if target.name == "mncore2":
        layout = Layout(((axes[0],),), (Broadcast(Level.W), Broadcast(None)))
    shape = layout.padded_shape
    assert np.array_equal(
        run_transfers(layout, shape, target, some_array(shape))[1], some_array(shape)
    )


def test_dtypes_of_other_widths() -> None:
    target = load_target("mini")
    for dtype, array_dtype in [(MNDtype.DOUBLE, np.int64), (MNDtype.HALF, np.uint16)]:
        words = dtype.words_per_long
        layout = parse_layout(f"((3:1, 4_PE:1, {words}_W:1); B@[MAB,L1B,L2B])")
        image = DramImage(layout, (12 * words - 1,), dtype, target)
        array = np.arange(12 * words - 1, dtype=array_dtype) * 257
        assert np.array_equal(image.unpack(image.pack(array), np.dtype(array_dtype)), array)


def test_two_elements_in_one_place_are_refused() -> None:
    layout = Layout(((SubAxis(2, Level.ADDR, 1), SubAxis(2, Level.ADDR, 1)),))
    with pytest.raises(PycompilerError) as caught:
        DramImage(layout, (4,), MNDtype.DOUBLE, load_target("mini"))
    assert caught.value.code == "P0402"
