"""A layout, and a switch between two: which PE holds which element."""

from __future__ import annotations

import numpy as np

from pycompiler.gap.crossing import crossings, least_steps
from pycompiler.graph.dtypes import MNDtype
from pycompiler.graph.layout import Layout, Level
from pycompiler.graph.layout_text import parse_layout
from pycompiler.machine import Target, load_target

from .svg import FILLS, Picture

MACHINE = "mini"
SHAPE = (16, 8)
#: Rows over MABs and PEs; columns over addresses and the two singles of a long word.
ROWS = "((4_MAB:1, 4_PE:1), (4:1, 2_W:1); B@[L1B])"
#: Columns over MABs and the singles of a long word; rows over PEs and addresses.
COLUMNS = "((4_PE:1, 4:1), (4_MAB:1, 2_W:1); B@[L1B])"
_CELL = 22
_PE_WIDE, _ROW = 112, 17


def holders(layout: Layout) -> dict[tuple[int, int, int, int], tuple[int, int]]:
    """Return the element at each place of one L1B: MAB, PE, address and word."""
    grid = layout.coordinates(*np.indices(SHAPE))
    levels = (Level.MAB, Level.PE, Level.ADDR, Level.W)
    places = [np.broadcast_to(grid.get(level, 0), SHAPE) for level in levels]
    return {tuple(int(place[at]) for place in places): at for at in np.ndindex(SHAPE)}  # type: ignore[misc]


def layout() -> str:
    """Return the picture of a layout: the tensor, and one L1B."""
    target, own = load_target(MACHINE), parse_layout(ROWS)
    units = target.counts
    high = 96 + SHAPE[0] * _CELL
    picture = Picture(790, high + 34, "A layout: elements of a tensor on PEs")
    picture.write(15, 24, ROWS, "ink bold", size=14)
    picture.write(
        15,
        44,
        f"{SHAPE[0]} rows: 4_MAB:1 and 4_PE:1 choose the MAB and the PE. {SHAPE[1]} columns: 4:1 "
        "is the address, 2_W:1 the single in a long word.",
        "dim",
    )
    _tensor(picture, own, 15, 76, "the tensor (colour: MAB)")
    _l1b(picture, own, target, 250, 76, one=(6, 3))
    picture.write(
        15,
        high + 18,
        f"Element [6, 3] has a frame. B@[L1B]: each of the {units['l1b']} L1Bs of {MACHINE} "
        "holds a copy. A line of a PE is a long word.",
        "dim",
    )
    return picture.text()


def switch() -> str:
    """Return the picture of a switch: before, after, and what must cross each level."""
    target = load_target(MACHINE)
    before, after = parse_layout(ROWS), parse_layout(COLUMNS)
    dtype = MNDtype.FLOAT
    found = crossings(before, after, SHAPE, dtype, target)
    picture = Picture(870, 500, "A layout switch: before, after, and what crosses each level")
    picture.write(15, 24, "A layout switch", "ink bold", size=15)
    for x, text, title in ((15, ROWS, "before"), (300, COLUMNS, "after")):
        own = parse_layout(text)
        picture.write(x, 50, f"{title}: {text.partition(';')[0]}; ...)", "dim")
        _tensor(picture, own, x, 76, "colour: MAB; number: PE", numbers=True)
    picture.line([(225, 250), (275, 250)])
    picture.line([(268, 244), (275, 250), (268, 256)])
    x, y = 560, 84
    picture.write(x, y, "what comes in", "ink bold")
    picture.write(x + 200, y, "elements", "dim", "end")
    picture.write(x + 290, y, "in one at least", "dim", "end")
    for unit, own_level in found.items():
        y += 24
        picture.write(x, y, f"into one {unit}")
        picture.write(x + 200, y, f"{own_level.elements:,}", "ink", "end")
        picture.write(x + 290, y, f"{float(own_level.most):g}", "ink", "end")
    steps = least_steps(found, dtype, target)
    picture.write(x, y + 36, f"lower bound: {steps} step{'s' if steps > 1 else ''}", "ink bold")
    picture.write(x, y + 58, "An element stays in its PE if colour", "dim")
    picture.write(x, y + 74, "and number are equal on both sides.", "dim")
    _arrows(picture, before, after, x, y + 108)
    picture.write(
        15,
        76 + SHAPE[0] * _CELL + 40,
        "Copies count: with B@[L1B], each L1B has all elements before and after, so none crosses "
        "that level.",
        "dim",
    )
    picture.write(
        15,
        76 + SHAPE[0] * _CELL + 58,
        "pycompiler gap --switches lists the switches of a model beside their lower bounds.",
        "dim",
    )
    return picture.text()


def _arrows(picture: Picture, before: Layout, after: Layout, x: float, y: float) -> None:
    """Draw where the elements of one PE go: PEs before on the left, and after on the right."""
    here, there = holders(before), holders(after)
    units = sorted({place[:2] for place in here})
    wide, high, far, one = 30, 8, 240, (0, 1)
    for at, (mab, _) in enumerate(units):
        for left in (x, x + far):
            picture.box(left, y + at * high, wide, high, fill=FILLS[mab])
    moved = {here[place] for place in here if place[:2] == one}
    begin = y + units.index(one) * high + high / 2
    for unit in sorted({place[:2] for place, element in there.items() if element in moved}):
        end = y + units.index(unit) * high + high / 2
        picture.line([(x + wide, begin), (x + far, end)], "dash")
        picture.box(x + far, end - high / 2, wide, high, "chosen")
    picture.box(x, begin - high / 2, wide, high, "chosen")
    picture.write(x + far + wide + 6, y + 10, "PEs of", "dim", size=10)
    picture.write(x + far + wide + 6, y + 22, "an L1B", "dim", size=10)
    about = f"where the elements of PE {one[1]} of MAB {one[0]} go"
    picture.write(x, y - 8, about, "dim")


def _tensor(
    picture: Picture, own: Layout, x: float, y: float, title: str, numbers: bool = False
) -> None:
    picture.write(x, y - 8, title, "dim")
    for (mab, pe, _, _), (row, column) in holders(own).items():
        left, top = x + column * _CELL, y + row * _CELL
        picture.box(left, top, _CELL, _CELL, fill=FILLS[mab])
        text = str(pe) if numbers else ""
        if text:
            picture.write(left + _CELL / 2, top + 15, text, "dark", "middle", size=11)
    if not numbers:
        for row in range(SHAPE[0]):
            picture.write(x + SHAPE[1] * _CELL + 6, y + row * _CELL + 15, str(row), "dim", size=11)


def _l1b(
    picture: Picture, own: Layout, target: Target, x: float, y: float, one: tuple[int, int]
) -> None:
    counts = target.counts
    held = holders(own)
    words = 1 + max(place[2] for place in held)
    lanes = 1 + max(place[3] for place in held)
    tall = 22 + words * _ROW
    for mab in range(counts["mab"]):
        for pe in range(counts["pe"]):
            left, top = x + 34 + pe * (_PE_WIDE + 10), y + mab * (tall + 2)
            if pe == 0:
                picture.write(x - 2, top + 30, "MAB", "dim", size=10)
                picture.write(x + 6, top + 44, str(mab), "dim")
            if mab == 0:
                picture.write(left, y - 8, f"PE {pe}", "dim")
            for word in range(words):
                for lane in range(lanes):
                    element = held[mab, pe, word, lane]
                    wide = _PE_WIDE / lanes
                    place = left + lane * wide, top + word * _ROW, wide, _ROW
                    picture.box(*place, fill=FILLS[mab])
                    text = f"{element[0]}, {element[1]}"
                    picture.write(
                        place[0] + wide / 2, place[1] + 13, text, "dark", "middle", size=11
                    )
                    if element == one:
                        picture.box(*place, kind="chosen")
