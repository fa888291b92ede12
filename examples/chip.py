"""Shared by the examples: the machine's counts, moves over the whole chip, runs on PDM.

All moves take the same route: PDM 0 <-> L2BM <-> L1BM <-> PEs. In each cycle, `l1bmd` deals 64 long
words out to the 64 PEs of an L1B. `l2bmd` deals L2BM out to its L1Bs, 8 long words at a time. The
way back collects in the same order, so a vector comes back in its old order. The place of a word in
between matters only if PEs exchange data.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run from the source tree too

import emu2

Words = NDArray[np.uint64]


class Chip:
    """The counts of a machine, from its spec."""

    def __init__(self, name: str) -> None:
        self.spec = emu2.Spec.load(name)
        counts = self.spec.counts
        self.groups, self.l2b_per_group = counts["group"], counts["l2b"]
        self.l1bs, self.mabs, self.pe_per_mab = counts["l1b"], counts["mab"], counts["pe"]
        self.cycles = counts["cycle"]
        self.l2bs = self.groups * self.l2b_per_group
        self.lanes = self.mabs * self.pe_per_mab  # PEs of an L1B
        self.pes = self.l2bs * self.l1bs * self.lanes
        self.l1b_lane = self.spec.ports["l2bm_lane"]  # l2bmd: long words per L1B and cycle
        self.l2bm_step = self.cycles * self.l1bs * self.l1b_lane  # long words of one l2bmd

    def words(self, memory: str) -> int:
        """Return the long words of one instance of a memory."""
        return int(self.spec.memories[memory]["words"])

    def l2b(self, number: int) -> str:
        """Return the selector of an L2B by its number in the chip."""
        return f"@{number // self.l2b_per_group}.{number % self.l2b_per_group}"


def down(chip: Chip, count: int, l2bm: int, l1bm: int) -> list[str]:
    """Return the steps that deal `count` long words of every L2BM out to its L1BMs."""
    step = chip.l2bm_step
    return [
        f"l2bmd $lc{l2bm + step * k} $lb{l1bm + step // chip.l1bs * k}"
        for k in range(count // step)
    ]


def up(chip: Chip, count: int, l1bm: int, l2bm: int) -> list[str]:
    """Return the steps that collect the words of `down` again."""
    step = chip.l2bm_step
    return [
        f"l2bmd $lb{l1bm + step // chip.l1bs * k} $lc{l2bm + step * k}"
        for k in range(count // step)
    ]


@dataclass
class Outcome:
    """The result of a run: the words of PDM 0 and their cost."""

    words: Words
    report: emu2.Report

    def summary(self) -> str:
        """Return steps, cycles, stalls and the busy steps of each unit."""
        counters = self.report.counters
        busy = ", ".join(f"{unit} {steps}" for unit, steps in counters["busy_steps"].items())
        cost = f"{counters['steps']} steps, {counters['cycles']} cycles"
        return f"{cost} of which {counters['stall_cycles']} at waits; busy steps: {busy}"


def run(chip: Chip, text: str, inputs: dict[int, Words], output: int, count: int) -> Outcome:
    """Write `inputs` (address to long words) to PDM 0, run, and read `count` words at `output`.

    The program must be free of hazards. Guessed rules are checked like known ones.
    """
    program = emu2.assemble(text, chip.spec, policy="strict")
    machine = emu2.Machine(chip.spec)
    for address, words in inputs.items():
        machine.write("pdm", words, addr=address, group=0)
    report = machine.run(program)
    return Outcome(machine.read("pdm", addr=output, count=count, group=0), report)


def arguments(doc: str) -> argparse.ArgumentParser:
    """Return a parser with the options of every example."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--spec", default="mncore2", help="the machine (default: %(default)s)")
    parser.add_argument(
        "--print", action="store_true", help="print the assembly instead of running it"
    )
    return parser
