"""Links a source: copies its lines, and expands its directives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import emu2
from emu2.link.areas import Areas
from emu2.link.faults import Fault, LinkError, fault, numbered
from emu2.link.machine import Chip, chip
from emu2.link.neighbors import (
    SPACING,
    Neighbor,
    check_flags,
    compute_flags,
    get_neighbor,
)
from emu2.link.output import Output
from emu2.link.placement import Placement, read_placement
from emu2.link.pools import Block, allocated
from emu2.link.structure import Structure, read_structure
from emu2.link.transfers import MOST, OPERATORS, Expander, register

RAW_TAG = re.compile(r"(?:\bwait\s+i|\bmv\w*/n\d+\w*?i)(?P<tag>[0-9a-fA-F]{2})\b")
RAW_AREA = re.compile(r"\$(?:lb|llb|lc|llc)\d")
FLAG_REGISTER = re.compile(r"\$lr\d{1,5}$")
REMOVED = ("@stencil", "@bind", "@omr_alloc", "@omr_free")


@dataclass(frozen=True)
class Linked:
    """Linked assembly, and the warnings."""

    text: str
    warnings: Sequence[Fault]


@dataclass
class Linker:
    """The state between lines."""

    file: str
    chip: Chip
    placement: Placement
    structure: Structure
    expander: Expander
    warnings: list[Fault] = field(default_factory=list)
    flags: dict[str, str] = field(default_factory=dict)
    """Registers of flags by their id."""
    block: Block | None = None
    follows: str | None = None
    """The next directive, if nothing but comments stands before it."""

    def bad(self, line: int, message: str) -> LinkError:
        """Return an error that has no number."""
        return LinkError(Fault(message, file=self.file, line=line))

    def target(self, text: str, line: int, number: str | None = None) -> str:
        """Return a register argument. Raises LinkError."""
        found = register(text)
        if found is None:
            message = f"`{text}` is no register such as `$lm0`"
            raise numbered(number, message, line) if number else self.bad(line, message)
        return found

    def transfer(self, words: Sequence[str], line: int) -> None:
        """Expand ``@distribute``, ``@collect`` or ``@broadcast``."""
        name, fixed, arguments, missing, size_error = TRANSFERS[words[0]]
        match words[1:]:
            case [key, way, slot, "size", size, target] if way == fixed and slot.isdecimal():
                pass
            case _:
                message = f"write `{name} <id> {fixed} <slot> size <1..{MOST}> <register>`"
                raise numbered(arguments, message, line) if arguments else self.bad(line, message)
        place = int(slot)
        if place not in self.placement.slots:
            raise numbered(missing, slot, line)
        if size not in {str(number) for number in range(1, MOST + 1)}:
            raise numbered(size_error, size, line)
        value, found = int(size), self.target(target, line, arguments)
        match name:
            case "@distribute":
                joins = self.follows == "@distribute"
                self.expander.distribute(key, place, value, found, line, joins=joins)
            case "@collect":
                self.expander.collect(key, place, value, found, line)
            case _:
                self.expander.broadcast(key, place, value, found, line)

    def reduce(self, words: Sequence[str], line: int) -> None:
        """Expand ``@reduce``."""
        match words[1:]:
            case [key, "to_param", slot, source, operator] if slot.isdecimal():
                pass
            case _:
                raise numbered("E218", "write `@reduce <id> to_param <slot> <register> <op>`", line)
        if int(slot) not in self.placement.slots:
            raise numbered("E219", slot, line)
        if operator not in OPERATORS:
            raise numbered("E220", operator, line)
        found = self.target(source, line, "E218")
        self.expander.reduce(key, int(slot), found, operator, line)

    def identify(self, words: Sequence[str], line: int) -> None:
        """Expand ``@identify``."""
        match words[1:]:
            case [dimension, target, count] if dimension.isdecimal() and count.isdecimal():
                pass
            case _:
                raise self.bad(line, "write `@identify <dim> <register> <count>`")
        entry = self.placement.identify.get(int(dimension))
        if entry is None:
            raise numbered("E236", dimension, line)
        self.expander.out.note(f"=== @identify {dimension}: PDM -> L2BM -> L1BM -> PE ===")
        self.expander.load(entry, 1, self.target(target, line), line)

    def boundary_flags(self, words: Sequence[str], line: int) -> None:
        """Expand ``@boundary_flags``."""
        match words[1:]:
            case [key, dimension, target, *names]:
                pass
            case _:
                raise self.bad(line, "write `@boundary_flags <id> <dim> <register> <names>`")
        if dimension not in ("0", "1", "2"):
            raise numbered("E215", dimension, line)
        check_flags(names, line)
        entry = self.placement.flags.get(key)
        if entry is None:
            raise numbered("E237", key, line)
        self.flags[key] = self.target(target, line)
        self.expander.out.note(f"=== @boundary_flags {key}: PDM -> L2BM -> L1BM -> PE ===")
        self.expander.load(entry, 1, self.flags[key], line)

    def opened(self, name: str, number: str, line: int) -> Block:
        """Return the open block of this id. Raises LinkError ``number``."""
        if self.block is None or self.block.name != name:
            raise numbered(number, name, line)
        return self.block

    def boundary_flags_compute(self, words: Sequence[str], line: int) -> None:
        """Expand ``@boundary_flags_compute``."""
        match words[1:]:
            case [key, dimension, target, name]:
                found = register(target)
            case _:
                found = None
        if found is None or not found.startswith("$lr"):
            raise numbered(
                "E211", "write `@boundary_flags_compute <id> <dim> $lr<n> <alloc>`", line
            )
        if dimension not in ("0", "1", "2"):
            raise numbered("E212", dimension, line)
        block = self.opened(name, "E213", line)
        self.expander.out.note(f"=== @boundary_flags_compute {key}: computed on the PEs ===")
        compute_flags(self.expander, block, found, self.structure.edges(int(dimension)), line)
        self.flags[key] = found

    def alias(self, words: Sequence[str], line: int) -> None:
        """Note ``@alias`` or ``@assign``."""
        match words[1:]:
            case [key, target]:
                pass
            case _:
                raise numbered("E229", f"write `{words[0]} <id> $lr<n>`", line)
        if not FLAG_REGISTER.match(target):
            raise numbered("E230", target, line)
        if key in self.flags:
            raise numbered("E231" if words[0] == "@alias" else "E232", key, line)
        self.flags[key] = target

    def alloc(self, words: Sequence[str], line: int) -> None:
        """Open a block."""
        if self.block is not None:
            raise numbered("E201", self.block.name, line)
        self.block = allocated(words[1:], self.chip, line)

    def free(self, words: Sequence[str], line: int) -> None:
        """Close the block."""
        if len(words) < 2:
            raise numbered("E209", line=line)
        self.opened(words[1], "E210", line)
        self.block = None

    def get_neighbor(self, words: Sequence[str], line: int) -> None:
        """Expand ``@get_neighbor``."""
        match words[1:]:
            case [target, ("-1" | "+1" | "1") as step, source, flags, buffer, name] if (
                target.startswith("$lr")
            ):
                pass
            case _:
                form = "@get_neighbor $lr<n> <-1|+1> <register> <flags> <buffer> <alloc>"
                raise numbered("E221", f"write `{form}`", line)
        found, own = self.target(target, line, "E221"), self.target(source, line, "E221")
        if not found.startswith("$lr"):
            raise numbered("E221", f"`{target}` is not in GRF0, which masks need", line)
        block = self.opened(name, "E222", line)
        if buffer not in self.placement.buffers:
            raise numbered("E223", buffer, line)
        if flags not in self.flags:
            raise numbered("E224", flags, line)
        entry = self.placement.buffers[buffer]
        needed = SPACING * self.chip.all_l2bs + self.chip.block
        if (entry.size or 0) < needed:
            raise numbered("E116", f"`{buffer}` has {entry.size} long words, {needed} are needed")
        periodic = self.structure.is_periodic(0)
        wanted = Neighbor(found, step == "-1", own, self.flags[flags], entry.addr, periodic)
        if periodic:
            self.expander.out.note("guess: the value at the ends of a periodic dimension")
        get_neighbor(self.expander, block, wanted, line)

    def directive(self, text: str, line: int) -> None:
        """Expand a directive."""
        words = text.split("#", 1)[0].split()
        handle = HANDLERS.get(words[0])
        if handle is None:
            gone = " (the vendor has removed it)" if words[0] in REMOVED else ""
            raise self.bad(line, f"unknown directive `{words[0]}`{gone}")
        with self.expander.out.of(line):
            mark = "#@" if words[0] in COMMENTED else "#"
            self.expander.out.code(f"{mark} {text.strip()}")
            handle(self, words, line)

    def raw(self, text: str, line: int) -> None:
        """Copy a line, and warn of tags and areas that it uses."""
        with self.expander.out.of(line, expanded=False):
            self.expander.out.code(text.rstrip("\r"))
        code = text.split("#", 1)[0]
        for match in RAW_TAG.finditer(code):
            if int(match["tag"], 16) not in self.placement.tags():
                self.warnings.append(fault("W002", f"i{match['tag']}", line))
        if RAW_AREA.search(code):
            self.warnings.append(fault("W003", line=line))


Handler = Callable[[Linker, Sequence[str], int], None]

HANDLERS: Mapping[str, Handler] = {
    "@distribute": Linker.transfer,
    "@collect": Linker.transfer,
    "@broadcast": Linker.transfer,
    "@identify": Linker.identify,
    "@reduce": Linker.reduce,
    "@boundary_flags": Linker.boundary_flags,
    "@boundary_flags_compute": Linker.boundary_flags_compute,
    "@alias": Linker.alias,
    "@assign": Linker.alias,
    "@alloc": Linker.alloc,
    "@free": Linker.free,
    "@get_neighbor": Linker.get_neighbor,
    "@access_pattern": lambda *_: None,
}
"""Directives, and what expands them."""

COMMENTED = ("@alloc", "@free", "@get_neighbor")
"""Directives that the output shows as `#@`."""

TRANSFERS = {
    "@distribute": ("@distribute", "from_param", None, "E238", "E242"),
    "@collect": ("@collect", "to_param", None, "E240", "E241"),
    "@broadcast": ("@broadcast", "from_param", "E226", "E239", "E227"),
}
"""The fixed word, and the errors: bad arguments, a missing slot, a wrong size."""


def following(lines: Sequence[str]) -> list[str | None]:
    """Return the next directive behind each line, if only comments stand between."""
    found: list[str | None] = []
    after: str | None = None
    for line in reversed(lines):
        found.append(after)
        code = line.split("#", 1)[0].strip()
        if code:
            after = code.split()[0] if code.startswith("@") else None
    return found[::-1]


def link(
    source: str, placement: str, structure: str, spec: emu2.Spec, files: tuple[str, str, str]
) -> Linked:
    """Link a source with its placement and structure; ``files`` names the three in messages.

    Raises LinkError with what is wrong.
    """
    numbers = chip(spec)
    placed = read_placement(placement, files[1], numbers.last_tag)
    shape = read_structure(structure, files[2], numbers.all_pes)
    out = Output(files[0])
    expander = Expander(numbers, placed, out, Areas(numbers))
    linker = Linker(files[0], numbers, placed, shape, expander)
    lines = source.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for at, (line, follows) in enumerate(zip(lines, following(lines), strict=True), 1):
        linker.follows = follows
        if line.lstrip().startswith("@"):
            linker.directive(line, at)
        else:
            linker.raw(line, at)
    if linker.block is not None:
        raise linker.bad(len(lines), f"`@alloc {linker.block.name}` is never freed")
    return Linked(out.text(), [*placed.warnings, *linker.warnings])


def link_files(source: Path, placement: Path, structure: Path, spec: emu2.Spec) -> Linked:
    """Link files. Raises LinkError, also for a file that cannot be read."""
    paths = (source, placement, structure)
    texts = []
    for path in paths:
        try:
            texts.append(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise LinkError(Fault(f"cannot be read: {error}", file=str(path))) from None
    names = (str(source), str(placement), str(structure))
    return link(texts[0], texts[1], texts[2], spec, names)
