"""Transpose a matrix of long words that is spread over all PEs.

Every PE has words for every other L1B and MAB. On the whole chip the matrix is 512 x 512, 64 long
words on each of 4096 PEs. It comes from PDM row by row and goes back column by column. A row number
i and a column number j consist of digits; each digit is the number of a unit or an address.
Transposing exchanges digits, and every level of the tree has an instruction for that:

    PDM -> L2BM    an L2B takes rows: the upper digit of i
    l2bmd          deals a row out to the L1Bs, 8 columns each: the middle digit of j
    l1bmd          deals its 64 columns out to the PEs, a row per cycle: the lower digit of i
                   becomes the address
    dmwrite/dmread exchange the last digit of i (the cycle) with the last of j (the PE in its MAB)
    l1bmm@m        collects one MAB: its four PEs and four cycles become 16 rows of one column
    l2bm@b         collects one L1B: columns become lines of L2BM
    L2BM -> PDM    puts the lines of the L2Bs side by side
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from chip import Chip, Outcome, Words, arguments, down, run

TILE = 4  # rows and columns of the matrix register for doubles


class Shape:
    """The matrix that fills a chip: side, rows per L2B, columns per L1B."""

    def __init__(self, chip: Chip) -> None:
        self.side = chip.lanes * chip.l1bs
        self.rows = self.side // chip.l2bs
        self.columns = chip.lanes
        self.tiles = self.rows // TILE  # tiles of a MAB, one below the other

    def column(self, chip: Chip, l1b: int, lane: int) -> int:
        """Return the column of PE number `lane` of an L1B: `l2bmd` deals them out by 8."""
        outer, inner = divmod(lane, chip.l1b_lane)
        return (outer * chip.l1bs + l1b) * chip.l1b_lane + inner


def build(chip: Chip) -> str:
    """Return the assembly."""
    return "\n".join(steps(chip, Shape(chip))) + "\n"


def steps(chip: Chip, shape: Shape) -> Iterator[str]:
    """Yield the lines."""
    yield f"# {shape.side} x {shape.side} long words: PDM -> L2BM, {shape.rows} rows each"
    share = shape.rows * shape.side
    for q in range(chip.l2bs):
        yield f"mvp/n{share}i{1 + q:02x} $p{q * share}@0 $lc0{chip.l2b(q)}"
    for q in range(chip.l2bs):
        yield f"nop; wait i{1 + q:02x}"
    yield "# -> L1BM, every L1B its columns of every row"
    yield from down(chip, share, 0, 0)
    yield "nop"
    yield "# -> LM0: the PE is the column, the address the row"
    dealt = chip.cycles * chip.lanes
    for s in range(shape.tiles):
        yield f"l1bmd $lb{dealt * s} $lm{8 * s}v"
    yield "nop/2"
    yield "# 4 x 4 tiles through the matrix registers, one written while the other is read: row and"
    yield "# column swap places"
    for s in range(shape.tiles + 1):
        write = f"dmwrite $lm{8 * s}v $l{'xy'[s % 2]}0" if s < shape.tiles else ""
        read = f"dmread $l{'yx'[s % 2]}0 $ln{8 * (s - 1)}v" if s > 0 else ""
        yield "; ".join(filter(None, [write, read]))
    yield "nop/2"
    yield "# -> L1BM: four tiles below each other give 16 rows of column `c` of MAB `m`"
    for m in range(chip.mabs):
        for c in range(TILE):
            for k in range(shape.tiles // TILE):
                line = (TILE * m + c) * shape.rows + TILE * TILE * k
                yield f"l1bmm@{m} $ln{8 * TILE * k + 2 * c}v8 $lb{line}"
    yield "nop/2"
    yield "# -> L2BM: a line per column, in their order"
    moved = chip.cycles * chip.spec.ports["l2bm_narrow"]  # long words of one l2bm@
    for b in range(chip.l1bs):
        for at in range(0, shape.columns * shape.rows, moved):
            yield f"l2bm@{b} $lb{at} $lc{shape.column(chip, b, at // shape.rows) * shape.rows}"
    yield "# -> PDM, behind the input"
    # In PDM, the lines of one L2B lie `side` apart; with a single L2B they are contiguous.
    length = shape.rows if chip.l2bs > 1 else share
    for at in range(0, share, length):
        for q in range(chip.l2bs):
            last = at + length == share
            to = shape.side**2 + at * chip.l2bs + q * shape.rows
            yield f"mvp/n{length}{f'i{1 + q:02x}' if last else ''} $lc{at}{chip.l2b(q)} $p{to}@0"
    for q in range(chip.l2bs):
        yield f"nop; wait i{1 + q:02x}"


def transpose(chip: Chip, matrix: Words) -> tuple[Words, Outcome]:
    """Return the transposed matrix; its shape must be the chip's."""
    size = Shape(chip).side ** 2
    done = run(chip, build(chip), {0: matrix.reshape(-1)}, size, size)
    return done.words.reshape(matrix.shape), done


def main() -> None:
    """Run it on random words."""
    options = arguments(__doc__ or "").parse_args()
    chip = Chip(options.spec)
    if options.print:
        print(build(chip), end="")
        return
    side = Shape(chip).side
    matrix = np.random.default_rng(1).integers(0, 2**64, (side, side), dtype=np.uint64)
    found, done = transpose(chip, matrix)
    print(f"{side} x {side} on {chip.pes} PEs: {done.summary()}")
    if not np.array_equal(found, matrix.T):
        raise SystemExit("wrong")
    print("equal to numpy's")


if __name__ == "__main__":
    main()
