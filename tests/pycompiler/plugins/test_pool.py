"""The pool under drawn orders of work: what streams do to memory never meets."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise

import pytest
from made_up_chip import Chip

from pycompiler.errors import PycompilerError
from pycompiler.plugins import Buffer, Session, Stream


class History:
    """All operations with those before them, by walking along streams and waits."""

    def __init__(self) -> None:
        self.before: list[set[int]] = []
        self.known: dict[Stream, set[int]] = {}
        self.ended: set[int] = set()

    def add(self, stream: Stream) -> int:
        number = len(self.before)
        self.before.append(self.known.setdefault(stream, set()) | self.ended)
        self.known[stream] = {*self.before[number], number}
        return number

    def watch(self, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
        original = stream.synchronize

        def synchronize() -> None:
            original()
            self.ended |= self.known.get(stream, set())

        monkeypatch.setattr(stream, "synchronize", synchronize)

    def next(self, stream: Stream) -> set[int]:
        return self.known.get(stream, set()) | self.ended


@pytest.mark.parametrize("seed", range(12))
def test_drawn_orders(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes are refused exactly if an earlier use of the memory may still run."""
    draw = random.Random(seed)
    session = Session(Chip(), draw.choice([60, 300]))
    pool, history = session.pool, History()
    streams = [session.stream, session.new_stream(), session.new_stream()]
    for stream in streams:  # the pool synchronizes too
        history.watch(stream, monkeypatch)
    live: list[Buffer] = []
    touched: dict[int, set[int]] = {}  # by unit: operations since the last write
    refused = done = 0
    for _ in range(300):
        stream, action = draw.choice(streams), draw.random()
        if action < 0.3:
            with suppress(PycompilerError):  # the pool is full
                live.append(pool.allocate(draw.choice([3, 6, 7, 12]), draw.choice([None, stream])))
        elif action < 0.45 and live:
            pool.free(live.pop(draw.randrange(len(live))))
        elif action < 0.85 and live:
            buffer = draw.choice(live)
            units = range(buffer.address, buffer.address + buffer.size)
            earlier = set().union(*(touched.get(unit, set()) for unit in units))
            if not earlier <= history.next(stream):
                with pytest.raises(PycompilerError, match="P0822"):
                    buffer.writes(stream)
                refused += 1
                continue
            buffer.writes(stream)
            stream.enqueue(lambda: None)
            number = history.add(stream)
            touched.update({unit: {number} for unit in units})
            done += 1
        elif action < 0.95:
            other = draw.choice(streams)
            stream.wait(other.record())
            history.known[stream] = history.next(stream) | history.known.get(other, set())
        else:
            stream.synchronize()
        places = sorted((buffer.address, buffer.size) for buffer in live)
        assert all(a + n <= b for (a, n), (b, _) in pairwise(places))
        assert pool.used == sum(size for _, size in places) <= pool.capacity
    assert done > 20
    assert refused > 0


def test_an_unused_buffer_keeps_the_uses_before_it() -> None:
    session = Session(Chip(), 3)
    one, two = session.stream, session.new_stream()
    first = session.pool.allocate(3, one)
    first.writes(one)
    one.enqueue(lambda: None)
    session.pool.free(first)
    session.pool.free(session.pool.allocate(3, one))
    again = session.pool.allocate(3, one)
    with pytest.raises(PycompilerError, match="P0822"):
        again.writes(two)
    two.wait(one.record())
    again.writes(two)
