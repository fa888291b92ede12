"""Values that move apart in LM, against a slow reference."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from compiling import compiled
from net import Net
from placements import overlaps

from emu2 import _core
from pycompiler.graph.graph import Location
from pycompiler.scheduler import address_planner
from pycompiler.scheduler.address_search import Buffer
from pycompiler.scheduler.best_fit import Block, Chains
from pycompiler.scheduler.spread_addresses import spread

Rows = list[tuple[int, int, int, int]]


def slow(
    rows: Rows, offsets: Sequence[int], fixed: Sequence[bool], capacity: int, window: int
) -> list[int]:
    """Move one buffer after the other to the offset that costs least, until none moves."""
    at = list(offsets)

    def cost(index: int, offset: int) -> float | None:
        start, end, size, _ = rows[index]
        before = behind = window + 1
        for other, (from_, to, width, _) in enumerate(rows):
            apart = at[other] + width <= offset or offset + size <= at[other]
            if other == index or apart:
                continue
            if to <= start:
                before = min(before, start - to + 1)
            elif end <= from_:
                behind = min(behind, from_ - end + 1)
            else:
                return None
        return 1 / before + 1 / behind

    for _ in range(4):
        was = list(at)
        for index in sorted(range(len(rows)), key=lambda number: rows[number][0]):
            if fixed[index]:
                continue
            own = cost(index, at[index])
            assert own is not None
            lowest = own - 1e-9
            for offset in range(0, capacity - rows[index][2] + 1, rows[index][3]):
                found = cost(index, offset)
                if found is not None and found < lowest:
                    at[index], lowest = offset, found
        if at == was:
            break
    return at


@pytest.mark.parametrize("seed", range(60))
def test_offsets_are_those_of_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    length, capacity = rng.choice([8, 30, 90]), rng.choice([6, 24, 60])
    rows: Rows = []
    offsets: list[int] = []
    for _ in range(rng.randint(1, 60)):
        start, align = rng.randrange(length), rng.choice([1, 1, 1, 2, 3])
        row = start, start + rng.randint(1, 8), rng.randint(1, max(1, capacity // 4)), align
        free = [
            offset
            for offset in range(0, capacity - row[2] + 1, align)
            if all(
                other[1] <= row[0]
                or row[1] <= other[0]
                or at + other[2] <= offset
                or offset + row[2] <= at
                for other, at in zip(rows, offsets, strict=True)
            )
        ]
        if free:
            rows.append(row)
            offsets.append(rng.choice(free))
    fixed = [rng.random() < 0.1 for _ in rows]
    window = rng.choice([1, 5, 40])
    found = _core.spread_offsets(rows, offsets, fixed, capacity, window)
    assert found == slow(rows, offsets, fixed, capacity, window)
    assert all(a == b for a, b, stays in zip(found, offsets, fixed, strict=True) if stays)
    buffers = [Buffer(str(n), *row) for n, row in enumerate(rows)]
    places = {str(n): at for n, at in enumerate(found)}
    assert not list(overlaps(buffers, places))


@pytest.mark.parametrize(
    ("rows", "offsets"),
    [
        ([(0, 2, 3, 1), (1, 3, 3, 1)], [0, 2]),  # they meet
        ([(0, 2, 3, 1)], [6]),  # past the end
        ([(0, 2, 3, 1)], [-1]),
        ([(0, 2, 2, 2)], [1]),  # not aligned
        ([(2, 2, 3, 1)], [0]),  # no life
        ([(0, 2, 0, 1)], [0]),  # no size
        ([(0, 2, 3, 1)], []),
    ],
)
def test_what_is_no_placement_is_refused(rows: Rows, offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="placement"):
        _core.spread_offsets(rows, offsets, [False] * len(rows), 8, 4)


def test_a_window_has_moments() -> None:
    with pytest.raises(ValueError, match="window"):
        _core.spread_offsets([(0, 2, 3, 1)], [0], [False], 8, 0)


def moved_apart(blocks: list[Block]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the addresses of best fit, and those further apart."""
    chains = Chains(blocks)
    found, _ = chains.packed(chains.starts)
    return chains.of_blocks(found), chains.of_blocks(spread(chains, found, 16, 4))


def test_short_blocks_leave_words_alone() -> None:
    """Blocks one after the other get other words each time; best fit gives them the same ones."""
    blocks = [Block(f"b{n}", 4, n, n) for n in range(16)]
    addresses, moved = moved_apart(blocks)
    assert set(addresses.values()) == {0}
    assert set(moved.values()) == {0, 4, 8, 12}
    assert all(moved[f"b{n}"] != moved[f"b{n + 1}"] for n in range(15))


def test_given_addresses_stay_and_chains_keep_together() -> None:
    blocks = [
        Block("a", 8, 0, 3),
        Block("b", 4, 4, 6, on="a"),
        Block("c", 4, 7, 9, at=0),
        Block("d", 4, 10, 12),
        Block("e", 0, 0, 12),
    ]
    addresses, moved = moved_apart(blocks)
    assert moved["a"] == moved["b"]
    assert moved["c"] == 0
    assert moved["d"] != 0
    assert moved.keys() == addresses.keys()


def test_the_address_planner_moves_values_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program has fewer words that are written soon after they were read."""
    net = Net(random.Random(5), 40, 16)
    value = "x"
    for _ in range(6):
        value = net.put("Sin", net.put("MatMul", value, net.weights(16, 16)))
    model = net.model([value])

    def again_soon() -> int:
        graph = compiled(model, "mini")[0].graph
        last, born = graph.last_use(), {}
        for number, node in enumerate(graph.nodes):
            born |= dict.fromkeys(node.outputs, number)
        found = [
            (value.addr or 0, (value.addr or 0) + (value.num_lw or 0), born[name], last[name])
            for name, value in graph.values.items()
            if value.location is Location.LM0 and name in born and name in last
        ]
        return sum(
            low < high_of and low_of < high and 0 < start - stop_of < 4
            for low, high, start, _ in found
            for low_of, high_of, _, stop_of in found
        )

    moved = again_soon()
    monkeypatch.setattr(address_planner, "spread", lambda blocks, addresses, *_: addresses)
    assert moved < again_soon()
