"""Sum an array of doubles over all PEs: from PDM to the PEs, and the sum back to PDM.

    every PE adds its own words                     4 sums, one per cycle
    l1bmrdfadd                                      over the MABs: 16 sums, cycle x PE
    L1BM -> L2BM -> PDM -> all L2BMs -> all L1BMs   the sums of all L1Bs, everywhere
    every PE adds the sums of its cycle and number  over the L1Bs
    every PE adds four cycles, then its MAB does four PEs

Error: a word passes through less than D = rows + L1Bs + 8 roundings. Each stage of the reduction
counts as two, because it also rounds its inputs, with three guard bits. So the error is at most
D 2^-53 times the sum of magnitudes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from chip import Chip, Outcome, arguments, down, run
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

ROWS = 8  # rows of four long words in each PE


class Layout:
    """Addresses in PDM, in long words: the array, the sums of all L1Bs, the result."""

    def __init__(self, chip: Chip, rows: int) -> None:
        self.share = chip.l1bs * chip.lanes * chip.cycles * rows  # words of an L2B
        self.words = chip.l2bs * self.share
        self.line = chip.cycles * chip.spec.ports["l2bm_narrow"]  # one l2bm@, one l2bmb
        self.sums = self.words
        self.l1bs = chip.l2bs * chip.l1bs
        self.result = self.sums + self.l1bs * self.line


def build(chip: Chip, rows: int) -> str:
    """Return the assembly."""
    return "\n".join(steps(chip, Layout(chip, rows), rows)) + "\n"


def steps(chip: Chip, layout: Layout, rows: int) -> Iterator[str]:
    """Yield the lines."""
    yield f"# {layout.words} doubles: PDM -> L2BM -> L1BM"
    for q in range(chip.l2bs):
        yield f"mvp/n{layout.share}i{1 + q:02x} $p{q * layout.share}@0 $lc0{chip.l2b(q)}"
    for q in range(chip.l2bs):
        yield f"nop; wait i{1 + q:02x}"
    yield from down(chip, layout.share, 0, 0)
    yield "nop"
    yield "# A row per step to the PEs, added from the forwarding paths: $lbf is the row before,"
    yield "# $mauf the sum so far."
    dealt = chip.lanes * chip.cycles
    yield "l1bmd $lb0 $nowrite"
    yield f"l1bmd $lb{dealt} $nowrite; dvpassa $lbf $nowrite" if rows > 1 else "dvpassa $lbf $lr0v"
    for row in range(2, rows):
        yield f"l1bmd $lb{dealt * row} $nowrite; dvadd $lbf $mauf $nowrite"
    if rows > 1:
        yield "dvadd $lbf $mauf $lr0v"
    yield "nop"
    yield "# Over the MABs, then all of these sums to all L1BMs"
    yield "l1bmrdfadd $lr0v $lb0"
    yield "nop/2"
    line = layout.line
    for b in range(chip.l1bs):
        yield f"l2bm@{b} $lb0 $lc{line * b}"
    size = chip.l1bs * line
    for q in range(chip.l2bs):
        yield f"mvp/n{size}i{1 + q:02x} $lc0{chip.l2b(q)} $p{layout.sums + q * size}@0"
    for q in range(chip.l2bs):
        yield f"nop; wait i{1 + q:02x}"
    yield f"mvb/n{layout.l1bs * line}i01 $p{layout.sums}@0 $lc0"
    yield "nop; wait i01"
    for k in range(layout.l1bs):
        yield f"l2bmb $lc{line * k} $lb{line * k}"
    yield "nop"
    yield "# Every MAB gets the 16 sums of an L1B in a step and adds them to those before."
    yield "l1bmm $lb0 $nowrite"
    yield f"l1bmm $lb{line} $nowrite; dvpassa $lbf $nowrite"
    for k in range(2, layout.l1bs):
        yield f"l1bmm $lb{line * k} $nowrite; dvadd $lbf $mauf $nowrite"
    yield "dvadd $lbf $mauf $lr0v $ls0v"
    yield "nop/2"
    yield "# Four cycles, then four PEs: a turn by one PE and one by two"
    yield "dvadd $lr0 $ls2 $nowrite"
    yield "dvadd $lr4 $mauf $nowrite"
    yield "dvadd $lr6 $mauf $lr8v"
    yield "msr $mauf $nowrite"
    yield "dvadd $lr8v $aluf $lr16v"
    yield "msr $mauf $nowrite"
    yield "msr $aluf $nowrite"
    yield "dvadd $lr16v $aluf $lr24v"
    yield "nop"
    yield "# All PEs have the sum; MAB 0 of L1B 0 of L2B 0 delivers it."
    yield "l1bmm@0 $lr24v $lb0"
    yield "nop/2"
    yield "l2bm@0 $lb0 $lc0"
    yield f"mvp/n{line}i01 $lc0{chip.l2b(0)} $p{layout.result}@0"
    yield "nop; wait i01"


def total(chip: Chip, array: Doubles) -> tuple[float, Outcome]:
    """Return the sum of `array`, whose length is a multiple of four times the number of PEs."""
    rows, rest = divmod(len(array), chip.pes * chip.cycles)
    if rest or not rows:
        raise SystemExit(f"{len(array)} words are no multiple of {chip.pes * chip.cycles}")
    done = run(chip, build(chip, rows), {0: array.view(np.uint64)}, Layout(chip, rows).result, 1)
    return float(done.words.view(np.float64)[0]), done


def bound(chip: Chip, array: Doubles) -> float:
    """Return the error bound of the sum."""
    layout = Layout(chip, 1)
    depth = len(array) // layout.words + layout.l1bs + 8
    return float(depth * 2.0**-53 * np.abs(array).sum())


def main() -> None:
    """Run it on random numbers."""
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--rows", type=int, default=ROWS, help="four words of every PE (default: %(default)s)"
    )
    options = parser.parse_args()
    chip = Chip(options.spec)
    if options.print:
        print(build(chip, options.rows), end="")
        return
    array = np.random.default_rng(1).normal(size=Layout(chip, options.rows).words)
    found, done = total(chip, array)
    # `fsum` is exact; numpy's sum is not.
    error = abs(found - math.fsum(array)) / bound(chip, array)
    print(f"{len(array)} doubles on {chip.pes} PEs: {found} ({done.summary()})")
    print(f"error {error:.3f} of its bound")
    if error > 1:
        raise SystemExit("wrong")


if __name__ == "__main__":
    main()
