"""The shortcuts of the search for other words: the same places as with all times computed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st

from emu2._core import Access, Ready, Timeline
from pycompiler.code.lines import BlockOperand, Move, PeOperand, alu_step
from pycompiler.emit.other_words import OtherWords, _Use
from pycompiler.emit.ports import rules_of
from pycompiler.emit.ready import Addressed
from pycompiler.machine import load_target

TARGET = load_target("mini")
SEEDS = st.integers(0, 2**32 - 1)


def move(low: int, words: int) -> Ready:
    """An MV into words of one L2B, which holds it for four cycles."""
    source = BlockOperand("dram", 0, words, group=0)
    line = Move("mvp", words, source, BlockOperand("l2bm", low, words, l2b=0, group=0))
    return Ready.of_move(rules_of(TARGET), line, {}, "mv", (["l2bm"], 4, 0))


class Times:
    """A timeline with drawn times, each at least -1."""

    def __init__(self, rng: random.Random):
        self.rng, self.known = rng, dict[tuple[int, int], int]()

    def last_of(self, access: Access, more: int) -> int:
        key = id(access), more
        return self.known.setdefault(key, self.rng.choice([-1, -1, 0, 1, 2, 5, 9]))


@given(SEEDS)
@settings(max_examples=tried(200))
def test_the_first_place_is_that_of_all_times(seed: int) -> None:
    rng = random.Random(seed)
    others, low = OtherWords(TARGET, 1 << 30), 32 * rng.randrange(4)
    use = _Use(low, low + rng.randint(1, 40))
    for number in range(rng.randint(1, 5)):
        register = PeOperand("grf0", tuple(range(low, use.high)))
        (access,) = Addressed({}, TARGET).ready(alu_step("ipassa", (), register)).writes
        assert (access.memory, access.low, access.high) == ("grf0", low, use.high)
        use.written[(number,)] = access, rng.randrange(4)
    times: Any = Times(rng)
    found = others._best("grf0", use, times)
    written = list(use.written.values())

    def key(more: int) -> tuple[int, int]:
        return max(times.last_of(access, more) - at for access, at in written), abs(more)

    places = range(-low, TARGET.words("grf0") - use.high + 1, 32)
    # The first of the best places: at the same distance, the lower one.
    assert found == (min(places, key=key) if len(places) > 1 else 0)


@pytest.mark.parametrize("more", [-40, 0, 3, 16, 64])
def test_times_above_an_access_are_those_of_the_access_there(more: int) -> None:
    rng, rules = random.Random(5), rules_of(TARGET)
    times = Timeline(rules, "mv", "l2bm", False)
    for _ in range(30):
        times.place_move(move(rng.randrange(300), rng.randint(1, 50)), 0)
    found = set()
    for _ in range(50):
        low = rng.randrange(40, 300)
        words = rng.randint(1, 50)
        (access,), (there,) = move(low, words).writes, move(low + more, words).writes
        assert times.last_of(access, more) == times.last_of(there, 0)
        found.add(times.last_of(there, 0))
    assert len(found) > 3
