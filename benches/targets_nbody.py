"""Compares the forces of N-body with the peak of double products: a row for `make bench`.

The example runs on the emulator. It brings each of its bodies to a body in every cycle of every PE.
Value and bound are multiply-adds per cycle; a pair of bodies takes as many as the inner loop has.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emu2
from pycompiler.layers.products.roles import DOUBLE
from pycompiler.machine import load_target
from pycompiler.report.bound import peak

EXAMPLES = Path(__file__).parents[1] / "examples"
#: Products of single numbers use a quarter of the MAU, and 38 of the 41 steps of the inner loop.
LEAST = 0.17


def rows(bodies: int = 256, machine: str = "mncore2") -> Iterator[dict[str, Any]]:
    """Return the row. The program runs in a second."""
    sys.path.insert(0, str(EXAMPLES))
    chip = importlib.import_module("chip").Chip(machine)
    text = importlib.import_module("nbody").build(chip, bodies, 2.0**-10)
    # A product is two instructions: `u` for half of the PEs, `d` for the others.
    products = text.count("fmau ") + text.count("mulu ")
    cycles = emu2.Machine(chip.spec).run(emu2.assemble(text, chip.spec)).counters["cycles"]
    bound = peak(load_target(machine), DOUBLE)
    value = products * chip.pes * chip.cycles / cycles
    pairs = chip.pes * chip.cycles * bodies
    yield {
        "name": f"N-body forces in doubles, {pairs} pairs, {products // bodies} products each",
        "value": value,
        "bound": bound,
        "ratio": value / bound,
        "target": LEAST,
        "met": value / bound >= LEAST,
    }


if __name__ == "__main__":
    for row in rows():
        print(row)
