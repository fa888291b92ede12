"""Writes time lines in Perfetto's format: a protobuf message ``Trace`` of ``TracePacket``s.

Field numbers are those of Perfetto's ``trace_packet.proto``, ``track_event.proto``,
``track_descriptor.proto`` and ``debug_annotation.proto``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_PACKET = 1
_TIMESTAMP, _SEQUENCE, _EVENT, _DESCRIPTOR = 8, 10, 11, 60
_EVENT_ANNOTATION, _EVENT_TYPE, _EVENT_TRACK, _EVENT_NAME = 4, 9, 11, 23
_BEGIN, _END = 1, 2
_TRACK_ID, _TRACK_NAME = 1, 2
_ANNOTATION_INT, _ANNOTATION_NAME = 4, 10
_OUR_SEQUENCE = 1


@dataclass(frozen=True)
class Slice:
    """``name`` on ``track`` from ``start`` to ``stop``, in nanoseconds."""

    track: str
    name: str
    start: int
    stop: int
    facts: Mapping[str, int] = field(default_factory=dict)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def write_trace(slices: Iterable[Slice]) -> bytes:
    """Return the trace file. Two slices of one track must be nested or disjoint."""
    listed = list(slices)
    tracks = {name: number for number, name in enumerate(dict.fromkeys(s.track for s in listed), 1)}
    return b"".join(_bytes(_PACKET, packet) for packet in _packets(listed, tracks))


def _packets(slices: list[Slice], tracks: Mapping[str, int]) -> Iterator[bytes]:
    for name, number in tracks.items():
        descriptor = _number(_TRACK_ID, number) + _text(_TRACK_NAME, name)
        yield _number(_SEQUENCE, _OUR_SEQUENCE) + _bytes(_DESCRIPTOR, descriptor)
    # At equal times: first ends (the inner before the outer), then begins (the outer first).
    events = [((s.start, 1, -s.stop), s, _BEGIN) for s in slices]
    events += [((s.stop, 0, -s.start), s, _END) for s in slices]
    for (time, *_), what, kind in sorted(events, key=lambda event: event[0]):
        event = _number(_EVENT_TYPE, kind) + _number(_EVENT_TRACK, tracks[what.track])
        if kind == _BEGIN:
            event += _text(_EVENT_NAME, what.name)
            for key, value in what.facts.items():
                fact = _text(_ANNOTATION_NAME, key) + _number(_ANNOTATION_INT, value)
                event += _bytes(_EVENT_ANNOTATION, fact)
        stamp = _number(_TIMESTAMP, time) + _number(_SEQUENCE, _OUR_SEQUENCE)
        yield stamp + _bytes(_EVENT, event)
