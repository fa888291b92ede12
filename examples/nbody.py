"""Pairwise gravity in double precision.

a_i = sum over j of m_j (x_j - x_i) / (|x_j - x_i|^2 + eps^2)^(3/2)

Every PE has four bodies i (one per cycle) for each row; bodies j are broadcast to all PEs, one
after the other. The inner loop has 41 steps for one j and one row. The MAU works in each of them;
the few ALU, L1BM and L2BM instructions share its lines. On the whole chip that is 16384 pairs in 41
steps.

A product of doubles takes two steps, `u` for PEs 0 and 1 of a MAB and `d` for PEs 2 and 3. The `d`
step takes the result of the `u` step (`$mauf`) as its addend. The loop is one chain of such pairs.
Each pair finds the result of the one before: its `u` step in `$mauf`, its `d` step in a memory that
was written two steps earlier. Register files and T need these two steps.

Inverse square root: `drsqrt` gives y with |y sqrt(r2) - 1| < 0.028. Two Newton steps y (c - r2
y^2 / 2) leave |d| < 2^-19.6 in d = 1 - r2 y^2; the first one has c = 1.5 + 2^-11, which centres
its one-sided error. A series gives the rest: r2^(-3/2) = y^3 (1 - d)^(-3/2) = y^3 (1 + 3/2 d + 15/8
d^2 + ...), whose next term is below 0.04 of a rounding.

Error: with u = 2^-53, a difference has an error of u and r2 of 5 u. The force adds 3.5 u to 3/2 of
r2's error, the product with the difference adds u, and an accumulation of n terms adds n u. So
every component is within (n + 14) u sum |m_j (x_j - x_i) / r^3| of the exact one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from chip import Chip, Outcome, arguments, down, run, up
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

BLOCK = 64  # bodies that are moved together: by the smallest MV, and by one l2bmb
GROUP = 4  # bodies that one l1bmp of each array brings: one per cycle
STEPS = 41  # steps of the inner loop

# LM1: two buffers of j bodies (x, y, z, m of four bodies each), then constants. All of it is read
# without `v`: the same word in all cycles, against the four i bodies of the PE.
BODIES = 2 * GROUP * 4  # words of a buffer
EPS2, C1, C2, ONE, K32 = range(2 * BODIES, 2 * BODIES + 10, 2)

# GRF0, four long words (8 words) each: differences (x twice, for this and the next iteration),
# iterates, factors.
DX, DY, DZ, Y1, Y2, P, S = (0, 8), 16, 24, 32, 40, 48, 56
K158 = 64  # the constant 15/8

# GRF1: r2, its half, the seed, d, v; then the accelerations, three per row.
R2, HALF, Y0, D, V, ACC = 0, 8, 16, 24, 32, 40

# L1BM: a ring of two blocks, x y z m of 64 bodies each. L2BM the same.
RING = 4 * BLOCK


class Layout:
    """Where the arrays lie in PDM 0: x, y, z, m, then ax, ay, az, padded to full rows of PEs."""

    def __init__(self, chip: Chip, bodies: int) -> None:
        self.slots = chip.pes * chip.cycles
        self.rows = max(1, -(-bodies // self.slots))
        self.padded = self.rows * self.slots
        self.blocks = -(-bodies // BLOCK)
        words = {
            "pdm": 7 * self.padded,
            "lm0": 3 * self.rows * chip.cycles,
            "grf1": (ACC + 24 * self.rows) // 2,
        }
        # Staging needs the ring, and room for one array of one row.
        words["l2bm"] = 2 * RING + self.slots // chip.l2bs
        words["l1bm"] = 2 * RING + self.slots // chip.l2bs // chip.l1bs
        for memory, needed in words.items():
            if needed > chip.words(memory):
                there = chip.words(memory)
                raise SystemExit(
                    f"{bodies} bodies need {needed} words of {memory}; there are {there}"
                )

    def pdm(self, array: int) -> int:
        """Return the address of an array."""
        return array * self.padded


def constant(value: float, *destinations: str) -> str:
    """Return the step that writes a double whose low 32 bits are zero."""
    bits = int(np.float64(value).view(np.uint64))
    if bits & 0xFFFFFFFF:
        raise SystemExit(f"{value!r} has more than 21 significant bits: `immu` cannot write it")
    return f'immu ui"0x{bits >> 32:08X}" {" ".join(destinations)}'


def load_block(layout: Layout, block: int) -> list[str]:
    """Return the MVs that bring a block of the j bodies to all L2BMs; the last one has a tag."""
    half = RING * (block % 2)
    moves = [
        f"mvb/n{BLOCK}{tag} $p{layout.pdm(a) + BLOCK * block}@0 $lc{half + BLOCK * a}"
        for a, tag in enumerate(["", "", "", f"i{1 + block % 2:02x}"])
    ]
    return moves


def prologue(chip: Chip, layout: Layout, eps2: float) -> Iterator[str]:
    """Yield constants, the i bodies, and the first four j bodies."""
    yield "# The first j bodies start their way while the rest is set up."
    yield from load_block(layout, 0)
    yield "# Constants; `ui` literals are the upper halves of doubles."
    for value, where in [(eps2, EPS2), (1.5 + 2**-11, C1), (1.5, C2), (1.0, ONE)]:
        yield constant(value, f"$ln{where}")
    yield constant(1.5, f"$ln{K32}")
    yield constant(1.875, f"$lr{K158}")
    for k in range(3 * layout.rows):
        yield f"zero $ls{ACC + 8 * k}v"
    yield "# The i bodies: PDM -> L2BM -> L1BM -> LM0, a row of 4 bodies per PE at a time."
    each = layout.slots // chip.l2bs
    stage, l1bm = 2 * RING, 2 * RING
    for row in range(layout.rows):
        for array in range(3):
            for q in range(chip.l2bs):
                tag = "i03" if q == chip.l2bs - 1 else f"i{4 + q:02x}"
                source = layout.pdm(array) + row * layout.slots + q * each
                yield f"mvp/n{each}{tag} $p{source}@0 $lc{stage}{chip.l2b(q)}"
            for q in range(chip.l2bs - 1):
                yield f"nop; wait i{4 + q:02x}"
            yield "nop; wait i03"
            yield from down(chip, each, stage, l1bm)
            yield "nop"
            yield f"l1bmd $lb{l1bm} $lm{8 * (3 * row + array)}v"
    yield "# Block 0 to the L1BMs, its first four bodies to the PEs; block 1 sets out."
    yield "nop; wait i01"
    for array in range(4):
        yield f"l2bmb $lc{BLOCK * array} $lb{BLOCK * array}"
    yield "nop"
    for array in range(4):
        yield f"l1bmp $lb{BLOCK * array} $ln{2 * GROUP * array}v"
    yield "nop/2"
    yield f"dvadd $ln0 -$lm0v $lr{DX[0]}v"
    yield "nop"


def pair(layout: Layout, count: int) -> Iterator[str]:
    """Yield the inner loop: iteration t handles body t // rows for row t % rows.

    The previous iteration computes `dx`, in the step in which its MAU would wait for `drsqrt`.
    """
    rows = layout.rows
    last = count * rows - 1
    for t in range(last + 1):
        j, row = divmod(t, rows)
        group, member = divmod(j, GROUP)
        body = BODIES * (group % 2) + 2 * member  # LM1, x; y, z, m follow at 8, 16, 24
        xi, acc, dx = 24 * row, ACC + 24 * row, DX[t % 2]
        following = ""
        if t < last:
            j1, row1 = divmod(t + 1, rows)
            body1 = BODIES * (j1 // GROUP % 2) + 2 * (j1 % GROUP)
            following = f"dvadd $ln{body1} -$lm{24 * row1}v $lr{DX[(t + 1) % 2]}v; "
        lines = [
            # Differences.
            f"dvadd $ln{body + 8} -$lm{xi + 8}v $lr{DY}v",
            f"dvadd $ln{body + 16} -$lm{xi + 16}v $lr{DZ}v",
            # r2 = dx^2 + dy^2 + dz^2 + eps^2
            f"dvfmau $lr{dx}v $lr{dx}v $ln{EPS2} $nowrite",
            f"dvfmad $lr{dx}v $lr{dx}v $mauf $nowrite",
            f"dvfmau $lr{DY}v $lr{DY}v $mauf $nowrite",
            f"dvfmad $lr{DY}v $lr{DY}v $mauf $nowrite",
            f"dvfmau $lr{DZ}v $lr{DZ}v $mauf $nowrite",
            f"dvfmad $lr{DZ}v $lr{DZ}v $mauf $ls{R2}v",
            # The ALU computes y0 and r2 / 2, so the MAU has time for the next dx.
            f"{following}drsqrt $mauf $ls{Y0}v",
            f"dvmulu $aluf $aluf $nowrite; dlrelud $msb1 $ls{R2}v $ls{HALF}v",
            f"dvfmad $ls{Y0}v $ls{Y0}v $mauf $t",
            # y1 = y0 (c1 - r2/2 y0^2)
            f"dvfmau $ls{HALF}v -$mauf $ln{C1} $nowrite",
            f"dvfmad $ls{HALF}v -$t $mauf $t",
            f"dvmulu $ls{Y0}v $mauf $nowrite",
            f"dvfmad $ls{Y0}v $t $mauf $lr{Y1}v",
            "dvmulu $mauf $mauf $nowrite",
            f"dvfmad $lr{Y1}v $lr{Y1}v $mauf $t",
            # y2 = y1 (c2 - r2/2 y1^2)
            f"dvfmau $ls{HALF}v -$mauf $ln{C2} $nowrite",
            f"dvfmad $ls{HALF}v -$t $mauf $t",
            f"dvmulu $lr{Y1}v $mauf $nowrite",
            f"dvfmad $lr{Y1}v $t $mauf $lr{Y2}v",
            "dvmulu $mauf $mauf $nowrite",
            f"dvfmad $lr{Y2}v $lr{Y2}v $mauf $t",
            # d = 1 - r2 y2^2, p = 3/2 + 15/8 d
            f"dvfmau $ls{R2}v -$mauf $ln{ONE} $nowrite",
            f"dvfmad $ls{R2}v -$t $mauf $ls{D}v",
            f"dvfmau $mauf $lr{K158} $ln{K32} $nowrite",
            f"dvfmad $ls{D}v $lr{K158} $mauf $lr{P}v",
            # v = m y2^3, f = v + v d p
            f"dvmulu $lr{Y2}v $ln{body + 24} $nowrite",
            f"dvfmad $lr{Y2}v $ln{body + 24} $mauf $lr{S}v",
            "dvmulu $t $mauf $nowrite",
            f"dvfmad $t $lr{S}v $mauf $t",
            f"dvmulu $mauf $ls{D}v $nowrite",
            f"dvfmad $t $ls{D}v $mauf $ls{V}v",
            f"dvfmau $mauf $lr{P}v $t $nowrite",
            f"dvfmad $ls{V}v $lr{P}v $mauf $t",
            # a += f (dx, dy, dz)
            f"dvfmau $mauf $lr{dx}v $ls{acc}v $nowrite",
            f"dvfmad $t $lr{dx}v $mauf $ls{acc}v",
            f"dvfmau $t $lr{DY}v $ls{acc + 8}v $nowrite",
            f"dvfmad $t $lr{DY}v $mauf $ls{acc + 8}v",
            f"dvfmau $t $lr{DZ}v $ls{acc + 16}v $nowrite",
            f"dvfmad $t $lr{DZ}v $mauf $ls{acc + 16}v",
        ]
        yield f"# body {j}, row {row}"
        yield from ride_along(layout, lines, t, count)


def ride_along(layout: Layout, lines: list[str], t: int, count: int) -> Iterator[str]:
    """Yield the lines of iteration `t` with the transfers that bring later bodies.

    L1BM -> LM1 runs one step after r2 has read eps^2, since LM1 is not read for two steps there.
    Four iterations bring x, y, z, m of the next four bodies into the other buffer. L2BM -> L1BM and
    the MVs run one block ahead.
    """
    j, row = divmod(t, layout.rows)
    group, array = j // GROUP + 1, t % (GROUP * layout.rows)
    block, first = divmod(group * GROUP, BLOCK)
    if array < GROUP and group * GROUP < count:
        source = RING * (block % 2) + BLOCK * array + first
        lines[3] += f"; l1bmp $lb{source} $ln{BODIES * (group % 2) + 2 * GROUP * array}v"
    # During the first body of a block, the MVs of the next block start.
    block, body = divmod(j, BLOCK)
    if body == 0 and row == 0 and block + 1 < layout.blocks:
        yield from load_block(layout, block + 1)
    middle = BLOCK // 2
    if row == 0 and middle <= body < middle + 4 and block + 1 < layout.blocks:
        half, array = RING * ((block + 1) % 2), body - middle
        wait = f"; wait i{1 + (block + 1) % 2:02x}" if array == 0 else ""
        lines[6] += f"; l2bmb $lc{half + BLOCK * array} $lb{half + BLOCK * array}{wait}"
    yield from lines


def epilogue(chip: Chip, layout: Layout) -> Iterator[str]:
    """Yield the moves of the accelerations to PDM."""
    yield "# Accelerations: GRF1 -> L1BM -> L2BM -> PDM."
    each = layout.slots // chip.l2bs
    stage, l1bm = 2 * RING, 2 * RING
    yield "nop"
    for row in range(layout.rows):
        for array in range(3):
            yield f"l1bmd $ls{ACC + 24 * row + 8 * array}v $lb{l1bm}"
            yield "nop/2"
            yield from up(chip, each, l1bm, stage)
            for q in range(chip.l2bs):
                tag = f"i{4 + q:02x}"
                destination = layout.pdm(4 + array) + row * layout.slots + q * each
                yield f"mvp/n{each}{tag} $lc{stage}{chip.l2b(q)} $p{destination}@0"
            for q in range(chip.l2bs):
                yield f"nop; wait i{4 + q:02x}"


def build(chip: Chip, bodies: int, eps2: float) -> str:
    """Return the assembly."""
    layout = Layout(chip, bodies)
    count = -(-bodies // GROUP) * GROUP
    lines = [f"# Gravity of {bodies} bodies, eps^2 = {eps2}; x y z m in PDM, ax ay az out."]
    lines += prologue(chip, layout, eps2)
    lines += pair(layout, count)
    lines += epilogue(chip, layout)
    return "\n".join(lines) + "\n"


def simulate(chip: Chip, position: Doubles, mass: Doubles, eps2: float) -> tuple[Doubles, Outcome]:
    """Return the accelerations (bodies, 3) at `position` (bodies, 3) with `mass` (bodies,)."""
    bodies = len(mass)
    layout = Layout(chip, bodies)
    # The bodies that fill up the last row have no mass.
    padded = np.zeros((4, layout.padded))
    padded[:3, :bodies], padded[3, :bodies] = position.T, mass
    words = padded.view(np.uint64).reshape(-1)
    size = 3 * layout.padded
    done = run(chip, build(chip, bodies, eps2), {0: words}, layout.pdm(4), size)
    return done.words.view(np.float64).reshape(3, -1)[:, :bodies].T, done


def reference(position: Doubles, mass: Doubles, eps2: float) -> tuple[Doubles, Doubles]:
    """Return accelerations by numpy, and the error bound of each component."""
    exact, bound = np.zeros_like(position), np.zeros_like(position)
    for at in range(0, len(mass), 256):
        dx = position[None, :, :] - position[at : at + 256, None, :]
        force = mass / np.sqrt((dx**2).sum(axis=2) + eps2) ** 3
        exact[at : at + 256] = (force[:, :, None] * dx).sum(axis=1)
        bound[at : at + 256] = np.abs(force[:, :, None] * dx).sum(axis=1)
    # Twice the machine's bound, because numpy rounds too.
    return exact, 2 * (len(mass) + 14) * 2.0**-53 * bound


def main() -> None:
    """Run it on random bodies."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--bodies", type=int, default=256)
    parser.add_argument("--eps2", type=float, default=2.0**-10)
    options = parser.parse_args()
    chip = Chip(options.spec)
    if options.print:
        print(build(chip, options.bodies, options.eps2), end="")
        return
    random = np.random.default_rng(1)
    position, mass = random.normal(size=(options.bodies, 3)), random.uniform(0.5, 2, options.bodies)
    found, done = simulate(chip, position, mass, options.eps2)
    exact, bound = reference(position, mass, options.eps2)
    worst = float((np.abs(found - exact) / bound).max())
    print(f"{options.bodies} bodies on {chip.pes} PEs: {done.summary()}")
    print(f"largest error {worst:.3f} of its bound")
    if worst > 1:
        raise SystemExit("wrong")


if __name__ == "__main__":
    main()
