"""What the compiler's code demands of a machine, beside what the loader of `emu2` checks."""

from __future__ import annotations

from collections.abc import Iterator

import emu2

#: Masks can choose among this many MABs of an L1B and PEs of a MAB: one bit of a word for each.
MOST_UNITS = 32


def why_unusable(spec: emu2.Spec) -> str | None:
    """Return why the compiler cannot make code for a machine; None if it can."""
    return next(_reasons(spec), None)


def _reasons(spec: emu2.Spec) -> Iterator[str]:
    counts, ports = spec.counts, spec.ports
    for level, above in (("mab", "an L1B"), ("pe", "a MAB")):
        if counts[level] > MOST_UNITS:
            yield (
                f"the compiler's masks choose among {MOST_UNITS} {level.upper()}s of {above}, "
                f"not {counts[level]}"
            )
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
