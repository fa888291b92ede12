"""A product in a MAB: the matrix register times the vector that lies across the PEs."""

from __future__ import annotations

import emu2

from .svg import FILLS, Picture

_CELL = 20
_MAIN = "h"


def product(name: str = "mncore2") -> str:
    """Return the picture for halves, and the sizes of all precisions."""
    spec = emu2.Spec.load(name)
    facts = spec.products[_MAIN]
    rows, columns, pes = facts["rows"], facts["columns"], spec.counts["pe"]
    each = columns // pes
    picture = Picture(760, rows * _CELL + 190, "A product of halves in a MAB")
    picture.write(15, 24, f"hmfma: one cycle of one MAB of {name}", "ink bold", size=15)
    picture.write(
        15,
        44,
        f"{rows} x {columns} multiply-adds; a step is {spec.counts['cycle']} cycles, and meets a "
        "vector in each.",
        "dim",
    )
    x, y = 15, 130
    for pe in range(pes):
        left = x + pe * each * _CELL
        picture.write(left + 2, 74, f"PE {pe}", "dim", size=11)
        for k in range(each):
            picture.box(left + k * _CELL, 80, _CELL, _CELL, fill=FILLS[pe])
    picture.write(x + columns * _CELL + 12, 95, f"x: a vector of {columns} halves, {each} in a PE")
    picture.write(x, y - 8, f"matrix register ($lx or $ly), {rows} x {columns}", "dim")
    for row in range(rows):
        for column in range(columns):
            place = x + column * _CELL, y + row * _CELL
            picture.box(*place, _CELL, _CELL, fill=FILLS[column // each])
    right = x + columns * _CELL
    for pe in range(pes):
        top, high = y + pe * rows / pes * _CELL, rows / pes * _CELL
        picture.line([(right + 8, top + high / 2), (right + 40, top + high / 2)])
        picture.line(
            [
                (right + 34, top + high / 2 - 5),
                (right + 40, top + high / 2),
                (right + 34, top + high / 2 + 5),
            ]
        )
        picture.box(right + 46, top + 2, _CELL, high - 4, fill=FILLS[pe])
        text = f"PE {pe}: {rows // pes} sums, each of {columns} terms, plus y"
        picture.write(right + 74, top + high / 2 + 4, text)
    low = y + rows * _CELL + 30
    sizes = ", ".join(
        f"{one['rows']} x {one['columns']} ({letter})" for letter, one in spec.products.items()
    )
    picture.write(15, low, f"The matrix that a vector meets, by precision: {sizes}.", "dim")
    return picture.text()
