"""What each directive does, in a line or two: for editors, and for the page `docs/link.md`."""

from __future__ import annotations

from collections.abc import Mapping

DIRECTIVES: Mapping[str, tuple[str, str]] = {
    "@distribute": (
        "@distribute <id> from_param <slot> size <1..4> <reg>",
        "brings each PE its own long words from the PDM",
    ),
    "@collect": (
        "@collect <id> to_param <slot> size <1..4> <reg>",
        "brings the long words of each PE to the PDM",
    ),
    "@broadcast": (
        "@broadcast <id> from_param <slot> size <1..4> <reg>",
        "brings the first words of a slot to all PEs. A section of 64 long words stays in L1BM, "
        "and a second broadcast from it moves nothing from the PDM",
    ),
    "@identify": (
        "@identify <dim> <reg> <count>",
        "brings each PE its number, which the host has put into the PDM",
    ),
    "@reduce": (
        "@reduce <id> to_param <slot> <reg> <op>",
        "combines the words of all PEs with equal `pe`: four results",
    ),
    "@boundary_flags": (
        "@boundary_flags <bf> <dim> <reg> <names>",
        "brings each PE its word of flags, which the host has put into the PDM",
    ),
    "@boundary_flags_compute": (
        "@boundary_flags_compute <bf> <dim> <reg> <alloc>",
        "computes the same word",
    ),
    "@alias": ("@alias <bf> <$lrN>", "says which register holds flags"),
    "@assign": ("@assign <bf> <$lrN>", "is the old name of `@alias`"),
    "@alloc": (
        "@alloc <id> [:grf0 n..] [:grf1 n..] [:m n..] [:n n..] [:omr n..]",
        "lends registers to expansions, up to `@free`",
    ),
    "@free": ("@free <id>", "ends the block of `@alloc`"),
    "@get_neighbor": (
        "@get_neighbor <$lrN> <-1 or +1> <reg> <bf> <buffer> <alloc>",
        "brings the value of the PE before or behind",
    ),
    "@access_pattern": ("@access_pattern ...", "is a comment"),
}
"""The form of each directive, and what it does."""
