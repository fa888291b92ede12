"""Errors and warnings of the linker. The numbers are the vendor's, the texts are our own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emu2.errors import PortableError

NUMBERS = {
    "E101": "a reserved tag is also a tag of an entry",
    "E102": "a reserved tag is out of range",
    "E103": "a reserved tag is listed twice",
    "E105": "the list of reserved tags is empty",
    "E106": "`:reserved_wait_tag` has several values; `:reserved_wait_tags` may",
    "E110": "no room for an area in L1BM or L2BM",
    "E115": "two entries of one buffer contradict each other",
    "E116": "an offset lies outside of its buffer",
    "E117": "no room in L1BM for a section that stays",
    "E201": "`@alloc` inside of `@alloc`",
    "E202": "`@alloc` without an id",
    "E203": "unknown keyword in `@alloc`",
    "E204": "a number before the first keyword of `@alloc`",
    "E205": "no such register",
    "E206": "too many registers in a pool",
    "E207": "odd number of a PE memory register",
    "E208": "`@alloc` without a register",
    "E209": "`@free` without an id",
    "E210": "`@free` of another id than the open `@alloc`",
    "E211": "`@boundary_flags_compute`: bad arguments",
    "E212": "`@boundary_flags_compute`: the dimension is not 0 to 2",
    "E213": "`@boundary_flags_compute` outside of its `@alloc`",
    "E214": "`@boundary_flags_compute`: the pool is too small",
    "E215": "`@boundary_flags`: the dimension is not 0 to 2",
    "E216": "`@boundary_flags` without names of flags",
    "E217": "`@boundary_flags`: unexpected name of a flag",
    "E218": "`@reduce`: bad arguments",
    "E219": "`@reduce`: no such slot",
    "E220": "`@reduce`: unknown operator",
    "E221": "`@get_neighbor`: bad arguments",
    "E222": "`@get_neighbor` outside of its `@alloc`",
    "E223": "`@get_neighbor`: no such buffer",
    "E224": "`@get_neighbor`: unknown flags",
    "E225": "`@get_neighbor`: the pool is too small",
    "E226": "`@broadcast`: bad arguments",
    "E227": "`@broadcast`: the size is not 1 to 4",
    "E228": "`@broadcast`: the words leave their section",
    "E229": "`@alias`: bad arguments",
    "E230": "`@alias`: the register is not `$lrN`",
    "E231": "`@alias`: the id is registered already",
    "E232": "`@assign`: the id is registered already",
    "E233": "no area for this directive",
    "E234": "`@broadcast`: no entry is left for this section",
    "E235": "`@broadcast`: the section cannot be placed",
    "E236": "`@identify`: no such dimension",
    "E237": "`@boundary_flags`: no such id",
    "E238": "`@distribute`: no such slot",
    "E239": "`@broadcast`: no such slot",
    "E240": "`@collect`: no such slot",
    "E241": "`@collect`: the size is not 1 to 4",
    "E242": "`@distribute`: the size is not 1 to 4",
    "W001": "no reserved tag is given",
    "W002": "a tag of the raw part is neither reserved nor named in the placement file",
    "W003": "the raw part names an address of L1BM or L2BM",
}
"""What each number says. Those that only templates of the vendor can raise do not exist here."""


@dataclass(frozen=True)
class Fault:
    """One error or warning. Without a number it is a fault of a file's form."""

    text: str
    number: str | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        kind = "warning" if (self.number or "").startswith("W") else "error"
        if self.number is None:
            place = self.file if self.line is None else f"{self.file}:{self.line}"
            return f"{kind}: {place}: {self.text}"
        text = self.text.replace("\\", "\\\\").replace('"', '\\"')
        line = "" if self.line is None else f" :line {self.line}"
        return f'(:{kind} "{text}" :id "{self.number}"{line})'


class LinkError(PortableError):
    """The program cannot be linked. ``faults`` lists why."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults: Sequence[Fault] = faults


def numbered(number: str, detail: str = "", line: int | None = None) -> LinkError:
    """Return the error with a number of the table, and what is special about this case."""
    return LinkError(fault(number, detail, line))


def fault(number: str, detail: str = "", line: int | None = None) -> Fault:
    """Return a fault with a number of the table."""
    text = NUMBERS[number] + (f": {detail}" if detail else "")
    return Fault(text, number, line=line)
