"""The reference of the walk over a plan: goes through the nodes and tracks the copies in LM.

The rules are those of ``spill_opt`` . A plan has three more decisions: how
early a value leaves LM, which values are computed again instead of stored, and which banks a node
uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from pycompiler.scheduler.annealing.plan import (
    COPY,
    DOWN,
    FORGET,
    PLAIN,
    RUN,
    UP,
    Action,
    Cost,
    Plan,
)
from pycompiler.scheduler.annealing.problem import DRAM, Choice, Problem

#: Chains of more nodes are not computed again.
_DEEPEST = 6
_NEVER = 1 << 60


class _Impossible(Exception):  # noqa: N818
    """The plan computes something again that it cannot."""


class Walk:
    """Evaluates plans. ``rooms`` are the long words of LM0 and LM1 that may be used."""

    def __init__(self, problem: Problem, rooms: Sequence[int]):
        self.problem, self.rooms = problem, tuple(rooms)
        self._readers: list[list[int]] = [[] for _ in problem.values]
        for node, own in enumerate(problem.inputs):
            if problem.choices[node]:
                for value in own:
                    self._readers[value].append(node)

    def cost(self, plan: Plan, actions: list[Action] | None = None) -> Cost | None:
        """Return the cost of a plan; None if it is impossible. ``actions`` is filled if given."""
        run = _Run(self, plan, actions)
        try:
            return run.all()
        except _Impossible:
            return None


class _Run:
    def __init__(self, walk: Walk, plan: Plan, actions: list[Action] | None):
        problem = walk.problem
        self.problem, self.plan, self.actions = problem, plan, actions
        self.rooms = walk.rooms
        place = [0] * len(plan.order)
        for at, node in enumerate(plan.order):
            place[node] = at
        count = len(problem.values)
        self.uses = [
            sorted([place[node] for node in own]) if len(own) > 1 else [place[n] for n in own]
            for own in walk._readers
        ]
        self.read = [0] * count  # how many uses of a value are over
        self.mask = [0] * count  # the banks with a copy
        self.dram = list(problem.given)
        self.used = [0, 0]
        self.live: tuple[dict[int, None], dict[int, None]] = ({}, {})
        self.parked: set[int] = set()
        self.operands: set[int] = set()
        self.cycles = self.words = 0
        self.at = 0

    def all(self) -> Cost:
        problem = self.problem
        segment: int | None = None
        for at, node in enumerate(self.plan.order):
            self.at = at
            if problem.segment[node] != segment:
                segment = problem.segment[node]
                for bank in (0, 1):
                    for value in self.live[bank]:
                        self.mask[value] = 0
                    self.live[bank].clear()
                    self.used[bank] = 0
            if not problem.choices[node]:
                for value in problem.outputs[node]:
                    self.dram[value] = True
                if self.actions is not None:
                    self.actions.append(Action(PLAIN, node))
                continue
            self._node(node, 0)
        return Cost(self.cycles, self.words)

    # -- one node ----------------------------------------------------------------------------

    def _node(self, node: int, depth: int) -> None:
        """Run a node; ``depth`` counts how many nodes deep it computes something again."""
        problem, mask, dram = self.problem, self.mask, self.dram
        inputs = problem.inputs[node]
        outside = self.operands
        self.operands = outside.union(inputs) if depth else set(inputs)
        for value in inputs:
            if not mask[value] and not dram[value]:
                if depth >= _DEEPEST or not problem.remakable[value]:
                    raise _Impossible
                self._node(problem.maker[value], depth + 1)
        choice = self._choice(node, inputs)
        self._make_room(node, inputs, choice)
        for value, bank in zip(inputs, choice.inputs, strict=True):
            if bank != DRAM:
                self._bring(value, bank, node)
                self.parked.discard(value)
        if not depth:
            for value in inputs:
                self.read[value] += 1
        taken = inputs[choice.taken] if choice.taken >= 0 else -1
        if taken >= 0:
            bank = choice.inputs[choice.taken]
            if self._next(taken) < _NEVER:
                self._save(taken, bank, node)
            self._drop(taken, bank)
        for value, bank in zip(problem.outputs[node], choice.outputs, strict=True):
            self._add(value, bank)
        self.cycles += choice.cycles
        if self.actions is not None:
            self.actions.append(Action(RUN, node, choice=choice, again=depth > 0))
        for value in problem.outputs[node]:
            if problem.stored[value] and not dram[value]:
                self._upload(value, node)
        touched = (*inputs, *problem.outputs[node])
        self.operands = outside
        for value in touched:
            if mask[value] and self._next(value) == _NEVER:
                for bank in (0, 1):
                    if mask[value] >> bank & 1:
                        self._drop(value, bank)

    def _choice(self, node: int, inputs: tuple[int, ...]) -> Choice:
        choices = self.problem.choices[node]
        picked = self.plan.picked.get(node)
        if picked is not None:
            return choices[picked]
        if len(choices) == 1:
            return choices[0]
        best, least = choices[0], _NEVER
        mask, copy = self.mask, self.problem.copy
        for one in choices:
            moved = one.cycles
            for value, bank in zip(inputs, one.inputs, strict=True):
                own = mask[value]
                if own and bank != DRAM and not own >> bank & 1:
                    moved += copy[value]
            # An operand that is overwritten, and read later too, is copied first.
            taken = inputs[one.taken] if one.taken >= 0 else -1
            if taken >= 0 and self.uses[taken][-1] > self.at and mask[taken] != 3:
                moved += copy[taken]
            if moved < least:
                best, least = one, moved
        return best

    def _next(self, value: int) -> int:
        uses, read = self.uses[value], self.read[value]
        return uses[read] if read < len(uses) else _NEVER

    # -- moves -------------------------------------------------------------------------------

    def _add(self, value: int, bank: int) -> None:
        if not self.mask[value] >> bank & 1:
            self.mask[value] |= 1 << bank
            self.live[bank][value] = None
            self.used[bank] += self.problem.size[value]

    def _drop(self, value: int, bank: int) -> None:
        if self.mask[value] >> bank & 1:
            self.mask[value] &= ~(1 << bank)
            del self.live[bank][value]
            self.used[bank] -= self.problem.size[value]

    def _bring(self, value: int, bank: int, node: int) -> None:
        mask = self.mask[value]
        if mask >> bank & 1:
            return
        kind = COPY if mask else DOWN
        if not mask:
            if not self.dram[value]:
                raise _Impossible
            self.cycles += self.problem.down[value]
            self.words += self.problem.words[value]
        else:
            self.cycles += self.problem.copy[value]
        if self.actions is not None:
            self.actions.append(Action(kind, node, value, bank))
        self._add(value, bank)

    def _copy(self, value: int, bank: int, node: int) -> None:
        self.cycles += self.problem.copy[value]
        if self.actions is not None:
            self.actions.append(Action(COPY, node, value, bank))
        self._add(value, bank)

    def _upload(self, value: int, node: int) -> None:
        if self.dram[value]:
            return
        self.dram[value] = True
        self.cycles += self.problem.up[value]
        self.words += self.problem.words[value]
        if self.actions is not None:
            bank = 0 if self.mask[value] & 1 else 1
            self.actions.append(Action(UP, node, value, bank))

    def _forsake(self, value: int, bank: int, node: int) -> None:
        """Give up the last copy of a value that is read later: store it, or compute it again."""
        if value in self.plan.remade and value not in self.operands and not self.dram[value]:
            if self.actions is not None:
                self.actions.append(Action(FORGET, node, value, bank))
        else:
            self._upload(value, node)

    def _save(self, value: int, bank: int, node: int) -> None:
        """Save a value whose copy in ``bank`` is about to be overwritten."""
        if self.dram[value] or self.mask[value] & ~(1 << bank):
            return
        other = 1 - bank
        if self.used[other] + self.problem.size[value] <= self.rooms[other]:
            self._copy(value, other, node)
        else:
            self._upload(value, node)

    # -- room --------------------------------------------------------------------------------

    def _make_room(self, node: int, inputs: tuple[int, ...], choice: Choice) -> None:
        size, mask = self.problem.size, self.mask
        needed = [0, 0]
        for value, bank in zip(inputs, choice.inputs, strict=True):
            if bank != DRAM and not mask[value] >> bank & 1:
                needed[bank] += size[value]
        for place, (value, bank) in enumerate(
            zip(self.problem.outputs[node], choice.outputs, strict=True)
        ):
            if choice.taken < 0 or place:
                needed[bank] += size[value]
        for bank in (0, 1):
            if self.used[bank] + needed[bank] <= self.rooms[bank]:
                continue
            wanted = {v for v, own in zip(inputs, choice.inputs, strict=True) if own == bank}
            while self.used[bank] + needed[bank] > self.rooms[bank]:
                victim = self._victim(bank, wanted)
                if victim < 0:
                    break
                self._evict(victim, bank, node, needed[1 - bank])

    def _victim(self, bank: int, wanted: set[int]) -> int:
        """Return the value that is read last; between equals, one that needs no upload."""
        best, furthest, bias = -1, (-_NEVER, False), self.plan.bias
        for value in self.live[bank]:
            if value in wanted:
                continue
            uses, read = self.uses[value], self.read[value]
            use = uses[read] if read < len(uses) else _NEVER
            rank = use + bias.get(value, 0), self.dram[value]
            if rank > furthest:
                best, furthest = value, rank
        return best

    def _evict(self, value: int, bank: int, node: int, reserved: int) -> None:
        other = 1 - bank
        if self._next(value) < _NEVER and self.mask[value] == 1 << bank:
            fits = self.used[other] + reserved + self.problem.size[value] <= self.rooms[other]
            if fits and value not in self.parked:
                self._copy(value, other, node)
                self.parked.add(value)
            elif not self.dram[value]:
                self._forsake(value, bank, node)
        self._drop(value, bank)
