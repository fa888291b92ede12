"""The directives that move data between PDM and PEs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from emu2.link.areas import Areas
from emu2.link.faults import numbered
from emu2.link.machine import Chip
from emu2.link.output import Output
from emu2.link.placement import Entry, Placement

REGISTER = re.compile(r"\$l(?P<letter>[mnrs])(?P<number>\d{1,5})$")
OPERATORS = frozenset(
    f"{kind}{operator}"
    for kinds, operators in (
        ("dfh", ("fadd", "max", "min")),
        ("lis", ("iadd", "band", "and", "bor", "or")),
    )
    for kind in kinds
    for operator in operators
)
"""Operators of reductions: 64, 32 and 16 bits, floating point or integer."""
MOST = 4
"""Components of a value: an instruction moves one a cycle."""
PAUSE = 24
"""Idle steps around instructions of unknown neighbours."""


def register(text: str) -> str | None:
    """Return a register of a PE memory as expansions write it, or None."""
    return text if REGISTER.match(text) else None


@dataclass
class Expander:
    """Writes expansions. All addresses of L1BM and L2BM begin at 0."""

    chip: Chip
    placement: Placement
    out: Output
    areas: Areas
    started: set[int] = field(default_factory=set)
    """Send tags for which the kernel has waited."""
    joined: bool = False
    """The last expansion is a ``@distribute`` whose pause the next line begins with."""

    @property
    def reserved(self) -> str:
        """The reserved tag as operands have it."""
        return f"i{self.placement.tag:02x}"

    def start(self, entry: Entry) -> None:
        """Wait for the host, at the first read of words that it sends under this tag."""
        tag = entry.send_tag
        if tag is not None and tag not in self.started:
            self.started.add(tag)
            self.out.wait(tag)
            self.out.nop(3)

    def pdm_map(
        self, directive: str, name: str, slot: int, entry: Entry, size: int, access: str
    ) -> None:
        """Write what the directive does in the PDM."""
        self.out.note(
            f'(:pdm :directive "{directive}" :id "{name}" :slot {slot} :place :pdm0'
            f" :addr {entry.addr} :size {size} :access :{access})"
        )

    def mask(self, size: int) -> str:
        """Return the mask that writes the first ``size`` cycles."""
        cycles = self.chip.cycles
        return "" if size == cycles else f"/{'1' * size}{'0' * (cycles - size)}"

    def load(self, entry: Entry, size: int, target: str, line: int, *, joins: bool = False) -> None:
        """Bring each PE its own words: the code of ``@distribute``."""
        chip, out = self.chip, self.out
        self.areas.check(line, chip.block * size, chip.part)
        if self.joined:
            out.nop(4)
            self.joined = False
        self.start(entry)
        for part in range(size):
            base = entry.addr + chip.all_pes * part
            for number in range(chip.all_l2bs):
                tag = self.reserved if number == chip.all_l2bs - 1 else ""
                source = base + chip.part * number
                out.code(f"mvp/n{chip.part}{tag} $p{source}@0 $lc0@{chip.l2b(number)}")
            out.nop(2)
            out.wait(self.placement.tag)
            out.nop(5)
            for l1b in range(chip.l1bs):
                out.code(f"l2bmb@{l1b} $lc{chip.block * l1b} $lb{chip.block * part}")
            out.nop(5)
        out.code(f"l1bmd $lb0 {target}v{self.mask(size)}")
        self.joined = joins
        if not joins:
            out.nop(PAUSE)

    def distribute(
        self, name: str, slot: int, size: int, target: str, line: int, *, joins: bool
    ) -> None:
        """``@distribute``; ``joins``: another one follows."""
        entry = self.placement.slots[slot]
        self.out.note(f"=== @distribute {name}: PDM -> L2BM -> L1BM -> PE ===")
        self.pdm_map("@distribute", name, slot, entry, self.chip.all_pes * size, "read")
        self.load(entry, size, target, line, joins=joins)

    def collect(self, name: str, slot: int, size: int, source: str, line: int) -> None:
        """``@collect``."""
        chip, out, entry = self.chip, self.out, self.placement.slots[slot]
        self.areas.check(line, chip.block * chip.cycles, chip.part)
        out.note(f"=== @collect {name}: PE -> L1BM -> L2BM -> PDM ===")
        self.pdm_map("@collect", name, slot, entry, chip.all_pes * size, "write")
        self.areas.forget(entry.addr, chip.all_pes * size)
        last_tag = entry.recv_tag if entry.recv_tag is not None else self.placement.tag
        out.nop(PAUSE)
        out.code(f"l1bmd {source}v $lb0")
        out.nop(PAUSE)
        for part in range(size):
            for l1b in range(chip.l1bs):
                out.code(f"l2bm@{l1b} $lb{chip.block * part} $lc{chip.block * l1b}")
            out.nop(5)
            base = entry.addr + chip.all_pes * part
            for group in range(chip.groups):
                last = part == size - 1 and group == chip.groups - 1
                tag = last_tag if last else self.placement.tag
                for l2b in range(chip.l2bs):
                    target = base + chip.part * (group * chip.l2bs + l2b)
                    signal = f"i{tag:02x}" if l2b == chip.l2bs - 1 else ""
                    out.code(f"mvp/n{chip.part}{signal} $lc0@{group}.{l2b} $p{target}@0")
                out.nop(3)
                out.wait(tag)
        out.nop(4)

    def broadcast(self, name: str, slot: int, size: int, target: str, line: int) -> None:
        """``@broadcast``. Sections of a block's words stay in L1BM."""
        chip, out, entry = self.chip, self.out, self.placement.slots[slot]
        unit = chip.block
        section = entry.addr // unit * unit
        offset = entry.addr - section
        if offset + size > unit:
            raise numbered("E228", f"{size} long words from {entry.addr} on", line)
        out.note(f"=== @broadcast {name}: PDM -> all L2BM -> all L1BM -> all PE ===")
        out.note("guess: the start of the section, and the idle steps")
        self.pdm_map("@broadcast", name, slot, entry, unit, "read")
        base = self.areas.resident(section)
        if base is None:
            self.areas.check(line, 0, unit)
            base = self.areas.place(name, section, line)
            self.start(entry)
            out.code(f"mvb/n{unit}{self.reserved} $p{section}@0 $lc0")
            out.nop(2)
            out.wait(self.placement.tag)
            out.nop(5)
            out.code(f"l2bmb $lc0 $lb{base}")
            out.nop(5)
        out.code(f"l1bmp $lb{base + offset} {target}v{self.mask(size)}")
        out.nop(PAUSE)

    def reduce(self, name: str, slot: int, source: str, operator: str, line: int) -> None:
        """``@reduce``."""
        chip, out, entry = self.chip, self.out, self.placement.slots[slot]
        self.areas.check(line, chip.block, chip.block)
        out.note(f"=== @reduce {name}: PE -> L1BM -> L2BM -> PDM ===")
        self.pdm_map("@reduce", name, slot, entry, chip.block, "write")
        self.areas.forget(entry.addr, chip.block)
        tag = entry.recv_tag if entry.recv_tag is not None else self.placement.tag
        out.code(f"l1bmr{operator} {source} $lb0")
        out.nop(PAUSE)
        out.code(f"l2bmr{operator} $lb0 $lc0")
        out.nop(PAUSE)
        out.code(f"mvr{operator}/n{chip.block}i{tag:02x} $lc0 $p{entry.addr}@0")
        out.nop(2)
        out.wait(tag)
        out.nop(5)
