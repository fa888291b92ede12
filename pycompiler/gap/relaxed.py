"""Machines that lack some rules of a machine.

What is placed for such a machine is no program: it only tells how many cycles the rules cost.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from emu2._core import CodeMachine

from ..code.lines import Move
from ..code.move_costs import MoveCost, move_cost
from ..cost.moves import chip_dram_rate, latency
from ..emit.ports import machine_of
from ..machine import REGISTER_FILES, Hazard, Target
from ..sweep.values import description, load_point

#: What machines lack.
LATENCY, RATE, RESULTS, SCRATCH, PORTS = "latency", "rate", "results", "scratch", "ports"
#: Memories of which a node needs words for itself only.
_OWN = {*REGISTER_FILES, "l1bm", "l2bm", "pdm"}
#: How many times as many words they have if they are never too few.
_MANY = 16
#: The level of evidence that stands for an assumption.
GUESS = "guess"

_Cost = Callable[[Move, Target], MoveCost]


class Relaxed(Target):
    """A machine with some distances of another one; maybe no word or no port is ever in use."""

    def __init__(
        self, base: Target, hazards: Sequence[Hazard], *, scratch: bool = False, ports: bool = False
    ):
        super().__init__(base.spec, base.digest, base.source)
        self.hazards = tuple(hazards)
        self.masks = {**base.masks, "entries": base.masks["entries"] * (_MANY if scratch else 1)}
        self._scratch, self._free = scratch, ports
        if ports:
            self.shares = ()

    def words(self, memory: str) -> int:
        """Long words of one instance of ``memory``."""
        return super().words(memory) * (_MANY if self._scratch and memory in _OWN else 1)

    def issue_rules(self, mnemonic: str) -> tuple[str | None, Sequence[str], Sequence[str]]:
        """Return what decides about a place in a line: nothing, if all ports are free."""
        return (None, (), ()) if self._free else super().issue_rules(mnemonic)


def machines(target: Target) -> Iterator[tuple[str, CodeMachine]]:
    """Yield machines that have fewer and fewer rules, each with the name of what it lacks more."""

    def at_once(move: Move, _: Target) -> MoveCost:
        return replace(move_cost(move, target), latency=0)

    def in_no_time(move: Move, _: Target) -> MoveCost:
        return replace(move_cost(move, target), latency=0, holds=0)

    ports = [rule for rule in target.hazards if rule.rule == "port"]
    yield LATENCY, machine_of(target, at_once)
    yield RATE, machine_of(target, in_no_time)
    yield RESULTS, machine_of(Relaxed(target, ports), in_no_time)
    yield SCRATCH, machine_of(Relaxed(target, ports, scratch=True), in_no_time)
    yield PORTS, machine_of(Relaxed(target, [], scratch=True, ports=True), in_no_time)


def without_guesses(target: Target) -> CodeMachine:
    """Return the machine without what is a guess.

    That is the latency of MVs, the rate of those that publish none, and some distances.
    """
    rules = [rule for rule in target.spec.hazards if rule["rule"] in ("port", "data")]
    pairs = zip(rules, target.hazards, strict=True)
    sure = [hazard for rule, hazard in pairs if rule["evidence"] != GUESS]
    with tempfile.TemporaryDirectory(prefix="pycompiler-gap-") as folder:
        twice = description(target, {"dram_words": 2 * chip_dram_rate(target)})
        faster = load_point(twice, Path(folder))

    def cost(move: Move, _: Target) -> MoveCost:
        found = move_cost(move, target)
        guessed = move_cost(move, faster).holds < found.holds
        return replace(found, latency=0, holds=0 if guessed else found.holds)

    return machine_of(Relaxed(target, sure), cost)


def slower(target: Target) -> CodeMachine:
    """Return the machine whose MVs have twice the latency."""

    def cost(move: Move, _: Target) -> MoveCost:
        return replace(move_cost(move, target), latency=2 * latency(target))

    return machine_of(target, cost)
