"""Flags at boundaries, and values of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emu2.link.faults import numbered
from emu2.link.pools import Block
from emu2.link.transfers import Expander

FLAGS = (
    *("data_edge_left", "data_edge_right", "cross_chip_left", "cross_chip_right"),
    *("cross_L2B_left", "cross_L2B_right", "cross_L1B_left", "cross_L1B_right"),
    *("cross_MAB_left", "cross_MAB_right"),
)
"""Names of the flags, the most significant bit first."""
BIT = {name: 1 << bit for bit, name in enumerate(reversed(FLAGS))}
STORED = 256
"""Long words that PEs store with one `l1bmd`: four blocks."""
SPACING = 512
"""Distance of blocks in the buffer, and of areas in L2BM."""


def flag(level: str, side: str) -> int:
    """Return the value of a flag."""
    return BIT[f"{level}_{side}"]


def constant(expander: Expander, register: int, value: int) -> None:
    """Write a number to the lower half of a long word of GRF0, and 0 to the upper one."""
    expander.out.code(f'imm i"0" $r{register}', f'imm i"{value}" $r{register + 1}')


def select(expander: Expander, mask: int, value: str, target: str) -> None:
    """Replace ``target`` on the PEs of a mask register."""
    expander.out.nop(2)
    expander.out.code(f"maskr {mask}", f"ipassa {value} {target}", "mask 0")


def compute_flags(
    expander: Expander, block: Block, target: str, edges: tuple[bool, bool], line: int
) -> None:
    """``@boundary_flags_compute``: the word of flags, from the numbers of the PEs.

    guess: the code. Only its result is known.
    """
    chip, out = expander.chip, expander.out
    r = block.take(":grf0", 5, "E214", line)
    masks = block.take(":omr", 4, "E214", line)
    number = f"$ln{block.take(':n', 1, 'E214', line)[0]}"
    flags, ended, other, bits = (f"$lr{register}" for register in r[:4])
    out.note("guess: the instructions; the result is known")
    out.nop(2)
    out.code(f"lxor {target} {target} {target}")
    levels = (("$mabid", chip.mabs), ("$l1bid", chip.l1bs), ("$l2bid", chip.all_l2bs))
    names = ("cross_MAB", "cross_L1B", "cross_L2B")
    for side, at_end in (("left", edges[0]), ("right", edges[1])):
        left = side == "left"
        # `ended` is 0 on PEs that are at the end of every level so far.
        out.code(f"lxor {ended} {ended} {ended}")
        ids = (*levels, ("$subpeid", chip.pes))
        for mask, (name, count) in zip(masks, ids, strict=True):
            constant(expander, r[3], 0 if left else count - 1)
            out.code(f"lpassa {name} {number}")
            out.nop(2)
            out.code(f"lxor {number} {bits} {number}")
            out.nop(2)
            if name == "$subpeid":
                out.code(f"lpassa {number} $omr{mask}")
            else:
                out.code(f"lor {ended} {number} {other}")
                out.nop(2)
                out.code(f"lpassa {other} $omr{mask}", f"lpassa {other} {ended}")
            out.nop(2)
        edge = flag("data_edge" if at_end else "cross_chip", side)
        constant(expander, r[3], flag(names[0], side))
        out.nop(2)
        out.code(f"lpassa {bits} {flags}")
        for mask, value in zip(
            masks, (flag(names[1], side), flag(names[2], side), edge), strict=False
        ):
            constant(expander, r[3], value)
            select(expander, mask, bits, flags)
        select(expander, masks[3], flags, target)
    out.nop(2)


@dataclass(frozen=True)
class Neighbor:
    """The arguments of ``@get_neighbor``."""

    target: str
    left: bool
    source: str
    flags: str
    buffer: int
    periodic: bool


def get_neighbor(expander: Expander, block: Block, wanted: Neighbor, line: int) -> None:
    """``@get_neighbor``: computes the value on every route, then selects by the flags."""
    chip, out = expander.chip, expander.out
    r = block.take(":grf0", 11, "E225", line)
    masks = block.take(":omr", 4, "E225", line)
    (n,) = block.take(":n", 1, "E225", line)
    own, far, l1b, mab, near = (f"$lr{r[at]}" for at in (0, 2, 3, 4, 5))
    side = "left" if wanted.left else "right"
    turn, rotate = ("l1bmd+1", "msl") if wanted.left else ("l1bmd-1", "msr")
    expander.areas.check(line, STORED + 2 * chip.block, 3 * SPACING)
    near_block, far_block = "$lb0", f"$lb{2 * chip.block}"
    put_at, exchange_at, get_at = (SPACING if wanted.left else 0), SPACING, 2 * SPACING
    last_l1b = chip.l1bs - 1
    put_from, get_to = (last_l1b, 0) if wanted.left else (0, last_l1b)

    def read(source: str, result: str) -> None:
        out.code(f"{turn} {source} {result}v{expander.mask(1)}")
        out.nop(2)
        out.code(f"{rotate} {result} {result}")

    def place(step: int, number: int) -> int:
        return wanted.buffer + SPACING * (number + step)

    # Own value, and 0.
    out.code(f"lxor $lr{r[1]} $lr{r[1]} $lr{r[1]}", f"lpassa {wanted.source} {own}")
    out.nop(2)
    # Each L2B puts the block at its end into the buffer.
    out.code(f"l1bmd {own}v {near_block}")
    out.nop(10)
    out.code(f"l2bm@{put_from} {near_block} $lc{put_at}")
    out.nop(3)
    put_step = 1 if wanted.left else 0
    for group in range(chip.groups):
        for l2b in range(chip.l2bs):
            tag = expander.reserved if l2b == chip.l2bs - 1 else ""
            target = place(put_step, group * chip.l2bs + l2b)
            out.code(f"mvp/n{chip.block}{tag} $lc{put_at}@{group}.{l2b} $p{target}@0")
        out.nop(3)
        out.wait(expander.placement.tag)
    out.nop(5)
    # Each L2B gets the block of the one beside it.
    for number in range(chip.all_l2bs):
        tag = expander.reserved if number == chip.all_l2bs - 1 else ""
        source = place(1 - put_step, number)
        if wanted.periodic and number == (0 if wanted.left else chip.all_l2bs - 1):
            source = place(chip.all_l2bs if wanted.left else 0, 0)
        out.code(f"mvp/n{chip.block}{tag} $p{source}@0 $lc{get_at}@{chip.l2b(number)}")
    out.nop(2)
    out.wait(expander.placement.tag)
    out.nop(5)
    out.code(f"l2bmb@{get_to} $lc{get_at} {near_block}")
    out.nop(6)
    read(near_block, far)
    # Across L1Bs.
    out.nop(2)
    out.code(f"l1bmd {own}v {far_block}")
    out.nop(10)
    for number in range(chip.l1bs):
        out.code(f"l2bm@{number} {far_block} $lc{exchange_at + chip.block * number}")
    out.nop(3)
    for number in range(1, chip.l1bs) if wanted.left else range(last_l1b):
        source = number - 1 if wanted.left else number + 1
        out.code(f"l2bmb@{number} $lc{exchange_at + chip.block * source} {far_block}")
    out.nop(6)
    read(far_block, l1b)
    # Across MABs.
    out.nop(2)
    out.code(f"l1bmd {own}v {far_block}")
    out.nop(2)
    read(far_block, mab)
    # Within a MAB.
    out.nop(2)
    out.code(f"{rotate} {wanted.source} {near}")
    # Masks: an entry is true where flags and constant are equal.
    levels = ("cross_L2B", "cross_L1B", "cross_MAB", "data_edge")
    constants = r[7:11]
    for register, level in zip(constants, levels, strict=True):
        constant(expander, register, flag(level, side))
    out.nop(2)
    for at, (register, mask) in enumerate(zip(constants, masks, strict=True)):
        if at:
            out.nop(1)
        out.code(f"lpassa {wanted.flags} $ln{n}")
        out.nop(2)
        out.code(f"ixor $ln{n} $lr{register} $lr{r[6]}")
        out.nop(2)
        out.code(f"lpassa $lr{r[6]} $omr{mask}")
    out.nop(2)
    out.code(f"lpassa {near} {wanted.target}")
    edge = far if wanted.periodic else wanted.source
    for mask, value in ((masks[2], mab), (masks[1], l1b), (masks[0], far), (masks[3], edge)):
        select(expander, mask, value, wanted.target)
    out.nop(2)


def check_flags(words: Sequence[str], line: int) -> None:
    """Check the names of flags. Raises LinkError E216 and E217."""
    if not words:
        raise numbered("E216", line=line)
    for word in words:
        if word not in BIT:
            raise numbered("E217", word, line)
