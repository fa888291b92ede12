"""The compiler's access to `emu2`: the facts of a machine, and running programs.

A :class:`Target` wraps an ``emu2.Spec``. Counts, sizes, letters, index maps and hazards come from
it and stand nowhere else in the compiler. Addresses and counts are long words (64 bits).
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import emu2
from emu2 import _core

from .errors import error
from .machine_limits import why_unusable

IntArray = NDArray[np.int64]

_SEARCH_PATH = "EMU2_SPEC_PATH"
#: The register files: results, constants and sums of generated code lie in them.
REGISTER_FILES = ("grf0", "grf1")
LONGS_PER_WIDE = 2  # the widest access of a PE has this many long words (`ll`)
WORDS_PER_LONG = 2  # a long word is two words; the assembly counts LM and GRF in words


@dataclass(frozen=True, eq=False)
class TransferMap:
    """The long words that one transfer instruction moves: one entry per moved word.

    ``source`` and ``destination`` map coordinate names (``group``, ``l2b``, ``l1b``, ``mab``,
    ``pe``, ``cycle``, ``half``, ``addr``) to arrays; ``addr`` is the offset from the address in
    the assembly. A coordinate that the map does not name is that of the unit that runs the
    instruction.
    """

    source: Mapping[str, IntArray]
    destination: Mapping[str, IntArray]
    #: MV only: the distances from block to block in source and destination
    strides: tuple[int, int] | None = None

    @cached_property
    def source_words(self) -> int:
        """Long words of the source that one instruction covers, per unit."""
        return _extent(self.source)

    @cached_property
    def destination_words(self) -> int:
        """Long words of the destination that one instruction covers, per unit."""
        return _extent(self.destination)


def _extent(side: Mapping[str, IntArray]) -> int:
    return int(side["addr"].max()) + 1


@dataclass(frozen=True)
class Hazard:
    """Steps or cycles that must lie between a writer and a reader of one memory.

    ``rule`` is ``port`` (any address) or ``data`` (the same words). ``writers`` and ``readers``
    are issue slots; empty stands for any. ``source`` is the memory that the writer reads.
    """

    memories: frozenset[str]
    rule: str
    steps: int | None
    cycles: int | None
    writers: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset()
    source: str | None = None


class Target:
    """A machine the compiler generates code for."""

    def __init__(self, spec: emu2.Spec, digest: str = "", source: str = ""):
        self.spec = spec
        #: The name or path from which it was loaded: another process loads the same machine by it.
        self.source = source or spec.name
        #: Digest of the description's files and of the emulator.
        self.digest = digest
        self.name: str = spec.name
        self.counts: dict[str, int] = dict(spec.counts)
        self._memories: dict[str, dict[str, Any]] = dict(spec.memories)
        self._ports: dict[str, int] = dict(spec.ports)
        #: The letters of assembly text that belong to no memory, by their names in the spec.
        self.syntax: dict[str, str | int] = dict(spec.syntax)
        self._maps: dict[tuple[Any, ...], TransferMap] = {}

    # -- the tree ----------------------------------------------------------------------------

    @property
    def groups(self) -> int:
        """Groups of the chip; each has its own DRAM."""
        return self.counts["group"]

    @property
    def l2bs_per_group(self) -> int:
        """L2Bs of one group."""
        return self.counts["l2b"]

    @property
    def cycles(self) -> int:
        """Cycles of one step."""
        return self.counts["cycle"]

    @cached_property
    def level_range(self) -> dict[str, int]:
        """The number of coordinates of each unit level of a layout."""
        counts = self.counts
        return {
            "L2B": counts["group"] * counts["l2b"],
            "L1B": counts["l1b"],
            "MAB": counts["mab"],
            "PE": counts["pe"],
        }

    @cached_property
    def pe_shape(self) -> tuple[int, ...]:
        """Units of the levels from group to PE, outermost first."""
        return tuple(self.counts[level] for level in ("group", "l2b", "l1b", "mab", "pe"))

    # -- memories ----------------------------------------------------------------------------

    def words(self, memory: str) -> int:
        """Long words of one instance of ``memory``."""
        return int(self._memories[memory]["words"])

    def half(self, memory: str) -> int:
        """Long words of the lower half of L1BM or L2BM; any transfer may begin behind them."""
        unit = lcm(self.mv_unit, self.l2bm_row, self.counts["mab"] * self.counts["pe"])
        return self.words(memory) // 2 // unit * unit

    def letter(self, memory: str) -> str:
        """Return the letter of ``memory`` in assembly operands."""
        return str(self._memories[memory]["letter"])

    def letter_by_table(self, memory: str) -> str:
        """Return the letter of operands of ``memory`` whose blocks a table of addresses names."""
        return str(self._memories[memory]["by_table"])

    def above_pes(self, memory: str) -> bool:
        """Whether ``memory`` belongs to a unit above the MABs."""
        return self._memories[memory]["level"] not in ("mab", "pe")

    def prefix(self, memory: str, wide: bool = False) -> str:
        """Return the width prefix of an operand in a memory above the PEs.

        ``wide`` operands have two long words per PE and cycle.
        """
        return str(self._memories[memory]["widths"][1 if wide else 0])

    @property
    def mv_unit(self) -> int:
        """The unit, in long words, of the size and the addresses of an MV."""
        return self._ports["mv_unit"]

    @property
    def mv_block(self) -> int:
        """Long words that an MV hands to one memory at a time."""
        return self._ports["mv_block"]

    @property
    def dar_entries(self) -> int:
        """Entries of the DRAM address registers that one L2B may use at a time."""
        return min(self.dar_load * WORDS_PER_LONG, self.words("dar") // self.l2bs_per_group)

    @property
    def dar_load(self) -> int:
        """Long words of L2BM from which the DRAM address registers are filled at a time."""
        return self.transfer("l2bmdars", "to_buffer", src_l2b=0).source_words

    @property
    def dar_row(self) -> int:
        """Most long words of a row that the DRAM address registers name and L1BM holds."""
        entries = self.dar_entries * self.mv_block
        return min(entries, self.words("l1bm"), self.words("l2bm") - self.dar_rows)

    @property
    def dar_rows(self) -> int:
        """The first long word for rows in L2BM, behind `dar_load`; MVs may begin there."""
        return -(-self.dar_load // (unit := lcm(self.mv_block, self.l2bm_row))) * unit

    @property
    def l2bm_row(self) -> int:
        """Long words of L2BM that go to all L1Bs in one cycle; its accesses are aligned to them."""
        return self._ports["l2bm_lane"] * self.counts["l1b"]

    @property
    def row_words(self) -> int:
        """What the long words of a row of DRAM are a multiple of; 0 if a row has no such order.

        All PEs have the same part of a row, and the row is whole units of MVs.
        """
        counts = self.counts
        lane, narrow = self._ports["l2bm_lane"], self._ports["l2bm_narrow"]
        pes = counts["mab"] * counts["pe"]
        even = lane % counts["pe"] == 0 and counts["mab"] % max(1, lane // counts["pe"]) == 0
        even = even and pes * self.cycles % self.mv_unit == 0 == self.mv_unit % narrow
        if not even or pes % narrow:
            return 0
        return self.level_range["L2B"] * lcm(counts["l1b"] * pes, self.mv_unit)

    @property
    def l1b_pair(self) -> int:
        """L1Bs that share a link to their L2BM."""
        return self._ports["l1b_pair"]

    # -- transfers, hazards ------------------------------------------------------------------

    def transfer(self, mnemonic: str, form: str, **parameters: int) -> TransferMap:
        """Return the index map of one form of a transfer."""
        key = (mnemonic, form, *sorted(parameters.items()))
        if key not in self._maps:
            found = self.spec.index_map(mnemonic, form, **parameters)
            self._maps[key] = TransferMap(
                {k: np.asarray(v, dtype=np.int64) for k, v in found.source.items()},
                {k: np.asarray(v, dtype=np.int64) for k, v in found.destination.items()},
                found.strides,
            )
        return self._maps[key]

    @cached_property
    def hazards(self) -> tuple[Hazard, ...]:
        """The distances in steps or cycles that the assembler demands."""
        return tuple(
            Hazard(
                frozenset(rule["memories"]),
                rule["rule"],
                rule["steps"],
                rule["cycles"],
                frozenset(rule["writers"]),
                frozenset(rule["readers"]),
                rule["source"],
            )
            for rule in self.spec.hazards
            if rule["rule"] in ("port", "data")
        )

    @cached_property
    def shares(self) -> tuple[tuple[frozenset[str], int], ...]:
        """Slots that share one unit, and how many of them a line may use; all of one precision."""
        return tuple((frozenset(s["slots"]), int(s["limit"])) for s in self.spec.shares)

    @cached_property
    def forwards(self) -> dict[str, str]:
        """The forwarding paths, each with the issue slot whose last result it holds."""
        return dict(self.spec.forwards)

    def forward(self, slot: str) -> str:
        """Return the forwarding path that holds the last result of an issue slot."""
        return next(name for name, filled in self.forwards.items() if filled == slot)

    @cached_property
    def banks(self) -> dict[str, str]:
        """The matrix registers: the letter in operands, and the memory."""
        return dict(self.spec.banks)

    @cached_property
    def masks(self) -> dict[str, Any]:
        """The mask registers: destination, source, memory, entries (see ``emu2.Spec``)."""
        return dict(self.spec.masks)

    def issue_rules(self, mnemonic: str) -> tuple[str | None, Sequence[str], Sequence[str]]:
        """Return the facts of an instruction that decide what may share a line with it.

        They are its precision, the inputs of the MAU that its sources come through, and the
        memories that no other instruction of the line may access. Transfers have no such facts.
        """
        facts = self.spec.instruction(mnemonic.partition("/")[0])
        if facts is None:
            return None, (), ()
        return facts["precision"], facts["inputs"], facts["excludes"]

    @cached_property
    def products(self) -> dict[str, dict[str, Any]]:
        """Products of the MAU by precision: rows, columns, result, mantissa (see ``emu2.Spec``).

        ``pair`` says that two instructions make a product, each on half of the PEs of a MAB.
        """
        return {
            letter: {**facts, "pair": self.spec.instruction(f"{letter}mmul") is None}
            for letter, facts in self.spec.products.items()
        }

    @cached_property
    def mv_tags(self) -> range:
        """The tags that an MV may carry and a `wait` may name."""
        first, last = self.spec.mv_tags
        return range(first, last + 1)

    def tag(self, tag: int) -> str:
        """Return the tag of an MV as an MV and a `wait` name it."""
        return f"{self.syntax['mv_tag']}{tag:0{self.syntax['tag_digits']}x}"

    # -- programs ----------------------------------------------------------------------------

    def assemble(self, text: str, filename: str) -> emu2.Program:
        """Assemble generated code, checking guessed hazards too. P0401 (our bug) if refused."""
        try:
            return emu2.assemble(text, self.spec, filename=filename, policy="strict")
        except emu2.AssembleError as problem:
            raise error("P0401", reason=str(problem)) from problem

    def new_machine(self) -> emu2.Machine:
        """Return a machine with all memories zero."""
        return emu2.Machine(self.spec)


@lru_cache(maxsize=16)
def load_target(name: str) -> Target:
    """Return the machine with the name, or with the description in the folder, ``name``. P0606."""
    try:
        spec = emu2.Spec.load(name)
    except emu2.EmulatorError as problem:
        raise error("P0606", spec=name, reason=problem.message) from problem
    target = Target(spec, _digest(name), name)
    unusable = why_unusable(spec)
    if unusable is not None:
        raise error("P0606", spec=name, reason=unusable)
    excluded = {*REGISTER_FILES}.intersection(target.issue_rules("imm")[2])
    if excluded:
        reason = (
            f"the compiler loads constants into {' and '.join(sorted(excluded))} with `imm`, whose "
            "line may not access it"
        )
        raise error("P0606", spec=name, reason=reason)
    at_once = {target.masks["memory"], *target.banks.values()}
    for rule in target.hazards:
        if rule.memories & at_once and (rule.steps or rule.cycles):
            memories = ", ".join(sorted(rule.memories & at_once))
            reason = f"the compiler reads {memories} in the step after the one that writes it"
            raise error("P0606", spec=name, reason=reason)
    return target


def _digest(name: str) -> str:
    """Return the SHA-256 of a description, of those it extends, and of emu2's compiled part.

    The compiled part holds the built-in descriptions. Names are looked up as emu2 does it: beside
    the description that extends them, in the folders of EMU2_SPEC_PATH, among the built-in ones,
    then as a path.
    """
    digest = hashlib.sha256(_emulator_digest())
    given = os.environ.get(_SEARCH_PATH)
    named = [] if given is None else [Path(folder) for folder in given.split(os.pathsep)]
    beside: Path | None = None
    while True:
        folders = [*([] if beside is None else [beside]), *named]
        path = next((folder / name for folder in folders if (folder / name).exists()), None)
        if path is None:
            if name in (*emu2.built_in_specs(), *emu2.what_if_specs()):
                digest.update(name.encode())
                return digest.hexdigest()
            path = Path(name)
        parent = None
        for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
            text = file.read_bytes()
            digest.update(f"{file.name} {len(text)} ".encode() + text)
            parent = tomllib.loads(text.decode()).get("extends", parent)
        if parent is None:
            return digest.hexdigest()
        name, beside = parent, path.parent


@lru_cache(maxsize=1)
def _emulator_digest() -> bytes:
    return hashlib.sha256(Path(str(_core.__file__)).read_bytes()).digest()
