"""A slow reader of Perfetto traces, for tests: protobuf fields by number."""

from __future__ import annotations

from collections.abc import Iterator

Read = tuple[str, str, int, int, dict[str, int]]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        else:
            assert key & 7 == 2
            size, at = _varint(data, at)
            assert at + size <= len(data)
            yield key >> 3, data[at : at + size]
            at += size


def read_trace(data: bytes) -> list[Read]:
    """``(track, name, start, stop, facts)`` of every slice; begins and ends must match."""
    tracks: dict[int, str] = {}
    open_: dict[int, list[tuple[str, int, dict[str, int]]]] = {}
    slices: list[Read] = []
    last = 0
    for number, packet in _fields(data):
        assert number == 1
        assert isinstance(packet, bytes)
        fields = dict(_fields(packet))
        if 60 in fields:
            about = dict(_fields(fields[60]))  # type: ignore[arg-type]
            tracks[about[1]] = about[2].decode()  # type: ignore[index, union-attr]
            continue
        time = fields[8]
        assert isinstance(time, int)
        assert time >= last
        last = time
        listed = list(_fields(fields[11]))  # type: ignore[arg-type]
        event = dict(listed)
        notes = [dict(_fields(note)) for key, note in listed if key == 4]  # type: ignore[arg-type]
        facts = {note[10].decode(): note[4] for note in notes}  # type: ignore[union-attr]
        stack = open_.setdefault(event[11], [])  # type: ignore[arg-type]
        if event[9] == 1:
            stack.append((event[23].decode(), time, facts))  # type: ignore[union-attr, arg-type]
        else:
            name, start, facts = stack.pop()
            slices.append((tracks[event[11]], name, start, time, facts))  # type: ignore[index]
    assert not any(open_.values())
    return slices
