"""The measured kernels, their limits and their targets."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

import emu2
from emu2.bench import baselines
from emu2.bench.arithmetic import Words
from emu2.bench.baselines import Baseline, Memories

GIGA = 1e9
BYTES = 8  # of a long word


class Chip:
    """The counts of a machine."""

    def __init__(self, spec: emu2.Spec) -> None:
        """Take them from the spec."""
        counts = spec.counts
        self.spec = spec
        self.l1bs = counts["group"] * counts["l2b"] * counts["l1b"]
        self.lanes = counts["mab"] * counts["pe"]
        self.row = counts["cycle"] * self.lanes
        self.pe_ops = self.l1bs * self.row
        self.l2bs = counts["group"] * counts["l2b"]
        self.mab_row = counts["cycle"] * counts["pe"]
        self.l2bm_deal = self.l2bs * counts["cycle"] * counts["l1b"] * spec.ports["l2bm_lane"]
        self.l2bm_reduced = self.l1bs * counts["cycle"] * spec.ports["l2bm_narrow"]


@dataclass(frozen=True)
class Target:
    """A target: the least ratio to the limit, or the least value itself."""

    least: float
    of_ratio: bool = True


@dataclass(frozen=True)
class Kernel:
    """A class of instructions.

    Attributes:
        kernel: name in the table of targets.
        case: distinguishes several cases of one kernel, or empty.
        lines: the step, or the pair of steps.
        elements: number of elements that one round of the lines processes on a chip.
        unit: of the value: billions of elements a second, or GB/s with 8 bytes per element.
        data: format of the numbers in the memories: d, f, h, or i for any bits.
        baseline: the same step in numpy.
        limit: loop of `emu2._core.race`, or `numpy`.
        rows: long words of the limit's row, and number of rows.
        targets: the targets of the kernel.
        rounds: how often the lines are repeated.
    """

    kernel: str
    case: str
    lines: str
    elements: Callable[[Chip], int]
    unit: str
    data: str
    baseline: Callable[[Memories], Baseline]
    limit: str | None = None
    rows: Callable[[Chip], tuple[int, int]] = field(default=lambda chip: (chip.row, chip.l1bs))
    targets: tuple[Target, ...] = ()
    rounds: int = 256

    @property
    def name(self) -> str:
        """Name for people and patterns."""
        return f"{self.kernel} {self.case}".strip()

    @cached_property
    def steps(self) -> int:
        """Steps of a round."""
        return self.lines.count("\n") + 1

    @property
    def scale(self) -> float:
        """The value, in `unit`, of one element a second."""
        return (BYTES if self.unit == "GB/s" else 1) / GIGA


def _per_pe(count: int) -> Callable[[Chip], int]:
    return lambda chip: count * chip.pe_ops


def _products(precision: str) -> Callable[[Chip], int]:
    """Return the multiply-adds of a matrix product: rows times columns in each MAB."""

    def count(chip: Chip) -> int:
        rows, columns = chip.spec.matrices[precision]
        return rows * columns * chip.pe_ops // chip.spec.counts["pe"]

    return count


def _at_least(value: float) -> Target:
    return Target(value, of_ratio=False)


def mvp_words(spec: emu2.Spec) -> int:
    """Return the long words of the measured MV: a quarter of an L2BM."""
    return int(spec.memories["l2bm"]["words"]) // 4


def kernels(chip: Chip) -> list[Kernel]:
    """Return every class of instructions of the table of targets."""
    slow = 64
    half = (Target(0.5),)
    move, short = mvp_words(chip.spec), chip.spec.ports["mv_unit"]

    def mv(
        case: str, source: str, destination: str, words: int, targets: tuple[Target, ...]
    ) -> Kernel:
        line = f"mvp/n{words} {source} {destination}"
        down = source.startswith("$p")

        def baseline(m: Memories) -> Baseline:
            memory, target = ("pdm", "l2bm") if down else ("l2bm", "pdm")
            words_in = m.upper(memory, words)
            first = words_in.reshape(-1, words)[0]
            there = m.upper(target, words)

            def step() -> Words:
                there.reshape(-1, words)[0] = first
                return there

            return Baseline(step, target, words)

        return Kernel(
            "mvp",
            case,
            line,
            lambda _: words,
            "GB/s",
            "i",
            baseline,
            "copy",
            lambda _: (words, 1),
            targets,
        )

    return [
        Kernel(
            "long integer ALU op",
            "",
            "ladd $lm0v $ln0v $lr0v",
            _per_pe(1),
            "G PE-ops/s",
            "i",
            baselines.long_add,
            "add",
            targets=(Target(0.5), _at_least(6)),
        ),
        Kernel(
            "fvfma",
            "",
            "fvfma $lm0v $ln0v $lr0v $ls0v",
            _per_pe(2),
            "G FMA/s",
            "f",
            baselines.vector_single,
            "fma_f64",
            targets=(Target(0.2),),
        ),
        Kernel(
            "hvfma",
            "",
            "hvfma $lm0v $ln0v $llr0v $lls0v",
            _per_pe(4),
            "G FMA/s",
            "h",
            baselines.vector_half,
            "fma_f64",
            targets=(Target(0.2),),
        ),
        Kernel(
            "dvfma",
            "u and d pair",
            "dvfmau $lm0v $ln0v $lr0v $nowrite\ndvfmad $lm0v $ln0v $mauf $ls0v",
            _per_pe(1),
            "G FMA/s",
            "d",
            baselines.vector_double,
            "numpy",
            targets=(Target(15),),
            rounds=slow,
        ),
        Kernel(
            "hmfma",
            "",
            "hmfma $lx $lm0v $llr0v $lls0v",
            _products("h"),
            "GMAC/s",
            "h",
            baselines.matrix_half,
            "multiply_add_16",
            targets=(Target(0.15), _at_least(20)),
            rounds=slow,
        ),
        Kernel(
            "gmfma",
            "",
            "gmfma $lx $lm0v $lr0v $ls0v",
            _products("g"),
            "GMAC/s",
            "f",
            baselines.matrix_pseudo,
            targets=(_at_least(5),),
            rounds=slow,
        ),
        Kernel(
            "fmfma",
            "",
            "fmfma $lx $lm0v $lr0v $ls0v",
            _products("f"),
            "GMAC/s",
            "f",
            baselines.matrix_single,
            targets=(_at_least(2),),
            rounds=slow,
        ),
        Kernel(
            "l1bmd",
            "to PEs",
            "l1bmd $lb0 $lm0v",
            _per_pe(1),
            "GB/s",
            "i",
            baselines.l1bmd_load,
            "copy",
            targets=half,
        ),
        Kernel(
            "l1bmd",
            "from PEs",
            "l1bmd $lm0v $lb0",
            _per_pe(1),
            "GB/s",
            "i",
            baselines.l1bmd_store,
            "copy",
            targets=half,
        ),
        Kernel(
            "l1bmm",
            "to PEs",
            "l1bmm $lb0 $lm0v",
            _per_pe(1),
            "GB/s",
            "i",
            baselines.l1bmm_load,
            "copy",
            targets=half,
        ),
        Kernel(
            "l1bmm",
            "from a MAB",
            "l1bmm@0 $lm0v $lb0",
            lambda chip: chip.l1bs * chip.mab_row,
            "GB/s",
            "i",
            baselines.l1bmm_store,
            "copy",
            lambda chip: (chip.mab_row, chip.l1bs),
            half,
        ),
        Kernel(
            "l2bmd",
            "to L1BM",
            "l2bmd $lc0 $lb0",
            lambda chip: chip.l2bm_deal,
            "GB/s",
            "i",
            baselines.l2bmd_down,
            "copy",
            lambda chip: (chip.l2bm_deal, 1),
            half,
        ),
        Kernel(
            "l2bmd",
            "to L1BM, lines apart",
            "l2bmd $lc0 $lb0",
            lambda chip: chip.l2bm_deal,
            "GB/s",
            "i",
            baselines.l2bmd_down,
            "lines",
            lambda chip: (chip.l2bm_deal // chip.l1bs, chip.l1bs),
        ),
        Kernel(
            "l2bmd",
            "from L1BM",
            "l2bmd $lb0 $lc0",
            lambda chip: chip.l2bm_deal,
            "GB/s",
            "i",
            baselines.l2bmd_up,
            "copy",
            lambda chip: (chip.l2bm_deal, 1),
            half,
        ),
        Kernel(
            "l2bmd",
            "from L1BM, lines apart",
            "l2bmd $lb0 $lc0",
            lambda chip: chip.l2bm_deal,
            "GB/s",
            "i",
            baselines.l2bmd_up,
            "lines",
            lambda chip: (chip.l2bm_deal // chip.l1bs, chip.l1bs),
        ),
        mv(f"PDM to L2BM, {move} words", "$p0@0", "$lc0@0.0", move, half),
        mv(f"L2BM to PDM, {move} words", "$lc0@0.0", "$p0@0", move, half),
        mv(f"PDM to L2BM, {short} words", "$p0@0", "$lc0@0.0", short, ()),
        Kernel(
            "l1bmrdfadd",
            "",
            "l1bmrdfadd $lm0v $lb0",
            _per_pe(1),
            "G words/s",
            "d",
            baselines.reduce_doubles,
            "numpy",
            targets=(Target(10),),
            rounds=slow,
        ),
        Kernel(
            "l2bmrffadd",
            "",
            "l2bmrffadd $lb0 $lc0",
            lambda chip: chip.l2bm_reduced,
            "G words/s",
            "f",
            baselines.reduce_singles,
            "numpy",
            targets=(Target(10),),
            rounds=slow,
        ),
    ]


_FIXED = {
    # Fixed bits of all lanes, and mask of the random bits: numbers of both signs from 1 to 4.
    # Lanes of a MAB share exponents, as block floats must.
    "d": (0x3FF0000000000000, 0x800FFFFFFFFFFFFF),
    "f": (0x3F8000003F800000, 0x807FFFFF807FFFFF),
    "h": (0x3E003E003E003E00, 0x81FF81FF81FF81FF),
    "i": (0, 0xFFFFFFFFFFFFFFFF),
}


def prepared(spec: emu2.Spec, data: str) -> emu2.Machine:
    """Return a machine whose memories begin with random numbers of the format `data`."""
    machine = emu2.Machine(spec)
    random = np.random.default_rng(1)
    fixed, free = (np.uint64(bits) for bits in _FIXED[data])
    for name in ("lm0", "lm1", "grf0", "grf1", "mx", "l1bm", "l2bm", "pdm"):
        count = int(spec.memories[name]["words"])
        count = min(
            count, {"l2bm": mvp_words(spec), "pdm": mvp_words(spec), "l1bm": 256}.get(name, 16)
        )
        shape = machine.read(name, count=count).shape
        words = random.integers(0, 1 << 64, size=shape, dtype=np.uint64, endpoint=False)
        machine.write(name, words & free | fixed)
    return machine


def chosen(name: str, pattern: str | None) -> bool:
    """Return whether the pattern is a part of the row's name, or matches it (`*`)."""
    return pattern is None or pattern in name or fnmatch.fnmatchcase(name, pattern)
