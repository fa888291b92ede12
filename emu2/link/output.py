"""The output of the linker, line by line, and the source line of each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from emu2.link.origins import MARK


class Output:
    """Collects lines. A mark says from which line of the source the following ones come."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: list[str] = []
        self._marked = -1
        self._inside = False

    @contextmanager
    def of(self, line: int, *, expanded: bool = True) -> Iterator[None]:
        """Lines inside of this block come from line ``line`` of the source."""
        # A copied line behind a copied line needs no mark: the reader counts on.
        if expanded or self._inside or self._marked + 1 != line:
            self.lines.append(f'{MARK} {line}{"" if not expanded else " expanded"} "{self.file}"')
        self._inside = expanded
        yield
        self._marked = line

    def code(self, *lines: str) -> None:
        """Add instructions."""
        self.lines.extend(lines)

    def note(self, text: str) -> None:
        """Add a comment."""
        self.lines.append(f"# {text}")

    def nop(self, count: int) -> None:
        """Add idle steps."""
        self.lines.append("nop" if count == 1 else f"nop/{count}")

    def wait(self, tag: int) -> None:
        """Add a wait for a tag."""
        self.lines.append(f"nop; wait i{tag:02x}")

    def text(self) -> str:
        """Return the output."""
        return "\n".join(self.lines) + "\n"
