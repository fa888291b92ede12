"""Writes a page of docs that is made from a table."""

from __future__ import annotations

import sys
from pathlib import Path


def write_page(text: str, path: Path) -> None:
    """Write the text of a page to the file that the command line names, else to ``path``."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else path
    target.write_text(text)
