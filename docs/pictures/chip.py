"""The chip: each panel is one unit of the panel before it, enlarged. All numbers are the spec's."""

from __future__ import annotations

from math import ceil, prod, sqrt

import emu2

from .svg import Picture

LEVELS = ("group", "l2b", "l1b", "mab", "pe")
NAMES = {"group": "group", "l2b": "L2B", "l1b": "L1B", "mab": "MAB", "pe": "PE"}
#: Memories that programs address; registers that hold one number are left out.
_MEMORIES = ("dram", "pdm", "l2bm", "l1bm", "lm0", "lm1", "grf0", "grf1", "t", "mx", "my")
_LONG = 8  # bytes of a long word, which all sizes of the spec count
_WIDE, _GAP, _TOP, _HIGH = 178, 26, 64, 300


def size(spec: emu2.Spec, memory: str) -> str:
    """Return the bytes of one instance of a memory."""
    count = float(spec.memories[memory]["words"] * _LONG)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:g} {unit}"
        count /= 1024
    raise AssertionError


def instances(spec: emu2.Spec, level: str) -> int:
    """Return how many units of a level the chip has."""
    return prod(spec.counts[one] for one in LEVELS[: LEVELS.index(level) + 1])


def chip(name: str = "mncore2") -> str:
    """Return the picture of a machine."""
    spec = emu2.Spec.load(name)
    total = instances(spec, "pe")
    width = len(LEVELS) * (_WIDE + _GAP) + _WIDE + 30
    picture = Picture(width, _TOP + _HIGH + 52, f"The units and memories of {name}")
    title = " x ".join(
        f"{spec.counts[one]} {NAMES[one]}{'s' if spec.counts[one] > 1 else ''}" for one in LEVELS
    )
    picture.write(15, 24, f"{name}: {title} = {total:,} PEs", "ink bold", size=15)
    outer = ("chip", *LEVELS)
    for place, level in enumerate(outer):
        x = 15 + place * (_WIDE + _GAP)
        inner = outer[place + 1] if place + 1 < len(outer) else None
        chosen = _panel(picture, spec, level, inner, x)
        if chosen is not None:  # lines to the panel that enlarges the unit
            right = x + _WIDE + _GAP
            _, by, _, high = chosen
            picture.box(*chosen, kind="chosen")
            picture.line([(x + _WIDE, by), (right, _TOP)], "dash")
            picture.line([(x + _WIDE, by + high), (right, _TOP + _HIGH)], "dash")
    picture.write(
        15,
        _TOP + _HIGH + 30,
        f"All PEs run the same line. A step takes {spec.counts['cycle']} cycles at "
        f"{spec.clock_mhz} MHz. Sizes are those of one memory.",
        "dim",
    )
    return picture.text()


def _panel(
    picture: Picture, spec: emu2.Spec, level: str, inner: str | None, x: float
) -> tuple[float, float, float, float] | None:
    """Draw a unit; return the place of the first unit in it."""
    picture.box(x, _TOP, _WIDE, _HIGH)
    many = "" if level == "chip" else f" (1 of {instances(spec, level):,})"
    picture.write(x, _TOP - 10, f"{NAMES.get(level, level)}{many}", "ink bold")
    y = _TOP + 10
    own = [one for one in _MEMORIES if spec.memories[one]["level"] == level]
    for memory in own:
        picture.box(x + 8, y, _WIDE - 16, 24, "inner")
        picture.write(x + 14, y + 16, spec.memories[memory]["dump"])
        picture.write(x + _WIDE - 14, y + 16, size(spec, memory), "dim", "end")
        y += 28
    if inner is None:
        for unit in ("ALU", "MAU"):
            picture.box(x + 8, y, _WIDE - 16, 24, fill="#8fb8de")
            picture.write(x + _WIDE / 2, y + 16, unit, "dark bold", "middle")
            y += 28
        return None
    count = spec.counts[inner]
    columns = ceil(sqrt(count))
    rows = ceil(count / columns)
    picture.write(x + 8, y + 14, f"{count} {NAMES[inner]}{'s' if count > 1 else ''}", "dim")
    y += 22
    dx, dy = (_WIDE - 16) / columns, min((_TOP + _HIGH - 8 - y) / rows, 66)
    for k in range(count):
        left, top = x + 8 + k % columns * dx, y + k // columns * dy
        picture.box(left + 2, top + 2, dx - 4, dy - 4, "inner")
        picture.write(left + dx / 2, top + dy / 2 + 4, str(k), "dim", "middle")
    return x + 10, y + 2, dx - 4, dy - 4
