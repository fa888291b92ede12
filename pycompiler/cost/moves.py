"""The rates and the latency of MVs. Every number comes from the cycle model of the emulator."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from ..machine import Target


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


def exchange_rate(target: Target) -> Fraction:
    """Return the rate between an L2BM and a DRAM of any group."""
    return rate(target, "mvp", "l2bm_to_dram", src_group=0, src_l2b=0, dst_group=0)


def pdm_rate(target: Target, far: bool) -> Fraction:
    """Return the rate from an L2BM to the PDM of its group, or of a ``far`` one."""
    source = 1 if far and target.groups > 1 else 0
    return rate(target, "mvp", "l2bm_to_pdm", src_group=source, src_l2b=0, dst_group=0)


def crossing_cycles(words: int, target: Target) -> int:
    """Return the cycles in which ``words`` of all L2BMs go through the PDMs to L2BMs of others."""
    each = 1 / pdm_rate(target, far=True) + 1 / pdm_rate(target, far=False)
    return int(words * each / target.groups)
