"""What the compiler's code demands of a machine, beside what the loader of `emu2` checks."""

from __future__ import annotations

from collections.abc import Iterator

import emu2

#: Masks can choose among this many MABs of an L1B and PEs of a MAB: one bit of a word for each.
MOST_UNITS = 32
#: Units of a level that a set of them, a bit for each, has.
_MOST_IN_SETS = 64


def why_unusable(spec: emu2.Spec) -> str | None:
    """Return why the compiler cannot make code for a machine; None if it can."""
    return next(_reasons(spec), None)


def _reasons(spec: emu2.Spec) -> Iterator[str]:
    counts, ports = spec.counts, spec.ports
    units = (
        ("L2Bs of the chip", counts["group"] * counts["l2b"], _MOST_IN_SETS),
        ("L1Bs of an L2B", counts["l1b"], _MOST_IN_SETS),
        ("MABs of an L1B", counts["mab"], MOST_UNITS),
        ("PEs of a MAB", counts["pe"], MOST_UNITS),
    )
    for names, count, most in units:
        if count > most:
            yield f"the compiler's masks choose among {most} {names}, not {count}"
    cycles = counts["cycle"]
    if cycles % 2:
        yield (
            "a vector of long words must end where a 2-long-word may begin, which needs an even "
            f"number of cycles in a step, not {cycles}"
        )
    for name, (rows, _) in sorted(spec.matrices.items()):
        if rows % cycles:
            yield (
                f"products fill the {rows} rows of a matrix register ({name}) in whole steps, "
                f"which {cycles} cycles do not divide"
            )
    unit, block, narrow = ports["mv_unit"], ports["mv_block"], ports["l2bm_narrow"]
    for name, width in (("mv_block", block), ("l2bm_narrow", narrow)):
        if unit % width:
            yield f"values begin at multiples of mv_unit ({unit}): {name} ({width}) must divide it"
    row = counts["mab"] * counts["pe"]
    lane, pes = ports["l2bm_lane"], counts["pe"]
    if lane % pes or row % lane:
        yield (
            f"l2bm_lane ({lane}) must be whole MABs of {pes} PEs, and the {row} PEs of an L1B must "
            "be whole lanes"
        )
