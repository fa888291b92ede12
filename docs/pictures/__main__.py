"""``python -m pictures [NAME...]``: writes the pictures of the pages, all of them by default."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from . import chip, layouts, pipeline, product, screens, terminal

FOLDER = Path(__file__).parent
#: Drawings that depend on the spec and on layouts alone; a test compares them.
DRAWN: dict[str, Callable[[], str]] = {
    "chip.svg": chip.chip,
    "layout.svg": layouts.layout,
    "product.svg": product.product,
    "switch.svg": layouts.switch,
}
#: What commands print, and what they draw.
PRINTED: dict[str, Callable[[], str]] = {
    "conformance.svg": terminal.conformance,
    "debugging.svg": terminal.debugger,
    "language_server.svg": terminal.language_server,
    "pipeline.svg": pipeline.pipeline,
    "pytest.svg": terminal.pytest_report,
    "sanitizer.svg": terminal.sanitizer,
    **screens.PRINTED,
}


def made() -> list[str]:
    """Return the names of the files that are made."""
    return [*DRAWN, *PRINTED, *screens.SHOTS]


def main(names: list[str]) -> None:
    """Write the pictures with these names, or all. Pages need a browser."""
    for name, draw in {**DRAWN, **PRINTED}.items():
        if not names or name in names:
            print(name, flush=True)
            (FOLDER / name).write_text(draw(), encoding="utf-8")
    for name, take in screens.SHOTS.items():
        if not names or name in names:
            if screens.browser() is None:
                print(f"{name} is not made: chromium is missing (make browser)", flush=True)
                continue
            print(name, flush=True)
            (FOLDER / name).write_bytes(take())


if __name__ == "__main__":
    main(sys.argv[1:])
