"""The choice of tiles for a convolution: an estimate of the cycles of a MAB for every way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod

import onnx

from ...cost.moves import chip_dram_rate, crossing_cycles
from ...graph.graph import TensorType
from ...machine import WORDS_PER_LONG, Target
from .tiles import Axis, Tiling, tilings

Chosen = Sequence[tuple[Axis, Tiling]]
_CONVOLUTIONS = ("Conv", "ConvTranspose")
#: Operators that pass over nothing.
_VIEWS = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity"})
#: guess: what follows uneven tiles works on padding, or moves the results
_UNEVEN = 1.5
#: guess: the cycles in which an elementwise operator reads and writes a long word, with the copies
#: between the LMs that some of them need
_PASS = 2
#: guess: tiles that differ from those of the neighbours cost this much of a layer
_NEAR = 1.2


@dataclass(frozen=True)
class Chip:
    """The facts of the machine that the choice depends on.

    ``rows`` are the columns of a result that one MAB makes, ``across`` the elements of one long
    word in all PEs of a MAB. ``sums`` are the vectors whose sums fit the register file.
    A step takes ``cycles``.
    """

    levels: tuple[int, int, int]
    rows: int
    across: int
    sums: int
    cycles: int
    lm0: int
    lm1: int
    #: cycles to bring a long word of every PE from a neighbour in another MAB, L1B, L2B
    exchange: tuple[int, int, int]
    #: cycles to bring a long word of every PE from DRAM
    dram: int


def chip_of(target: Target) -> Chip:
    """Return the facts of a machine."""
    units = target.level_range
    half = max(target.products.values(), key=lambda facts: int(facts["rows"]))
    # A row of an L1B goes up and down through L2BM in narrow pieces, one L1B after the other.
    row = target.counts["mab"] * target.counts["pe"]
    narrow = target.transfer("l2bm", "up", l1b_number=0).source_words
    crossing = target.cycles * 2 * units["L1B"] * max(1, row // narrow)
    beyond = crossing_cycles(units["L2B"] * units["L1B"] * row, target)
    return Chip(
        (units["MAB"], units["L1B"], units["L2B"]),
        rows_of(target),
        WORDS_PER_LONG * units["PE"],
        target.words("grf0") // int(half["result"]),
        target.cycles,
        target.words("lm0"),
        target.words("lm1"),
        (2, crossing, beyond),
        prod(target.pe_shape) // chip_dram_rate(target),
    )


def rows_of(target: Target) -> int:
    """Return the most columns of a result that one MAB makes at once."""
    return max(int(facts["rows"]) for facts in target.products.values())


def block_of(target: Target) -> int:
    """Return the most elements of the contracted axis that one vector of a product has."""
    return max(int(facts["columns"]) for facts in target.products.values())


def weights_fit(channels: int, taps: int, target: Target) -> bool:
    """Whether one block of rows of the weights takes at most half of LM1 in one MAB."""
    chip = chip_of(target)
    return 2 * -(-channels // chip.across) * taps * chip.rows <= chip.lm1


def weights_are_large(channels: int, taps: int, target: Target) -> bool:
    """Whether one block of rows of the weights does not fit LM1 of one MAB, even as halves."""
    chip = chip_of(target)
    return -(-channels // block_of(target)) * taps * chip.rows > chip.lm1


def weight_gradient_fits(
    shape: tuple[int, ...], columns: int, chosen: Chosen, target: Target, *, few: bool
) -> bool:
    """Whether LM0 holds the pixels, and LM1 the gradients beside the weights' gradient.

    L1Bs may share the columns. Pictures, tiles and places without taps lie on the units that are
    left, as far as these divide them. With ``few`` places MABs share the columns too: one has one
    block of sums, one tile, and its gradients of all columns at most.
    """
    chip, block = chip_of(target), block_of(target)
    vectors, blocks = -(-shape[1] // block), -(-columns // chip.rows)
    windows = [tiling for axis, tiling in chosen if few or axis.taps > 1]
    pixels = vectors * prod(tiling.reach for tiling in windows)
    results = prod(tiling.results for tiling in windows)
    # The sums of one block of columns are singles.
    sums = vectors * block * prod(axis.taps for axis, _ in chosen) * chip.rows // chip.across
    if few:
        return pixels <= chip.lm0 and sums + blocks * results <= chip.lm1
    most = chip.levels[1]
    apart = [shape[0], *(t.count if axis.taps > 1 else t.results for axis, t in chosen)]
    for sharing in (n for n in range(1, most + 1) if most % n == 0):
        free, here = prod(chip.levels) // sharing, -(-blocks // sharing)
        each = -(-prod(apart) // min(free, prod(_on_units(size, free) for size in apart)))
        if each * pixels <= chip.lm0 and here * (sums + each * results) <= chip.lm1:
            return True
    return False


def _on_units(size: int, units: int) -> int:
    """Return the largest divisor of ``size`` that has only prime factors of ``units``."""
    found = 1
    while (common := gcd(size // found, units)) > 1:
        found *= common
    return found


def best_tiles(
    shape: tuple[int, ...],
    rows: int,
    axes: Sequence[Axis],
    target: Target,
    *,
    passes: float = 0,
    even: bool = False,
    contracted: bool = False,
) -> list[tuple[Axis, Tiling]]:
    """Return the tiles of every axis with which a MAB has the least to do.

    ``passes`` counts the operators that pass over a result; they too leave MABs without tiles
    idle. With ``even`` all tiles of an axis have the same number of results. With ``contracted``
    the L1Bs share the channels, so that they have the same pixels.
    """
    chip = chip_of(target)
    if contracted:
        mabs, l1bs, l2bs = chip.levels
        shape = (shape[0], -(-shape[1] // l1bs), *shape[2:])
        chip = replace(chip, levels=(mabs, 1, l2bs))
    blocks = -(-rows // chip.rows)
    ways = [
        (
            min(_sliced(shape, rows, chosen, units, chip, passes) for units in splits(blocks, chip))
            * (1 if all(_even(one) for one in chosen) else _UNEVEN),
            prod(tiling.count for _, tiling in chosen),
            number,
            chosen,
        )
        for number, way in enumerate(product(*(_ways(axis, even) for axis in axes)))
        for chosen in [list(zip(axes, way, strict=True))]
    ]
    # Neighbours agree about tiles that are alike in all axes, and then nothing moves between them.
    most = _NEAR * min(ways)[0]
    return min((_unlike(way[-1]), way) for way in ways if way[0] <= most)[-1][-1]


def _unlike(chosen: Chosen) -> float:
    """Return how many more tiles one axis with taps has than another."""
    counts = [tiling.count for axis, tiling in chosen if axis.taps > 1] or [1]
    return max(counts) / min(counts)


def _ways(axis: Axis, even: bool) -> list[Tiling]:
    return [tiling for tiling in tilings(axis) if not even or _even((axis, tiling))]


def _even(one: tuple[Axis, Tiling]) -> bool:
    axis, tiling = one
    return tiling.count * tiling.results == axis.results


def splits(blocks: int, chip: Chip) -> Iterator[int]:
    """Yield the numbers of MABs that may share the rows."""
    units = 1
    yield units
    while units < min(blocks, chip.levels[0]):
        units *= 2
        yield units


def _sliced(
    shape: tuple[int, ...], rows: int, chosen: Chosen, units: int, chip: Chip, passes: float
) -> float:
    """Estimate the cycles of as many time slices of the batch as LM needs."""
    slices = 1
    while True:
        part = -(-shape[0] // slices), *shape[1:]
        cycles, over = _cost(part, rows, chosen, units, chip, passes)
        if not over or slices >= shape[0]:
            return slices * cycles + 1000 * over
        slices *= 2


def _cost(
    shape: tuple[int, ...], rows: int, chosen: Chosen, units: int, chip: Chip, passes: float
) -> tuple[float, int]:
    """Estimate the cycles of a MAB, and the long words that do not fit its LM.

    ``units`` MABs share the rows of the result.
    """
    free = prod(chip.levels) // units
    # Axes without taps need no tiles to lie on units.
    batch = shape[0] * prod(t.count if a.taps > 1 else t.results for a, t in chosen)
    each, here = -(-batch // free), -(-rows // (chip.rows * units))
    windows = [(a, t) for a, t in chosen if a.taps > 1]
    results = each * prod(t.results for _, t in windows)
    words, taps = -(-shape[1] // chip.across), prod(a.taps for a, _ in chosen)
    pixels = each * prod(t.reach for _, t in windows) * words
    # A vector has two words of every PE, and its sums take two. Weights may be halves.
    blocks = -(-words // WORDS_PER_LONG)
    weights, sums = blocks * taps * chip.rows * here, results * WORDS_PER_LONG * here
    # Time slices of the channels take what the weights need beyond half of LM1.
    cuts = -(-2 * weights // chip.lm1)
    over = max(0, pixels // cuts - chip.lm0) + max(0, sums + weights // cuts - chip.lm1)
    loads = WORDS_PER_LONG * -(-results // chip.sums) * chip.cycles
    total: float = taps * blocks * here * (-(-results // chip.cycles) * chip.cycles + loads)
    total += passes * _PASS * sums
    if all(t.count == 1 and a.plain for a, t in windows):
        return total, over
    # Tiles hold a part of the channels, until the MABs that share the rows collect them: each part
    # goes to all of them, or all parts go to the MABs of one tile after the other.
    parts = min(units, words)
    total += pixels // parts
    if parts > 1:
        total += pixels * min(parts, chip.levels[0] // parts)
    return total + halo_cycles(shape, windows, each * words / parts, units, chip), over


def halo_cycles(
    shape: tuple[int, ...], windows: Chosen, words: float, units: int, chip: Chip
) -> float:
    """Estimate the cycles that bring the halo; a place has ``words`` long words."""
    left = [chip.levels[0] // units, *chip.levels[1:]]
    pictures = shape[0]
    for level in (2, 1):
        while pictures > 1 and left[level] > 1:
            pictures, left[level] = -(-pictures // 2), left[level] // 2
    total = 0.0
    for index in reversed(range(len(windows))):
        _, tiling = windows[index]
        count, highest = tiling.count, 0
        for level in range(3):
            while count > 1 and left[level] > 1:
                count, left[level], highest = -(-count // 2), left[level] // 2, level
        if tiling.count > 1:
            # Earlier axes already have their halo.
            others = prod(t.reach for _, t in windows[:index])
            others *= prod(t.results * t.stride for _, t in windows[index + 1 :])
            halo = words * others * max(0, tiling.reach - tiling.places)
            total += sum(halo * chip.exchange[level] for level in range(highest + 1))
    return total


def passes_beside_convolutions(graph: onnx.GraphProto, types: Mapping[str, TensorType]) -> float:
    """Return how often other operators pass over the pixels of a convolution, in the mean.

    A step of a training has many such passes: norms, their gradients, and updates.
    """
    inside = others = 0
    for node in graph.node:
        sizes = [prod(types[n].shape) for n in (*node.input, *node.output) if n in types]
        if node.op_type in _CONVOLUTIONS and node.domain in ("", "ai.onnx"):
            inside += max(sizes, default=0)
        elif node.op_type not in _VIEWS:
            others += max(sizes, default=0)
    return others / inside if inside else 0.0
