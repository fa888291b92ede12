"""Areas of L1BM and L2BM: those of a directive, and sections of broadcasts, which stay."""

from __future__ import annotations

from dataclasses import dataclass, field

from emu2.link.faults import LinkError, fault
from emu2.link.machine import Chip


@dataclass
class Areas:
    """What is taken. Sections lie at the end of L1BM, in order of their first use."""

    chip: Chip
    sections: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By the id of the broadcasts: first long word of the section in the PDM, and in L1BM."""

    def _bottom(self) -> int:
        """First long word of L1BM that a section holds."""
        return min((base for _, base in self.sections.values()), default=self.chip.l1bm)

    def check(self, line: int, l1bm: int, l2bm: int) -> None:
        """Check that a directive's areas have room. Raises LinkError E110 and E233."""
        for name, needed, room in (
            ("L1BM", l1bm, self._bottom()),
            ("L2BM", l2bm, self.chip.l2bm),
        ):
            if needed > room:
                detail = f"{needed} long words of {name}, of which {room} are free"
                raise LinkError(fault("E110", detail), fault("E233", line=line))

    def resident(self, section: int) -> int | None:
        """Return where a section lies in L1BM, if it does."""
        return next((base for first, base in self.sections.values() if first == section), None)

    def place(self, name: str, section: int, line: int) -> int:
        """Give the id's place to a section. Raises LinkError E117 and E235."""
        unit = self.chip.block
        base = self.sections[name][1] if name in self.sections else self._bottom() - unit
        if base < unit:
            raise LinkError(fault("E117", name), fault("E235", name, line))
        self.sections[name] = section, base
        return base

    def forget(self, addr: int, count: int) -> None:
        """Forget sections whose words in the PDM are written."""
        unit = self.chip.block
        for name, (first, base) in self.sections.items():
            if first < addr + count and addr < first + unit:
                self.sections[name] = -unit, base
