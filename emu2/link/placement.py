"""Placement files (``.param``): where arrays lie in the PDM, and which tags are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from emu2.link.faults import Fault, LinkError, fault, numbered
from emu2.link.lists import Keyword, Node, parse

DEFAULT_RESERVED = 0x3F
VERSIONS = {"placement": (":0.1",), "structure": (":0.0", ":0.1")}
RENAMED = {"dmaid": "send_wait_tag", "mvtag": "recv_wait_tag"}
"""Names of old files."""
Key = TypeVar("Key", int, str)
UNIT = 64
"""Addresses and sizes of buffers are multiples of this many long words."""


@dataclass(frozen=True)
class Entry:
    """An area of the PDM, from long word ``addr`` on."""

    addr: int
    send_tag: int | None = None
    recv_tag: int | None = None
    size: int | None = None


@dataclass
class Placement:
    """A placement file."""

    slots: dict[int, Entry] = field(default_factory=dict)
    flags: dict[str, Entry] = field(default_factory=dict)
    identify: dict[int, Entry] = field(default_factory=dict)
    buffers: dict[str, Entry] = field(default_factory=dict)
    reserved: list[int] | None = None
    warnings: list[Fault] = field(default_factory=list)

    @property
    def tag(self) -> int:
        """The reserved tag that expansions use."""
        return self.reserved[0] if self.reserved else DEFAULT_RESERVED

    def tags(self) -> set[int]:
        """Return all tags that the file names."""
        return {*(self.reserved or [self.tag]), *self._of_entries()}

    def _of_entries(self) -> Iterator[int]:
        tables = self.slots.values(), self.flags.values(), self.identify.values()
        for entry in chain.from_iterable(tables):
            yield from (tag for tag in (entry.send_tag, entry.recv_tag) if tag is not None)

    def check(self, last_tag: int) -> None:
        """Check the reserved tags, and warn if there are none. Raises LinkError."""
        if self.reserved is None:
            detail = f"#x{DEFAULT_RESERVED:x} is used"
            self.warnings.append(fault("W001", detail))
        elif not self.reserved:
            raise numbered("E105")
        reserved = self.reserved or [DEFAULT_RESERVED]
        for at, tag in enumerate(reserved):
            if not 1 <= tag <= last_tag:
                raise numbered("E102", f"{tag} is not 1 to {last_tag}")
            if tag in reserved[:at]:
                raise numbered("E103", f"#x{tag:02x}")
            if tag in self._of_entries():
                raise numbered("E101", f"#x{tag:02x}")


class Reader:
    """Reads entries of one file."""

    def __init__(self, file: str, last_tag: int) -> None:
        self.file, self.last_tag = file, last_tag

    def bad(self, message: str) -> LinkError:
        """Return the error of the file's form."""
        return LinkError(Fault(message, file=self.file))

    def entries(self, text: str, kind: str) -> Iterator[tuple[str, list[Node]]]:
        """Yield the entries after the version: name, and the rest."""
        whole = parse(text, self.file)
        for at, node in enumerate(whole):
            match node:
                case [Keyword(name=name), *rest]:
                    pass
                case _:
                    raise self.bad("an entry is a list that begins with a word such as `:slot`")
            if at == 0:
                known = VERSIONS[kind]
                if name != "version" or len(rest) != 1 or shown(rest[0]) not in known:
                    raise self.bad(f"the first entry is not `(:version {' or '.join(known)})`")
                continue
            yield name, rest
        if not whole:
            raise self.bad("the first entry, the version, is missing")

    def fields(self, what: str, rest: Sequence[Node], known: set[str]) -> dict[str, Node]:
        """Return the fields of an entry by name."""
        if len(rest) % 2:
            raise self.bad(f"{what}: a field has no value")
        found: dict[str, Node] = {}
        for key, value in zip(rest[::2], rest[1::2], strict=True):
            if not isinstance(key, Keyword):
                raise self.bad(f"{what}: `{shown(key)}` stands where a field such as `:addr` must")
            name = RENAMED.get(key.name, key.name)
            if name not in known:
                raise self.bad(f"{what}: there is no field `:{key.name}`")
            if name in found:
                raise self.bad(f"{what}: `:{name}` is given twice")
            found[name] = value
        return found

    def entry(self, what: str, rest: Sequence[Node], *, buffer: bool = False) -> Entry:
        """Return the area that an entry describes."""
        tags = set() if buffer else {"send_wait_tag", "recv_wait_tag"}
        sizes = {"buf_size"} if buffer else set()
        found = self.fields(what, rest, {"place", "addr", *tags, *sizes})
        place = found.get("place", Keyword("pdm0"))
        if place != Keyword("pdm0"):
            raise self.bad(f"{what}: `:place {shown(place)}`; only `:pdm0` is known")
        numbers = {
            name: self.number(what, name, value) for name, value in found.items() if name != "place"
        }
        for name in ("addr", *sizes):
            if name not in numbers:
                raise self.bad(f"{what}: `:{name}` is missing")
            if buffer and numbers[name] % UNIT:
                raise self.bad(f"{what}: `:{name} {numbers[name]}` is no multiple of {UNIT}")
        for name in tags & set(numbers):
            if not 1 <= numbers[name] <= self.last_tag:
                raise self.bad(f"{what}: tag {numbers[name]} is not 1 to {self.last_tag}")
        optional = (numbers.get(name) for name in ("send_wait_tag", "recv_wait_tag", "buf_size"))
        return Entry(numbers["addr"], *optional)

    def number(self, what: str, name: str, value: Node) -> int:
        """Return the number of a field."""
        if not isinstance(value, int) or value < 0:
            raise self.bad(f"{what}: `:{name} {shown(value)}` is no number")
        return value


def shown(node: Node) -> str:
    """Return the text of a node."""
    match node:
        case Keyword(name=name):
            return f":{name}"
        case list(nodes):
            return f"({' '.join(map(shown, nodes))})"
        case _:
            return str(node)


def read_placement(text: str, file: str, last_tag: int) -> Placement:
    """Read a placement file. Raises LinkError."""
    reader = Reader(file, last_tag)
    placement = Placement()
    for name, rest in reader.entries(text, "placement"):
        match name, rest:
            case ("reserved_wait_tag" | "reserved_wait_tags", tags):
                if name == "reserved_wait_tag" and len(tags) > 1:
                    raise numbered("E106")
                if not all(isinstance(tag, int) for tag in tags):
                    raise reader.bad(f"`:{name}` has a value that is no number")
                placement.reserved = [tag for tag in tags if isinstance(tag, int)]
            case ("slot", [int(key), *fields]):
                put(reader, placement.slots, key, reader.entry(f"slot {key}", fields))
            case ("identify", [int(key), *fields]) if key in range(3):
                put(reader, placement.identify, key, reader.entry(f"identify {key}", fields))
            case ("boundary_flags", [str(key), *fields]):
                put(reader, placement.flags, key, reader.entry(f"boundary_flags {key}", fields))
            case ("buffer", [str(key), *fields]):
                entry = reader.entry(f"buffer {key}", fields, buffer=True)
                if placement.buffers.setdefault(key, entry) != entry:
                    raise numbered("E115", key)
            case _:
                raise reader.bad(f"`(:{name} {' '.join(map(shown, rest))})` is no entry")
    placement.check(last_tag)
    return placement


def put(reader: Reader, table: dict[Key, Entry], key: Key, entry: Entry) -> None:
    """Add an entry that must be new."""
    if key in table:
        raise reader.bad(f"`{key}` is placed twice")
    table[key] = entry
