"""The time that MVs take. Every number comes from the cycle model of the emulator.

An MV holds the memories that it uses for its words divided by the rate of its form, and ends a
latency later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from ..machine import Target
from ..machine_text import block_text, mv_text


class Block(Protocol):
    """An operand of an MV: a memory, or its instance in a group, or in an L2B of it."""

    @property
    def memory(self) -> str:
        """The memory's name in the spec."""

    @property
    def group(self) -> int | None:
        """The group, or None for all."""

    @property
    def l2b(self) -> int | None:
        """The L2B in its group, or None for all."""

    @property
    def entries(self) -> Sequence[int] | None:
        """The entries of a table that names the addresses, or None."""


class Mv(Protocol):
    """An MV; ``words`` is its size in long words."""

    @property
    def mnemonic(self) -> str:
        """The mnemonic without parameters."""

    @property
    def words(self) -> int:
        """The size in long words."""

    @property
    def source(self) -> Block:
        """The place that it reads."""

    @property
    def destination(self) -> Block:
        """The place that it writes."""


@dataclass(frozen=True)
class MoveCost:
    """Cycles for which an MV holds each of ``ports``, and from then to its end."""

    ports: tuple[str, ...]
    holds: int
    latency: int


def move_cost(move: Mv, target: Target) -> MoveCost:
    """Return the cost of an MV that starts at once.

    MVs that differ only in their addresses are measured once in a process.
    """
    places = (_place(move.source), _place(move.destination))
    known = _known(target)
    key = move.mnemonic, move.words, *places
    found = known.get(key)
    if found is None:
        found = known[key] = _measured(move, target)
    return found


def _measured(move: Mv, target: Target) -> MoveCost:
    """Ask the emulator about a program that contains only the MV."""
    tag = target.mv_tags[0]
    source, destination = (_text(place, target) for place in (move.source, move.destination))
    text = f"{mv_text(move.mnemonic, move.words, tag, target)} {source} {destination}"
    report = target.assemble(f"{text}\nnop; wait {target.tag(tag)}\n", "mv.vsm").report()
    held = report["port_cycles"]
    holds = max(held.values(), default=0)
    return MoveCost(tuple(sorted(held)), holds, report["mv_end"] - holds)


@lru_cache(maxsize=16)
def _known(target: Target) -> dict[tuple[object, ...], MoveCost]:
    """Return the costs on a machine that are known so far; whoever measures one adds it."""
    return {}


def _place(operand: Block) -> tuple[object, ...]:
    return operand.memory, operand.group, operand.l2b, operand.entries is None


def _text(operand: Block, target: Target) -> str:
    if operand.entries is not None:
        return f"${target.letter_by_table(operand.memory)}{operand.entries[0]}"
    return block_text(operand.memory, 0, operand.group, operand.l2b, target)


def latency(target: Target) -> int:
    """Return the cycles from the time at which an MV releases its memories to its end."""
    return target.spec.mv_latency


def latency_steps(target: Target) -> int:
    """Return the steps that lie between the start of an MV of few words and its end."""
    return latency(target) // target.cycles


@lru_cache(maxsize=1024)
def rate(target: Target, mnemonic: str, form: str, **selectors: int) -> Fraction:
    """Return the long words of its size that an MV of this form moves a cycle.

    ``form`` and ``selectors`` are those of ``Spec.index_map``.
    """
    return Fraction(*target.spec.mv_rate(mnemonic, form, **selectors))


def dram_rate(target: Target) -> int:
    """Return the long words a cycle that the DRAM of a group gives to the L2BMs of the group."""
    return int(rate(target, "mvp", "dram_to_l2bm_parallel", dst_l2b=0))


def chip_dram_rate(target: Target) -> int:
    """Return the long words a cycle that all DRAMs give."""
    return dram_rate(target) * target.groups


def broadcast_rate(target: Target) -> Fraction:
    """Return the rate from one PDM to all L2BMs."""
    return rate(target, "mvb", "pdm_to_l2bm", src_group=0)


def pdm_rate(target: Target, far: bool) -> Fraction:
    """Return the rate from an L2BM to the PDM of its group, or of a ``far`` one."""
    source = 1 if far and target.groups > 1 else 0
    return rate(target, "mvp", "l2bm_to_pdm", src_group=source, src_l2b=0, dst_group=0)


def crossing_cycles(words: int, target: Target) -> int:
    """Return the cycles in which ``words`` of all L2BMs go through the PDMs to L2BMs of others."""
    each = 1 / pdm_rate(target, far=True) + 1 / pdm_rate(target, far=False)
    return int(words * each / target.groups)
