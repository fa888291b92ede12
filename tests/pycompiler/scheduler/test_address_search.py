"""Placing buffers: nothing overlaps, nothing leaves its memory, and a full memory is filled."""

from __future__ import annotations

import itertools

import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_buffers import packed
from placements import overlaps

from pycompiler.scheduler.address_search import (
    Buffer,
    OutOfTimeError,
    best_fit,
    place,
)


def load(buffers: list[Buffer]) -> int:
    """Return the largest total size that is alive at one time."""
    starts = {b.start for b in buffers}
    return max((sum(b.size for b in buffers if b.start <= t < b.end) for t in starts), default=0)


def check(buffers: list[Buffer], places: dict[str, int], capacity: int) -> None:
    assert set(places) == {b.name for b in buffers}
    assert not list(overlaps(buffers, places))
    for buffer in buffers:
        found = places[buffer.name]
        assert found % buffer.align == 0
        assert 0 <= found <= capacity - buffer.size


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Buffer]:
    made = []
    for number in range(draw(st.integers(0, 14))):
        start = draw(st.integers(0, 12))
        end = start + draw(st.integers(1, 6))
        made.append(
            Buffer(
                f"b{number}",
                start,
                end,
                draw(st.integers(1, 20)),
                draw(st.sampled_from([1, 1, 2, 4])),
            )
        )
    return made


@given(lifetimes())
@settings(max_examples=tried(60))
def test_best_fit_places_everything(buffers: list[Buffer]) -> None:
    offsets, size = best_fit(buffers)
    check(buffers, offsets, size)
    assert size >= load(buffers)


@given(lifetimes(), st.integers(0, 40))
@settings(max_examples=tried(60))
def test_what_is_placed_fits(buffers: list[Buffer], spare: int) -> None:
    capacity = load(buffers) + spare
    try:
        found = place(buffers, capacity, seconds=2)
    except OutOfTimeError:
        return
    if found is not None:
        check(buffers, found, capacity)


def brute_force(buffers: list[Buffer], capacity: int) -> bool:
    """Whether the buffers fit in some order, if each takes the lowest free place."""
    for order in itertools.permutations(buffers):
        at: dict[str, int] = {}
        for buffer in order:
            met = [
                b for b in order if b.name in at and b.start < buffer.end and buffer.start < b.end
            ]
            floor = max((at[b.name] + b.size for b in met), default=0)
            at[buffer.name] = -(-floor // buffer.align) * buffer.align
        if all(at[b.name] + b.size <= capacity for b in buffers):
            return True
    return False


@given(lifetimes(), st.integers(0, 3))
@settings(max_examples=tried(60))
def test_the_answer_is_that_of_all_orders(buffers: list[Buffer], spare: int) -> None:
    few = buffers[:6]
    capacity = max(load(few) + spare, 1)
    found = place(few, capacity)
    assert (found is not None) == brute_force(few, capacity)
    if found is not None:
        check(few, found, capacity)


@pytest.mark.parametrize(("seed", "count"), [(s, n) for n in (8, 16, 24) for s in range(6)])
def test_a_full_memory_is_filled(seed: int, count: int) -> None:
    buffers = packed(seed, count)
    assert load(buffers) == 1 << 20
    found = place(buffers, 1 << 20, seconds=60)
    assert found is not None
    check(buffers, found, 1 << 20)
    assert place(buffers, (1 << 20) - 1) is None


def test_the_search_does_what_best_fit_cannot() -> None:
    wins = 0
    for seed in range(8):
        buffers = packed(100 + seed, 20)
        wins += best_fit(buffers)[1] > 1 << 20
        assert place(buffers, 1 << 20, seconds=60) is not None
    assert wins > 0


def test_time_is_limited() -> None:
    with pytest.raises(OutOfTimeError):
        place(packed(1, 300), 1 << 20, seconds=0.0)


def test_without_time_the_work_is_limited() -> None:
    """An instance takes as much work on each host."""
    buffers, found = packed(3, 24), list[bool]()
    for exponent in range(10, 27):
        try:
            found.append(place(buffers, 1 << 20, work=1 << exponent) is not None)
        except OutOfTimeError:
            found.append(False)
    assert found[-1]
    assert found == sorted(found)
    assert not found[0]


def test_what_has_no_size_lies_anywhere() -> None:
    buffers = [Buffer("none", 0, 3, 0), Buffer("all", 0, 3, 4)]
    assert place(buffers, 4) == {"none": 0, "all": 0}
    assert place(buffers[:1], 0) == {"none": 0}


def test_a_buffer_lives() -> None:
    with pytest.raises(ValueError, match="live"):
        place([Buffer("b", 3, 3, 1)], 4)
