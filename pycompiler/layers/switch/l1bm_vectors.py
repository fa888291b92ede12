"""Vectors of all PEs in L1BM, for passes between MABs and between L1Bs."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ...errors import error
from ...machine import Target


class L1bmRoom(NamedTuple):
    """The room in L1BM for vectors of all PEs.

    ``vectors`` is the number that fits beside a spare one. ``words`` is the number of long words of
    a vector, ``row`` the number of one cycle of it.
    """

    vectors: int
    words: int
    row: int


def l1bm_room(target: Target) -> L1bmRoom:
    """Return the room of L1BM. P0606 if no vector fits beside the spare one."""
    words = target.transfer("l1bmd", "from_pe").destination_words
    vectors = target.words("l1bm") // words - 1
    if vectors < 1:
        reason = (
            f"a layout switch needs {2 * words} long words of l1bm, it has {target.words('l1bm')}"
        )
        raise error("P0606", spec=target.name, reason=reason)
    return L1bmRoom(vectors, words, words // target.cycles)


@lru_cache(maxsize=16)
def shifts(target: Target) -> dict[int, str]:
    """Return the suffix of the mnemonic by the units that data goes upwards, from index maps."""
    out: dict[int, str] = {}
    pes = target.counts["pe"]
    for shift in range(target.counts["mab"]):
        found = target.transfer("l1bmd", "to_pe", shift=shift)
        where = (found.destination["cycle"] == 0) & (found.destination["pe"] == 0)
        mabs, slots = found.destination["mab"][where], found.source["addr"][where] // pes
        out[int((mabs - slots)[0]) % target.counts["mab"]] = f"+{shift}" if shift else ""
    return out
