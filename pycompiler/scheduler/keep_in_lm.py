"""The walk of the schedulers that keep values in LM: ``reuse_consecutive`` and ``spill_opt``.

Both go through the nodes in order and track which values have a copy in LM0 or LM1. An operand is
downloaded only if it has no copy. ``reuse_consecutive`` keeps the copies that the next node reads.
``spill_opt`` keeps the copies that fit; if LM is full, the value that is read furthest in the
future loses its copy first. If that was its last copy and it is still needed, ``spill_opt`` moves
it to the other LM if that has space. Otherwise it is uploaded, unless DRAM has it. A copy of what
DRAM has is dropped at once if much more comes before its next read than LM holds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

from ..cost.moves import chip_dram_rate
from ..errors import error
from ..graph.graph import Location, MNGraph, MNNode, Side
from ..layers.base import Placement, distinct, layout_of
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.dram_transfer_plan import dram_words
from ..layers.local_copy import COPY
from ..layers.split_concat import IN_DRAM
from ..machine import Target
from ..planners.overrides import Overrides, wanted_banks, wanted_keeping
from .bank_choice import BANKS, placements
from .lm_copies import Copies, InLm

#: guess: a copy that stays while nodes make this many times what LM holds moves to and fro.
_FAR = 4
_OTHER = {Location.LM0: Location.LM1, Location.LM1: Location.LM0}


class Walk:
    """Goes through the nodes of a graph, and inserts the moves between DRAM and LM."""

    def __init__(
        self, graph: MNGraph, target: Target, consecutive: bool, part: float, overrides: Overrides
    ):
        self.banks = wanted_banks(overrides)
        self.keeping = wanted_keeping(overrides)
        for name in self.keeping:
            if name not in graph.values:
                raise error("P0306", value=name, reason="time slices of it are kept or not")
        self.graph, self.target, self.consecutive = graph, target, consecutive
        self.room = {bank: int(target.words(bank.memory) * part) for bank in _OTHER}
        self.work = InLm(graph, target)
        made = (sum(map(self._words, node.outputs)) for node in graph.nodes)
        #: The long words of a PE that nodes have made before each node.
        self.made = list(accumulate(made, initial=0))
        self.where: dict[str, Copies] = {}
        #: How often values moved to the other bank because LM was full since a node read them.
        self.parked: Counter[str] = Counter()
        #: Values that may have copies in LM, in the order in which they came there.
        self.live: dict[str, None] = {}
        self.uses: dict[str, list[int]] = {}
        readers: dict[str, set[int | None]] = {}
        for index, node in enumerate(graph.nodes):
            if node.op in IN_DRAM:
                continue
            for name in dict.fromkeys(node.inputs):
                self.uses.setdefault(name, []).append(index)
                readers.setdefault(name, set()).add(node.slice)
            for name in node.outputs:
                readers.setdefault(name, set()).add(node.slice)
        #: Values that several time slices read or make stay in LM for all of these slices.
        self.held = {name for name, slices in readers.items() if len(slices - {None}) > 1}
        self.held |= {name for name, outside in self.keeping.items() if outside}
        outside = {*graph.inputs, *graph.constants, *(name for _, name in graph.outputs)}
        self.kept = outside
        for name in (*graph.inputs, *graph.constants):
            self.where[name] = Copies(dram=True)
        self.in_dram = {
            name for name, value in graph.values.items() if value.location is Location.DRAM
        }

    def run(self) -> MNGraph:
        """Return the graph with its moves."""
        segment: int | None = None
        for index, node in enumerate(self.graph.nodes):
            if node.segment != segment:
                # Values that cross segments are in DRAM.
                for copies in self.where.values():
                    copies.banks.clear()
                segment = node.segment
            if node.side is Side.HOST or node.op in IN_DRAM:
                self.work.nodes.append(node)
                for name in node.outputs:
                    self.where[name] = Copies(dram=True)
                continue
            self._run_node(index, node)
        self._check_banks()
        self._check_kept()
        return self.work.done()

    def _check_banks(self) -> None:
        there = {(value.copy_of, value.location) for value in self.work.copies.values()}
        for name, bank in self.banks.items():
            if (name, bank) not in there:
                raise error("P0306", value=name, reason=f"no node has it in {bank.value}")

    def _check_kept(self) -> None:
        """Raise P0306 if a value that must stay in LM is moved too often.

        An input or constant may be downloaded once. A value that must be in DRAM anyway may be
        uploaded once.
        """
        moved = Counter(
            (node.op, node.inputs[0] if node.op == DOWNLOAD else node.outputs[0])
            for node in self.work.nodes
            if node.op in (DOWNLOAD, UPLOAD)
        )
        for name in (name for name, stays in self.keeping.items() if stays):
            given = name in self.graph.inputs or name in self.graph.constants
            wanted = name in self.in_dram and not given
            if moved[DOWNLOAD, name] > given or moved[UPLOAD, name] > wanted:
                raise error("P0306", value=name, reason="LM has no room for it all the time")

    # -- one node ----------------------------------------------------------------------------

    def _run_node(self, index: int, node: MNNode) -> None:
        inputs = distinct([name for name in node.inputs if name])
        placement = self._placement(index, node, inputs)
        banks = dict(zip(inputs, placement.inputs, strict=True))
        taken = None if placement.inplace is None else node.inputs[placement.inplace]
        self._make_room(index, node, banks, placement, taken)
        local = {name: self._bring(name, bank, node) for name, bank in banks.items()}
        for name in banks:
            del self.parked[name]
        if taken is not None and self._next_use(taken, index) is not None:
            self._save(taken, banks[taken], node, index)
        results: dict[str, str] = {}
        for name, bank in zip(node.outputs, placement.outputs, strict=True):
            if name and bank in BANKS:
                results[name] = self.work.copy(name, bank, node)
        if taken is not None:
            self.where[taken].banks.pop(banks[taken], None)
        self.work.run(node, local, results, placement.inplace)
        for name, bank in zip(node.outputs, placement.outputs, strict=True):
            if bank is Location.DRAM:
                self.where[name] = Copies(dram=True)
                continue
            self.where[name] = Copies({bank: results[name]})
            self.live[name] = None
            if name in self.in_dram:
                self._upload(name, node)
        self._forget(index)

    def _placement(self, index: int, node: MNNode, inputs: Sequence[str]) -> Placement:
        """Return the placement that suits overrides, and then costs the fewest cycles.

        A cycle moves a word, so copies count with their words. Between equals, as little as
        possible is copied, and the result takes over the words of an operand.
        """
        lying = {name: tuple(self.where[name].banks) for name in inputs}
        used = {bank: self._used(bank) for bank in BANKS}
        candidates: list[tuple[tuple[int, int, int, int, bool], Placement]] = []
        for one, cycles in placements(node, self.graph, self.target, lying):
            moved = self._moved(index, node, inputs, one)
            results = zip(node.outputs, one.outputs, strict=True)
            astray = sum(self.banks.get(name, bank) is not bank for name, bank in results)
            many = self._too_many(node, inputs, one, used)
            candidates.append(((astray, many, cycles + moved, moved, one.inplace is None), one))
        return min(candidates, key=lambda entry: entry[0])[1]

    def _too_many(
        self,
        node: MNNode,
        inputs: Sequence[str],
        placement: Placement,
        used: Mapping[Location, int],
    ) -> int:
        """Return the words that other values would have to leave; ``used`` has those in use."""
        banks = dict(zip(inputs, placement.inputs, strict=True))
        taken = None if placement.inplace is None else node.inputs[placement.inplace]
        needed = {bank: self._needed(bank, node, banks, placement, taken) for bank in BANKS}
        return sum(max(0, used[b] + words - self.room[b]) for b, words in needed.items())

    def _moved(self, index: int, node: MNNode, inputs: Sequence[str], placement: Placement) -> int:
        """Return the words to copy: operands to the other bank, and what would be overwritten."""
        total = 0
        for name, bank in zip(inputs, placement.inputs, strict=True):
            copies = self.where[name]
            if copies.banks and bank not in copies.banks:
                total += self._words(name)
            taken = placement.inplace is not None and node.inputs[placement.inplace] == name
            if taken and self._next_use(name, index) is not None:
                total += self._words(name)
        return total

    def _words(self, name: str) -> int:
        return self.graph.values[name].num_lw or 0

    def _bring(self, name: str, bank: Location, node: MNNode) -> str:
        """Return the copy of ``name`` in ``bank``; if there is none, make it."""
        copies = self.where[name]
        if bank is Location.DRAM:
            return name
        if bank in copies.banks:
            return copies.banks[bank]
        copy = self.work.copy(name, bank, node)
        other = copies.banks.get(_OTHER[bank])
        if other is not None:
            self.work.move(COPY, other, copy, node)
        else:
            self.work.move(DOWNLOAD, name, copy, node)
        copies.banks[bank] = copy
        self.live[name] = None
        return copy

    def _save(self, name: str, bank: Location, node: MNNode, index: int) -> None:
        """Save a value whose last copy, in ``bank``, is about to be overwritten."""
        copies = self.where[name]
        if copies.dram or any(other is not bank for other in copies.banks):
            return
        words = self._words(name)
        following = index + 1
        soon = self._next_use(name, index) == following
        stays = soon or not self.consecutive or self.keeping.get(name, False)
        if stays and self._used(_OTHER[bank]) + words <= self.room[_OTHER[bank]]:
            copy = self.work.copy(name, _OTHER[bank], node)
            self.work.move(COPY, copies.banks[bank], copy, node)
            copies.banks[_OTHER[bank]] = copy
        else:
            self._upload(name, node)

    def _upload(self, name: str, node: MNNode) -> None:
        copies = self.where[name]
        if not copies.dram:
            self.work.move(UPLOAD, next(iter(copies.banks.values())), name, node)
            copies.dram = True

    # -- room --------------------------------------------------------------------------------

    def _used(self, bank: Location) -> int:
        return sum(self._words(name) for name in self.live if bank in self.where[name].banks)

    def _is_far(self, index: int, use: int) -> bool:
        """Whether nodes make many times as much between two places as LM holds."""
        return self.made[use] - self.made[index] > _FAR * sum(self.room.values())

    def _next_use(self, name: str, index: int) -> int | None:
        uses = self.uses.get(name, [])
        place = bisect_right(uses, index)
        return uses[place] if place < len(uses) else None

    def _make_room(
        self,
        index: int,
        node: MNNode,
        banks: dict[str, Location],
        placement: Placement,
        taken: str | None,
    ) -> None:
        """Drop copies until the copies and results that the node needs fit."""
        needed = {bank: self._needed(bank, node, banks, placement, taken) for bank in _OTHER}
        for bank in _OTHER:
            while self._used(bank) + needed[bank] > self.room[bank]:
                victims = [
                    name
                    for name in self.live
                    if bank in self.where[name].banks
                    and banks.get(name) is not bank
                    and not self.keeping.get(name, False)
                ]
                if not victims:
                    break
                self._evict(self._furthest(victims, index), bank, node, index, needed[_OTHER[bank]])

    def _needed(
        self,
        bank: Location,
        node: MNNode,
        banks: dict[str, Location],
        placement: Placement,
        taken: str | None,
    ) -> int:
        """Return the long words of a bank that the copies and results of a node will take."""
        needed = sum(
            self._words(name)
            for name, wanted in banks.items()
            if wanted is bank and bank not in self.where[name].banks
        )
        return needed + sum(
            self._words(name)
            for name, wanted in zip(node.outputs, placement.outputs, strict=True)
            if wanted is bank and not (taken is not None and name == node.outputs[0])
        )

    def _furthest(self, names: Sequence[str], index: int) -> str:
        """Return the value that is read last; between equals, one that needs no upload."""

        def rank(name: str) -> tuple[int, bool]:
            use = self._next_use(name, index - 1)
            return (1 << 60 if use is None else use), self.where[name].dram

        return max(names, key=rank)

    def _evict(self, name: str, bank: Location, node: MNNode, index: int, reserved: int) -> None:
        """Drop a copy; the last copy of a value that is still needed goes elsewhere first.

        It goes to the other bank if that has room beside ``reserved`` long words, else to DRAM.
        """
        copies, other = self.where[name], _OTHER[bank]
        if self._next_use(name, index - 1) is not None and len(copies.banks) == 1:
            words = self._words(name)
            fits = self._used(other) + reserved + words <= self.room[other]
            # Consecutive nodes keep nothing that a later node reads.
            if fits and not self.consecutive and self._moves_again(name, words):
                copy = self.work.copy(name, other, node)
                self.work.move(COPY, copies.banks[bank], copy, node)
                copies.banks[other] = copy
                self.parked[name] += 1
            else:
                self._upload(name, node)
        del copies.banks[bank]

    def _moves_again(self, name: str, words: int) -> bool:
        """Whether to move a value to and fro between the banks takes less than to DRAM and back."""
        if name not in self.parked:
            return True
        through = 2 * dram_words(layout_of(self.graph.values[name]), self.target)
        return (self.parked[name] + 1) * words * chip_dram_rate(self.target) <= through

    @staticmethod
    def _same_slice(node: MNNode, other: MNNode) -> bool:
        """Whether both nodes work on the same time slice; its values are small enough to stay."""
        return node.slice is not None and (node.slice, node.segment) == (other.slice, other.segment)

    def _forget(self, index: int) -> None:
        """Drop copies that no node reads any more; with ``consecutive``, keep only the next node's.

        Values that are read later in the same time slice, or in several time slices, also stay.
        """
        following = self.graph.nodes[index + 1] if index + 1 < len(self.graph.nodes) else None
        node = self.graph.nodes[index]
        self.live = {name: None for name in self.live if self.where[name].banks}
        for name in self.live:
            copies = self.where[name]
            use = self._next_use(name, index)
            if use is None or (copies.dram and self._is_far(index, use)):
                copies.banks.clear()
            elif not self.keeping.get(name, True):
                self._upload(name, node)
                copies.banks.clear()
            elif name in self.held or self._same_slice(node, self.graph.nodes[use]):
                continue
            elif self.consecutive and (following is None or name not in following.inputs):
                self._upload(name, node)
                copies.banks.clear()
