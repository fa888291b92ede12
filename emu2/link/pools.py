"""Registers that ``@alloc`` lends to expansions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emu2.link.faults import numbered
from emu2.link.machine import Chip

POOLS = {":grf0": "r", ":grf1": "s", ":m": "m", ":n": "n", ":omr": "omr"}
"""Keywords, and the letter of their registers in assembly."""
MOST = 64
"""Registers of a pool. guess: the vendor's limit is unknown; 11 pass."""
MASKS = 15
"""The last mask register; 0 is no register."""


@dataclass(frozen=True)
class Block:
    """An open ``@alloc``."""

    name: str
    pools: Mapping[str, Sequence[int]]

    def take(self, keyword: str, count: int, number: str, line: int) -> Sequence[int]:
        """Return the first registers of a pool. Raises LinkError ``number`` if it is too small."""
        pool = self.pools.get(keyword, ())
        if len(pool) < count:
            raise numbered(number, f"{keyword} has {len(pool)} registers, {count} are needed", line)
        return pool[:count]


def allocated(words: Sequence[str], chip: Chip, line: int) -> Block:
    """Read the arguments of ``@alloc``. Raises LinkError."""
    if not words or words[0].startswith(":"):
        raise numbered("E202", line=line)
    name, *rest = words
    pools: dict[str, list[int]] = {}
    current: str | None = None
    for word in rest:
        if word.startswith(":"):
            if word not in POOLS:
                raise numbered("E203", word, line)
            current = word
            pools.setdefault(current, [])
            continue
        if current is None:
            raise numbered("E204", word, line)
        if not word.isascii() or not word.isdigit() or len(word) > 6:
            raise numbered("E205", word, line)
        register = int(word)
        letter = POOLS[current]
        first, end = (1, MASKS + 1) if current == ":omr" else (0, chip.registers[letter])
        if not first <= register < end:
            raise numbered("E205", f"{current} {word}", line)
        if current != ":omr" and register % 2:
            raise numbered("E207", f"{current} {word}", line)
        pools[current].append(register)
        if len(pools[current]) > MOST:
            raise numbered("E206", f"{current} has more than {MOST}", line)
    if not any(pools.values()):
        raise numbered("E208", name, line)
    return Block(name, pools)
