"""What units share of a sum over all of them, and the room that it needs on its way.

See :mod:`.shares` for the way that the words take.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...graph.layout import Layout
from ...graph.plan import SharedSums
from ...machine import Target
from ..switch.network_joins import Network


@dataclass(frozen=True)
class Piece:
    """Long words of the partial sums from ``word`` on, of the L1Bs ``l1bs`` (suffix ``@``)."""

    word: int
    l1bs: str


@dataclass(frozen=True)
class Shares:
    """The layout of the result, and the way to it.

    ``pieces`` lists for each address of the result, each L2B (of a group, if DRAMs add up) and each
    place on MABs the pieces that go there. ``words`` are the long words of a PE in a piece.
    """

    network: Network
    layout: Layout
    words: int
    pieces: tuple[tuple[tuple[Piece, ...], ...], ...]
    plan: SharedSums

    @property
    def l2bs(self) -> int:
        """The L2Bs that get pieces of their own; they are the first ones."""
        return len(self.pieces[0])

    @property
    def mabs(self) -> int:
        """The places on MABs that get pieces, for each of them."""
        return len(self.pieces[0][0]) // self.parts_apart

    @property
    def parts_apart(self) -> int:
        """The groups whose L2Bs get different parts of a piece."""
        return 1 if self.plan.gathered else self.plan.parts


def words_of_piece(network: Network, target: Target) -> int | None:
    """Return the long words of a PE in a piece; None if instructions do not fit each other."""
    if network.mabs is None:
        return None
    counts, cycles = target.counts, target.cycles
    pes, l1bs, mabs = counts["pe"], counts["l1b"], counts["mab"]
    up = target.transfer(network.mabs.up, "from_pe")
    joined = target.transfer(f"l2bmr{network.operation}", "up").source_words
    spread, last = target.transfer("l2bmd", "down"), target.transfer("l1bmd", "to_pe")
    lane = spread.source_words // (cycles * l1bs)
    source, goal = spread.source, spread.destination
    row = goal["addr"] // lane * l1bs * lane + goal["l1b"] * lane + goal["addr"] % lane
    place = last.destination["cycle"] * mabs * pes + last.destination["mab"] * pes
    fits = (
        network.mabs.words == cycles * pes
        and (up.destination["addr"] == up.source["cycle"] * pes + up.source["pe"]).all()
        and (source["addr"] == row).all()
        and (last.source["addr"] == place + last.destination["pe"]).all()
        and joined == l1bs * lane
        and lane % pes == 0
        and mabs % (lane // pes) == 0
        and joined % target.mv_unit == 0
        and joined % (cycles * pes) == 0
        and cycles * mabs * pes == mabs * pes // lane * spread.destination_words
    )
    return joined // pes if fits else None


def lane_mabs(target: Target) -> int:
    """Return how many MABs get the words of one lane of a piece."""
    lane = target.transfer("l2bmd", "down").source_words // (target.cycles * target.counts["l1b"])
    return lane // target.counts["pe"]


def addresses_at_once(found: Shares, target: Target) -> int:
    """Return for how many addresses the memories between units have room; 0 if for too few.

    They are all addresses, or whole vectors of them.
    """
    cycles, count, size = target.cycles, len(found.pieces), found.words * target.counts["pe"]
    lanes, spread = lane_mabs(target), target.transfer("l2bmd", "down")
    places, lane = target.counts["mab"] // lanes, spread.destination_words // cycles
    # The instruction that distributes may read past the last piece, and write past the last place.
    past = max(0, -(-found.mabs // cycles) * cycles - places) * lane
    above = target.words("l2bm") - spread.source_words
    homes = 1 if found.plan.everywhere else min(found.l2bs, target.l2bs_per_group)
    most = min(
        above // (found.mabs * size * (found.l2bs * found.parts_apart + 1)),
        target.words("pdm") // (found.mabs * size * homes),
        (target.half("l1bm") - past) // (places * lane * cycles) * cycles,
    )
    if size > target.half("l1bm"):
        return 0
    return most // cycles * cycles or (count if count <= most else 0)
