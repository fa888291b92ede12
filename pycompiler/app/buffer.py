"""Checks the structure of a flatbuffer before anything is unpacked.

Every offset must stay inside the file, every length must be what the file can hold, and no part may
be reached twice: damaged offsets could otherwise make a small file unpack without end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass


class DamagedBufferError(ValueError):
    """The structure of a flatbuffer is damaged."""


@dataclass(frozen=True)
class Table:
    """A table of the schema: the kind of each field, in the order of the schema.

    A number is the size of a scalar; ``"text"`` is a string; a list has one kind of element.
    """

    fields: tuple[object, ...]
    #: fields that must be there
    required: tuple[int, ...] = ()


_TEXT = "text"
_PORT = Table((_TEXT, _TEXT), (0, 1))
_PLACE = Table((1, [Table(([8],))], [8], [8], [8]))
_VALUE = Table((_TEXT, _TEXT, [8], _TEXT, _TEXT, 1, 8, 8, _PLACE), (0, 1))
_CONSTANT = Table((_TEXT, [1]), (0,))
_RELOCATION = Table((4, _TEXT, 8), (1,))
_OWNER = Table((_TEXT, _TEXT, _TEXT, _TEXT), (0, 1))
_SEGMENT = Table((1, [_TEXT], [_TEXT], _TEXT, [_RELOCATION], 8, 8, [1], [_OWNER], [4]))
#: The root table of ``gpfnapp.fbs``.
APP = Table(
    (
        *(4, _TEXT, _TEXT, [_PORT], [_PORT], [_VALUE], [_CONSTANT], [_SEGMENT], 8),
        *([_PORT], [_PORT]),
    ),
    (2,),
)


def check_buffer(data: bytes, root: Table) -> None:
    """Raise :class:`DamagedBufferError` unless ``data`` is a flatbuffer of the schema ``root``."""
    try:
        _Checker(data).table(_offset(data, 0), root)
    except struct.error as problem:
        raise DamagedBufferError(f"an offset leaves the file ({problem})") from problem
    except UnicodeDecodeError as problem:
        raise DamagedBufferError(f"a text is not UTF-8: {problem.object[:40]!r}") from problem


def _offset(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])


class _Checker:
    def __init__(self, data: bytes):
        self.data, self.left = data, len(data)

    def take(self, at: int, size: int) -> None:
        """Count bytes of the file as read."""
        if at < 0 or at + size > len(self.data):
            raise DamagedBufferError(f"a part at {at} of {size} bytes leaves the file")
        self.left -= size
        if self.left < 0:
            raise DamagedBufferError("parts of the file overlap")

    def table(self, at: int, table: Table) -> None:
        if at < 0:
            raise DamagedBufferError("a table lies before the file")
        start = at - int(struct.unpack_from("<i", self.data, at)[0])
        if start < 0:
            raise DamagedBufferError("a table has no list of fields")
        length, size = struct.unpack_from("<HH", self.data, start)
        if length < 4 or length % 2 or start + length > len(self.data) or size < 4:
            raise DamagedBufferError("a list of fields is damaged")
        self.take(at, size)
        places = dict(self._places(start, length, size))
        for number, kind in enumerate(table.fields):
            place = places.get(number)
            if place is None:
                if number in table.required:
                    raise DamagedBufferError("a field is missing")
                continue
            self._field(at + place, kind, size - place)

    def _places(self, start: int, length: int, size: int) -> Iterator[tuple[int, int]]:
        for number in range((length - 4) // 2):
            (place,) = struct.unpack_from("<H", self.data, start + 4 + 2 * number)
            if place:
                if not 4 <= place < size:
                    raise DamagedBufferError("a field lies outside of its table")
                yield number, place

    def _field(self, at: int, kind: object, room: int) -> None:
        if (kind if isinstance(kind, int) else 4) > room:
            raise DamagedBufferError("a field leaves its table")
        if isinstance(kind, int):
            return
        target = _offset(self.data, at)
        if isinstance(kind, list):
            self._vector(target, kind[0])
        elif isinstance(kind, Table):
            self.table(target, kind)
        else:
            (count,) = struct.unpack_from("<I", self.data, target)
            self.take(target, 4 + count)
            self.data[target + 4 : target + 4 + count].decode()

    def _vector(self, at: int, kind: object) -> None:
        (count,) = struct.unpack_from("<I", self.data, at)
        size = kind if isinstance(kind, int) else 4
        self.take(at, 4 + count * size)
        if not isinstance(kind, int):
            for number in range(count):
                self._field(at + 4 + 4 * number, kind, 4)
