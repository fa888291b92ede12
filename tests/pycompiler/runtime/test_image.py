"""DRAM images against a slow reference, and those of which all L1Bs hold copies against others."""

from __future__ import annotations

import random
import tracemalloc
from math import prod

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_image import held, lm_words

from pycompiler.errors import PycompilerError
from pycompiler.graph import Broadcast, Layout, Level, MNDtype, SubAxis, parse_layout
from pycompiler.graph.layout import UNIT_LEVELS
from pycompiler.layers import dram_transfer_order
from pycompiler.layers.dram_transfer_order import orders_of, words_at
from pycompiler.layers.dram_transfer_plan import Transfer, plan_transfer
from pycompiler.layers.lookup.rows import table_layout
from pycompiler.machine import IntArray, Target, load_target
from pycompiler.planners.axis_classes import machine_digits
from pycompiler.runtime.image import DramImage

DTYPES = {MNDtype.FLOAT: np.uint32, MNDtype.LONG: np.int64, MNDtype.HALF: np.uint16}


class General(DramImage):
    """An image that never looks at one L1B alone."""

    @property
    def alike(self) -> bool:  # type: ignore[override]
        return False

    @alike.setter
    def alike(self, found: bool) -> None:
        self.was_alike = found


def same_images(layout: Layout, shape: tuple[int, ...], dtype: MNDtype, target: Target) -> bool:
    """Both images agree on every word; return whether one of them was made of one L1B.

    The general code leaves a group empty if none of its L2Bs has a copy. The other code does not.
    """
    general, image = General(layout, shape, dtype, target), DramImage(layout, shape, dtype, target)
    kind = np.dtype(DTYPES[dtype])
    array = (np.arange(prod(shape), dtype=np.int64) * 40503 + 1).astype(kind).reshape(shape)
    words = image.pack(array)
    assert words.shape == (target.groups, image.dram_words)
    assert image.dram_words == general.dram_words
    held = (general.owners.reshape(target.groups, -1) >= 0).any(1)
    assert held[0]
    assert np.array_equal(words[held], general.pack(array)[held])
    if not general.was_alike:
        assert np.array_equal(words, general.pack(array))
    for packed in (words, general.pack(array)):
        assert np.array_equal(image.unpack(packed, kind), array)
        assert np.array_equal(general.unpack(packed, kind), array)
    return general.was_alike


def some_layout(
    rng: random.Random, dtype: MNDtype, target: Target, levels: set[Level]
) -> tuple[Layout, tuple[int, ...]]:
    """Axes on ``levels`` and in Addr, copies on some other units, and a shape with padding."""
    axes: list[list[SubAxis]] = [[] for _ in range(rng.randint(1, 3))]
    copies: list[Broadcast] = []
    for digit in machine_digits(target, dtype.words_per_long):
        if digit.level in levels and rng.random() < 0.6:
            axis = rng.choice(axes)
            axis.insert(rng.randint(0, len(axis)), SubAxis(digit.size, digit.level, digit.stride))
        elif digit.level is Level.W or rng.random() < 0.7:
            copies.append(Broadcast(digit.level, digit.size, digit.stride))
    stride = 1
    for axis in rng.sample(axes, len(axes)):
        size = rng.choice([1, 2, 3, 5, 8, 13])
        axis.insert(rng.randint(0, len(axis)), SubAxis(size, Level.ADDR, stride))
        stride *= size
    layout = Layout(tuple(map(tuple, axes)), tuple(copies))
    return layout, tuple(rng.randint(1, size) for size in layout.padded_shape)


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize(("machine", "examples"), [("mini", 40), ("mncore2", 8)])
def test_drawn_layouts(machine: str, examples: int, above: bool) -> None:
    target = load_target(machine)

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples))
    def case(seed: int) -> None:
        rng = random.Random(seed)
        levels = {Level.MAB, Level.PE, Level.W} | ({Level.L1B, Level.L2B} if above else set())
        dtype = rng.choice(list(DTYPES))
        layout, shape = some_layout(rng, dtype, target, levels)
        alike = same_images(layout, shape, dtype, target)
        used = {part.level for axis in layout.axes for part in axis}
        assert alike == (not used & {Level.L1B, Level.L2B})

    case()


@pytest.mark.parametrize(("machine", "examples"), [("mini", 20), ("mncore2", 2)])
def test_every_copy_of_every_element(machine: str, examples: int) -> None:
    """Each word of an image is the element that all places hold that read it, or nothing."""
    target = load_target(machine)

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples, 25 * examples))
    def case(seed: int) -> None:
        rng = random.Random(seed)
        dtype = rng.choice(list(DTYPES))
        levels = set(rng.sample(list(Level), rng.randint(1, len(Level))))
        layout, shape = some_layout(rng, dtype, target, levels)
        shape = tuple(min(size, rng.choice([3, 7, 30])) for size in shape)
        image = DramImage(layout, shape, dtype, target)
        fill = np.broadcast_to(
            image.owners.reshape(-1, image.dram_words, image.words_per_long),
            (target.groups, image.dram_words, image.words_per_long),
        )
        wanted = held(layout, shape, dtype, target)
        assert all({int(fill[place])} == elements for place, elements in wanted.items())
        groups = {group for group, *_ in wanted}
        filled = {place for place in zip(*np.nonzero(fill >= 0), strict=True)}
        assert {place for place in filled if place[0] in groups} == set(wanted)
        plan = plan_transfer(layout, target)
        words = lm_words(plan)
        words = words.reshape(-1, *words.shape[2:])
        at = dict(
            zip((*UNIT_LEVELS, Level.ADDR), np.indices(words.shape, sparse=True), strict=True)
        )
        group, word = words_at(plan, orders_of(plan), at)
        assert np.array_equal(group * plan.dram_words + word, words)

    case()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(300, 24), (1, 131), (129, 1), (61, 700)])
def test_tables(target: Target, shape: tuple[int, int], dtype: MNDtype) -> None:
    assert same_images(table_layout(shape, dtype, target), shape, dtype, target)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_are_packed_in_blocks(dtype: MNDtype) -> None:
    """Each element is where the image says, also where a block ends."""
    target, shape = load_target("mini"), (307, 17)
    image = DramImage(table_layout(shape, dtype, target), shape, dtype, target)
    array = np.arange(1, prod(shape) + 1, dtype=np.dtype(DTYPES[dtype])).reshape(shape)
    words = image.pack(array)
    assert len(list(image.blocks())) > 3
    bits, count = 64 // image.words_per_long, image.words_per_long
    for element, value in enumerate(array.flat):
        group, long, part = image.place(element)
        word = int(words[group, long]) >> bits * (count - 1 - part) & (1 << bits) - 1
        assert word == value


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_orders_are_read_where_they_are(dtype: MNDtype) -> None:
    """Transposed, repeated and turned arrays have the words of row-major ones."""
    target, shape = load_target("mini"), (37, 11)
    image = DramImage(table_layout(shape, dtype, target), shape, dtype, target)
    draw = np.random.default_rng(0).integers(0, 1 << 14, (2, 40, 40)).astype(DTYPES[dtype])
    one = draw[0, :37, :11]
    others = [draw[1, 2:13, :37].T, draw[1, :37, 5:16], draw[0, ::-1, :][:37, 29:]]
    others += [np.broadcast_to(draw[1, 0, :11], shape), draw[:, :37, 0:22:2][0]]
    for array in (one, *others):
        assert np.array_equal(image.pack(array), image.pack(array.copy(order="C")))


def test_nothing_of_a_tensors_size_is_made_for_its_order() -> None:
    """The host has the tensor and its long words, and little else."""
    target, shape = load_target("mncore2"), (30_000, 512)
    layout, array = table_layout(shape, MNDtype.FLOAT, target), np.ones(shape, np.float32)
    tracemalloc.start()
    try:
        image = DramImage(layout, shape, MNDtype.FLOAT, target)
        assert tracemalloc.get_traced_memory()[1] < array.nbytes // 10
        tracemalloc.reset_peak()
        words = image.pack(array)
        own = words.base.nbytes if words.base is not None else words.nbytes
        assert tracemalloc.get_traced_memory()[1] < own + array.nbytes // 5
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        # Chunks of several sizes, by l1bmd and by l1bmm.
        ("((500:1), (4_MAB:1, 4_PE:1, 2_W:1); B@[L1B])", (499, 30)),
        ("((501:1), (4_PE:1, 2_W:1); B@[MAB,L1B])", (501, 7)),
        ("((77:1, 2_MAB:2), (4_PE:1, 2_W:1); B@[2_MAB:1,L1B])", (150, 8)),
        ("((3:1); B@[W,PE,MAB,L1B])", (2,)),
        ("((3:1); B@[W])", (3,)),
    ],
)
def test_several_chunks(text: str, shape: tuple[int, ...]) -> None:
    target, layout = load_target("mini"), parse_layout(text)
    assert same_images(layout, shape, MNDtype.FLOAT, target)


def test_there_are_chunks_of_several_sizes() -> None:
    layout = parse_layout("((500:1), (4_MAB:1, 4_PE:1, 2_W:1); B@[L1B])")
    plan = plan_transfer(layout, load_target("mini"))
    assert len({chunk.lm_steps for chunk in plan.chunks}) == 2


def test_two_elements_in_one_place_are_refused() -> None:
    layout = Layout(((SubAxis(2, Level.PE, 1), SubAxis(2, Level.PE, 1)),))
    for image in (DramImage, General):
        with pytest.raises(PycompilerError) as caught:
            image(layout, (4,), MNDtype.FLOAT, load_target("mini"))
        assert caught.value.code == "P0402"


def test_the_order_looks_at_each_word_of_dram_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the whole tensor for each chunk."""
    seen, move = 0, dram_transfer_order._move

    def counted(transfer: Transfer, target: Target, dram: IntArray, l2bm: IntArray) -> None:
        nonlocal seen
        seen += dram.size
        move(transfer, target, dram, l2bm)

    monkeypatch.setattr(dram_transfer_order, "_move", counted)
    target = load_target("mini")
    for rows in (500, 4000):
        plan = plan_transfer(
            parse_layout(f"(({rows}:1), (4_MAB:1, 4_PE:1, 2_W:1); B@[L1B])"), target
        )
        seen = 0
        orders_of(plan)
        assert len(plan.chunks) > rows // 500
        assert 0 < seen <= 4 * target.groups * plan.dram_words
