"""Heat along a rod with fixed ends, in double precision.

    x_i <- x_i + k (x_(i-1) - 2 x_i + x_(i+1))

PE n of the chip holds points n D .. n D + D - 1. The points next to the borders of a PE come from
its neighbours:

    inside a MAB      `msl` and `msr` rotate the four PEs of a MAB
    MAB to MAB        `l1bmd+1` and `l1bmd-1` rotate the MABs of an L1B
    L1B to L1B        rows of edge points go to PDM one after the other and come back shifted by
    L2B to L2B        one row, also from one L2B and group to the next; an extra row on each side
                      holds the fixed ends

Error: an update has at most four roundings of 2^-53 of the largest value, and does not enlarge
older errors (0 <= k <= 1/2).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from chip import Chip, Outcome, Words, arguments, down, run, up
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

D = 16  # points per PE
K = 0.1875

# LM0 and LM1, in words: point -1, points 0 .. D-1, point D. After them, in LM0 only, the edge
# points of other L1Bs.
LEFT, FIRST, LAST, RIGHT = 0, 2, 2 * D, 2 * D + 2
FAR = 4 * D

# GRF0: new points, then halos. GRF1: constants and the points that came through L1BM.
HALO = 2 * D
K_AT, C_AT, ZERO, NUMBER, TURNED = 0, 2, 4, 6, 8

# Mask registers: the PEs at the border of their MAB, and the PE at the border of its L1B.
MAB_EDGE, L1B_EDGE = 1, 3


class Layout:
    """Addresses in PDM, in long words."""

    def __init__(self, chip: Chip) -> None:
        self.points = chip.pes * D
        self.row = chip.cycles * chip.spec.ports["l2bm_narrow"]  # one l2bm@, one l2bmb
        self.rows = chip.l2bs * chip.l1bs
        # The last points of the L1Bs follow a row with the left end. The first points are followed
        # by a row with the right end.
        self.lasts = 2 * self.points + self.row
        self.firsts = self.lasts + self.rows * self.row
        # The fixed ends: the last lane of the first row, and word 0 of the last row.
        self.left_end = self.lasts - self.row + chip.lanes - 1
        self.right_end = self.firsts + self.rows * self.row


def deal(chip: Chip, points: Doubles) -> Words:
    """Return points in the order in which `down` and `l1bmd` deal them out, D to each PE."""
    split = (chip.l2bs, chip.l1bs, chip.lanes // chip.l1b_lane, chip.l1b_lane, D)
    return points.reshape(split).transpose(0, 4, 2, 1, 3).reshape(-1).view(np.uint64)


def collect(chip: Chip, words: Words) -> Doubles:
    """Undo `deal`."""
    split = (chip.l2bs, D, chip.lanes // chip.l1b_lane, chip.l1bs, chip.l1b_lane)
    return words.view(np.float64).reshape(split).transpose(0, 3, 2, 4, 1).reshape(-1)


def from_pdm(chip: Chip, size: int, pdm: int) -> Iterator[str]:
    """Yield the MVs that deal out `size` long words to each L2BM, and waits for them."""
    for q in range(chip.l2bs):
        yield f"mvp/n{size}i{1 + q:02x} $p{pdm + q * size}@0 $lc0{chip.l2b(q)}"
    for q in range(chip.l2bs):
        yield f"nop; wait i{1 + q:02x}"


def to_pdm(chip: Chip, size: int, pdm: int) -> Iterator[str]:
    """Yield the MVs that collect the same words in PDM, and waits for them."""
    for q in range(chip.l2bs):
        yield f"mvp/n{size}i{1 + q:02x} $lc0{chip.l2b(q)} $p{pdm + q * size}@0"
    for q in range(chip.l2bs):
        yield f"nop; wait i{1 + q:02x}"


def constant(value: float, destination: str) -> str:
    """Return the step that writes a double whose low 32 bits are zero."""
    return f'immu ui"0x{int(np.float64(value).view(np.uint64)) >> 32:08X}" {destination}'


def prologue(chip: Chip) -> Iterator[str]:
    """Yield constants, masks and the points."""
    yield "# k and 1 - 2 k; T = 2 x the number of the L1B, for indirect addresses"
    yield constant(K, f"$ls{K_AT}")
    yield constant(1 - 2 * K, f"$ls{C_AT}")
    yield f"zero $ls{ZERO}"
    yield "nop/2"
    yield f"lpackbit $l1bid $ls{ZERO} $t"
    yield "# Masks: the last PE of a MAB and of an L1B, then the first of a MAB and of an L1B"
    numbers = [
        (chip.pe_per_mab - 1, "$subpeid"),
        (chip.lanes - 1, "$peid"),
        (0, "$subpeid"),
        (0, "$peid"),
    ]
    for mask, (number, name) in zip(
        [MAB_EDGE, L1B_EDGE, MAB_EDGE + 1, L1B_EDGE + 1], numbers, strict=True
    ):
        yield f'imm i"{number}" $ls{NUMBER}'
        yield "nop/2"
        yield f"ixor {name} $ls{NUMBER} $omr{mask}"
    yield "# The points: PDM -> L2BM -> L1BM -> LM0 and LM1"
    share = chip.l1bs * chip.lanes * D
    yield from from_pdm(chip, share, 0)
    yield from down(chip, share, 0, 0)
    yield "nop"
    for a in range(0, D, chip.cycles):
        yield f"l1bmd $lb{chip.lanes * a} $lm{FIRST + 2 * a}v $ln{FIRST + 2 * a}v"
    yield "nop/2"


def halo(chip: Chip, layout: Layout, side: int) -> Iterator[str]:
    """Yield the exchange: side 0 brings the next PE's first point, 1 the previous PE's last."""
    edge, turn, shift = (FIRST, "msr", -1) if side == 0 else (LAST, "msl", +1)
    area = layout.firsts if side == 0 else layout.lasts
    lane = 0 if side == 0 else chip.lanes - 1
    halo = RIGHT if side == 0 else LEFT
    yield f"# {'right' if side == 0 else 'left'} halo: inside the MAB, then from MAB to MAB"
    yield f"{turn} $lm{edge} $lr{HALO}"
    yield "nop/2"
    yield f"l1bmd $lr{HALO} $lb0"
    yield "nop/2"
    yield f"l1bmd{shift:+d} $lb0 $ls{TURNED}"
    yield "nop/2"
    yield f"lpassa $ls{TURNED} $lr{HALO}/$imr{MAB_EDGE + side}"
    yield "# from L1B to L1B: every L1B's row of edge points to PDM, and the next one's back"
    yield f"l1bmd $lm{edge} $lb0"
    yield "nop/2"
    for b in range(chip.l1bs):
        yield f"l2bm@{b} $lb0 $lc{layout.row * b}"
    size = chip.l1bs * layout.row
    yield from to_pdm(chip, size, area)
    yield from from_pdm(chip, size, area - shift * layout.row)
    yield "# every L1B sees all rows of its L2B, and T picks its own"
    for b in range(chip.l1bs):
        yield f"l2bmb $lc{layout.row * b} $lb{layout.row * b}"
    yield "nop"
    for b in range(chip.l1bs):
        yield f"l1bmp $lb{layout.row * b + lane} $lm{FAR + 2 * b}/1000"
    yield "nop/2"
    yield f"lpassa $lmt{FAR} $lr{HALO}/$imr{L1B_EDGE + side}"
    yield "nop/2"
    yield f"lpassa $lr{HALO} $lm{halo} $ln{halo}"
    yield "nop/2"


def update(chip: Chip) -> Iterator[str]:
    """Yield x <- k (left + right) + (1 - 2 k) x for four points at a time."""
    yield "# the update: products take two steps, for half of the PEs each"
    for a in range(0, 2 * D, 2 * chip.cycles):
        yield f"dvadd $lm{LEFT + a}v $ln{RIGHT - 2 * D + 2 + a}v $lr{HALO + 8}v"
        yield f"dvmulu $lm{FIRST + a}v $ls{C_AT} $nowrite"
        yield f"dvfmad $lm{FIRST + a}v $ls{C_AT} $mauf $nowrite"
        yield f"dvfmau $lr{HALO + 8}v $ls{K_AT} $mauf $nowrite"
        yield f"dvfmad $lr{HALO + 8}v $ls{K_AT} $mauf $lr{a}v"
    yield "nop"
    for a in range(0, 2 * D, 2 * chip.cycles):
        yield f"lpassa $lr{a}v $lm{FIRST + a}v $ln{FIRST + a}v"
    yield "nop/2"


def build(chip: Chip, times: int) -> str:
    """Return the assembly of `times` updates."""
    layout = Layout(chip)
    lines = [f"# {times} updates of {layout.points} points, {D} per PE", *prologue(chip)]
    for time in range(times):
        lines.append(f"# ---- update {time}")
        lines += [*halo(chip, layout, 0), *halo(chip, layout, 1), *update(chip)]
    lines.append("# The points: LM0 -> L1BM -> L2BM -> PDM")
    lines += [f"l1bmd $lm{FIRST + 2 * a}v $lb{chip.lanes * a}" for a in range(0, D, chip.cycles)]
    share = chip.l1bs * chip.lanes * D
    lines += ["nop/2", *up(chip, share, 0, 0), *to_pdm(chip, share, layout.points)]
    return "\n".join(lines) + "\n"


def advance(
    chip: Chip, points: Doubles, ends: tuple[float, float], times: int
) -> tuple[Doubles, Outcome]:
    """Return `points`, as many as the chip holds, after `times` updates."""
    layout = Layout(chip)
    inputs = {0: deal(chip, points)}
    for address, end in zip([layout.left_end, layout.right_end], ends, strict=True):
        inputs[address] = np.array([end]).view(np.uint64)
    done = run(chip, build(chip, times), inputs, layout.points, layout.points)
    return collect(chip, done.words), done


def reference(points: Doubles, ends: tuple[float, float], times: int) -> tuple[Doubles, float]:
    """Return the points after the updates by numpy, and the error bound of the difference."""
    scale = max(np.abs(points).max(), *map(abs, ends))
    for _ in range(times):
        wide = np.concatenate([ends[:1], points, ends[1:]])
        points = K * (wide[:-2] + wide[2:]) + (1 - 2 * K) * points
    return points, float(2 * 4 * times * 2.0**-53 * scale)


def main() -> None:
    """Run it on random points."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    chip = Chip(options.spec)
    if options.print:
        print(build(chip, options.times), end="")
        return
    points, ends = np.random.default_rng(1).normal(size=chip.pes * D), (5.0, -3.0)
    found, done = advance(chip, points, ends, options.times)
    exact, bound = reference(points, ends, options.times)
    error = float(np.abs(found - exact).max())
    print(f"{len(points)} points on {chip.pes} PEs, {options.times} updates: {done.summary()}")
    print(f"largest error {error / bound:.3f} of its bound")
    if error > bound:
        raise SystemExit("wrong")


if __name__ == "__main__":
    main()
