"""The code of depthwise convolutions: what a PE computes, and its instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import groupby, product
from math import prod

import numpy as np

from ..code.lines import Forward, Line, Operand, PeOperand, Special, alu_step, single_step
from ..code.nest import Nest, Repeat, runs, whole_runs
from ..graph.digits import Part, parts
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode, MNValue
from ..graph.layout import Level
from ..machine import WORDS_PER_LONG, Target
from ..pfvm.windows import AxisWindow, windows_of
from .base import layout_of
from .copy_operators import places_at
from .half_conversions import narrowed
from .scratch import Scratch, Words, vector

CHANNELS = 1  # the axis of the channels, in the input and in the result


def tapped_axes(node: MNNode, graph: MNGraph) -> dict[int, AxisWindow]:
    """Return the windows of every axis along which a result reads more than its own position."""
    shape, goal = (graph.values[n].shape for n in (node.inputs[0], node.outputs[0]))
    found = windows_of(dict(node.attributes), shape[2:], goal[2:])
    return {axis + 2: window for axis, window in enumerate(found) if not window.plain}


@dataclass(frozen=True)
class _Channel:
    """The addresses at which a channel begins: in the result, the pixels, the weights, the bias."""

    result: int
    pixels: int
    weights: int
    bias: int


@dataclass(frozen=True)
class _Results:
    """Results of one channel that read the same taps; ``at`` are their addresses.

    ``taps`` are the taps' numbers; ``read`` has for each result the address of each tap's pixel.
    """

    taps: tuple[int, ...]
    at: tuple[int, ...]
    read: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Work:
    """What a PE computes: every channel has the same results, ``channels`` at a time.

    ``taps`` are the addresses of the taps in the weights of a channel. A sum takes ``wide`` long
    words.
    """

    channels: tuple[_Channel, ...]
    results: tuple[_Results, ...]
    taps: tuple[int, ...]
    cycles: int
    registers: int
    wide: int
    biased: bool

    @staticmethod
    def of(node: MNNode, graph: MNGraph, target: Target) -> Work:
        """Return the work of a PE, from the layouts of the operands."""
        source, weights, result = (
            graph.values[name] for name in (*node.inputs[:2], node.outputs[0])
        )
        biased = len(node.inputs) > 2 and bool(node.inputs[2])
        bias = graph.values[node.inputs[2]] if biased else None
        windows = tapped_axes(node, graph)
        theirs, ours = (parts(layout_of(v), v.shape) for v in (result, source))
        factors = parts(layout_of(weights), weights.shape)
        added = _bias_parts(bias, source.dtype) if bias is not None else []
        numbers = _together(theirs[CHANNELS], ours[CHANNELS], factors[0], added)
        plain = [(0, 0)]
        for axis in range(len(theirs)):
            if axis != CHANNELS and axis not in windows:
                pairs = _together(theirs[axis], ours[axis])
                plain = [(a + c, b + d) for a, b in plain for c, d in pairs]
        kernel = [
            places_at(factors[axis], np.arange(weights.shape[axis])).tolist()
            for axis in range(2, len(weights.shape))
        ]
        return Work(
            tuple(_Channel(*number) for number in numbers),
            tuple(_results(windows, weights.shape[2:], theirs, ours, plain)),
            tuple(sum(place) for place in product(*kernel)),
            target.cycles,
            min(target.words("grf0"), target.words("grf1")),
            MNDtype.FLOAT.bits * source.dtype.words_per_long // MNDtype.LONG.bits,
            biased,
        )

    @property
    def at_once(self) -> int:
        """The number of taps whose weights the register file holds."""
        return min(len(self.taps), self.registers)

    @cached_property
    def blocks(self) -> list[Sequence[_Channel]]:
        """The channels whose weights the register files hold at once."""
        # The other register file has the biases, and sums that wait if not all taps fit.
        sums = self.registers // (2 * self.wide)
        most = max(1, min(self.registers // len(self.taps), sums))
        return runs(self.channels, most)

    def vectors(self, count: int, results: _Results) -> int:
        """Return the number of vectors that some results of ``count`` channels take."""
        return -(-len(results.at) * count // self.cycles)


def _bias_parts(bias: MNValue, dtype: MNDtype) -> list[Part]:
    """Return the parts of a bias as one of elements of ``dtype``; its sums take more long words."""
    layout = layout_of(bias)
    if dtype is not bias.dtype:
        layout = narrowed(layout, 0) or layout
    return parts(layout, bias.shape)[0]


def _together(first: Sequence[Part], *others: Sequence[Part]) -> list[tuple[int, ...]]:
    """Return the addresses of an axis in several values with the same digits; 0 if it has none."""
    out = [np.zeros(1, np.int64) for _ in range(1 + len(others))]
    for part in first:
        if part.level is not Level.ADDR:
            continue
        step = np.arange(part.size, dtype=np.int64)
        for place, own in enumerate((first, *others)):
            stride = next((p.stride for p in own if p.lo == part.lo), 0)
            out[place] = (out[place][:, None] + step * stride).reshape(-1)
    return list(zip(*(found.tolist() for found in out), strict=True))


def _results(
    windows: Mapping[int, AxisWindow],
    kernel: Sequence[int],
    theirs: Sequence[Sequence[Part]],
    ours: Sequence[Sequence[Part]],
    plain: Sequence[tuple[int, int]],
) -> Iterator[_Results]:
    """Yield the results of a channel, those that read the same taps together."""
    along: list[list[_Results]] = []
    for axis, window in windows.items():
        weight = prod(kernel[axis - 1 :])
        goals = places_at(theirs[axis], np.arange(window.count)).tolist()
        sources = places_at(ours[axis], np.maximum(window.taps, 0)).tolist()
        groups: dict[tuple[int, ...], list[tuple[int, tuple[int, ...]]]] = {}
        for goal, source, places in zip(goals, sources, window.taps.tolist(), strict=True):
            taps = tuple(tap for tap, place in enumerate(places) if place >= 0)
            groups.setdefault(taps, []).append((goal, tuple(source[tap] for tap in taps)))
        along.append(
            [
                _Results(
                    tuple(tap * weight for tap in taps),
                    tuple(goal for goal, _ in found),
                    tuple(source for _, source in found),
                )
                for taps, found in groups.items()
            ]
        )
    for chosen in product(*along):
        total = _Results((0,), tuple(a for a, _ in plain), tuple((b,) for _, b in plain))
        for one in chosen:
            read = tuple(_crossed(own, more) for own in total.read for more in one.read)
            total = _Results(_crossed(total.taps, one.taps), _crossed(total.at, one.at), read)
        yield total


def _crossed(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a in one for b in other)


@dataclass(frozen=True)
class _Vector:
    """A vector of results: addresses, for each tap its number and pixels, its channels."""

    goal: tuple[int, ...]
    taps: tuple[tuple[int, tuple[int, ...]], ...]
    channels: tuple[int, ...]


#: The number of a vector whose sums wait, its results and its number among these.
_Place = tuple[int, tuple[int, int]]
_Made = Callable[[int], Sequence[_Vector]]


def _vectors(
    block: Sequence[_Channel], all_results: Sequence[_Results], cycles: int, number: int
) -> list[_Vector]:
    """Return the vectors of results ``number`` of the channels of a block."""
    results, out = all_results[number], list[_Vector]()
    rows = sorted(
        (channel.result + at, place, tuple(channel.pixels + one for one in read))
        for place, channel in enumerate(block)
        for at, read in zip(results.at, results.read, strict=True)
    )
    for part in whole_runs(rows, cycles):
        goals, channels, pixels = zip(*part, strict=True)
        taps = tuple(zip(results.taps, zip(*pixels, strict=True), strict=True))
        out.append(_Vector(goals, taps, channels))
    return out


def depthwise_code(node: MNNode, graph: MNGraph, target: Target) -> Nest:
    """Return the code."""
    work = Work.of(node, graph, target)
    source, weights, result = (graph.values[n] for n in (*node.inputs[:2], node.outputs[0]))
    cycles, factors = target.cycles, Scratch("grf1")
    parted = work.at_once < len(work.taps)

    def summed(made: _Made, first: int, alike: Sequence[_Place], turn: int) -> Iterator[Line]:
        place, (number, at) = alike[turn]
        one = made(number)[at]
        waits = tuple((place + 1) * cycles + cycle for cycle in range(cycles))
        bias = _sums(one.channels, work.wide) if work.biased else None
        waiting = _sums(waits, work.wide) if parted else None
        here = range(first, min(first + work.at_once, len(work.taps)))
        return _summed(one, here, source, result, bias, waiting, factors)

    for block in work.blocks:
        if work.biased:
            bias = graph.values[node.inputs[2]]
            words = [work.wide * channel.bias + n for channel in block for n in range(work.wide)]
            yield from _loaded(words, bias, Scratch("grf0"), cycles)
        vectors = [
            (number, at)
            for number, found in enumerate(work.results)
            for at in range(work.vectors(len(block), found))
        ]
        made = cache(partial(_vectors, block, work.results, cycles))
        # Sums of vectors wait in the registers behind the biases while weights are exchanged.
        most = work.registers // (cycles * work.wide) - 1 if parted else len(vectors)
        for some in runs(vectors, most):
            groups = [list(group) for _, group in groupby(enumerate(some), lambda one: one[1][0])]
            for first in range(0, len(work.taps), work.at_once):
                taps = work.taps[first : first + work.at_once]
                wanted = [channel.weights + at for channel in block for at in taps]
                yield from _loaded(wanted, weights, factors, cycles)
                for alike in groups:
                    yield Repeat(len(alike), partial(summed, made, first, alike))


def _sums(places: Sequence[int], wide: int) -> PeOperand:
    """Return sums in the register file, each of ``wide`` long words."""
    at = tuple(wide * place for place in places)
    return vector(Scratch("grf0"), at)._replace(words=wide * WORDS_PER_LONG)


def _loaded(places: Sequence[int], value: Words, registers: Scratch, cycles: int) -> Iterator[Line]:
    """Yield the copies of the long words at ``places`` to a register file."""
    for turn, part in enumerate(whole_runs(places, cycles)):
        goal = tuple(range(turn * cycles, (turn + 1) * cycles))
        yield alu_step("lpassa", (vector(value, tuple(part)),), vector(registers, goal))


def _summed(
    one: _Vector,
    here: range,
    source: MNValue,
    result: MNValue,
    bias: Operand | None,
    waiting: Operand | None,
    factors: Scratch,
) -> Iterator[Line]:
    """Yield the multiply-adds of a vector over the taps ``here``, whose weights are ``factors``.

    The sum begins with the bias, or with the sum ``waiting`` over the taps before.
    """
    goal = vector(result, one.goal)
    letter, rounded = ("h", "r") if result.dtype is MNDtype.HALF else ("f", "")
    if not one.taps and here.start == 0:
        if bias is None:
            yield alu_step("zero", (), goal)
        else:
            yield single_step("mau", f"{letter}vpassa{rounded}", (bias,), goal)
    mine = [tap for tap in one.taps if tap[0] in here]
    for number, (tap, pixels) in enumerate(mine):
        place = tuple(channel * len(here) + tap - here.start for channel in one.channels)
        operands: tuple[Operand, ...] = (vector(source, pixels), vector(factors, place))
        if number:
            operands += (Forward("mau"),)
        elif (tap, pixels) != one.taps[0]:
            assert waiting is not None
            operands += (waiting,)
        elif bias is not None:
            operands += (bias,)
        last: Operand = Special("nowrite")
        if tap == one.taps[-1][0]:
            last = goal
        elif number == len(mine) - 1:
            assert waiting is not None
            last = waiting
        name = f"{letter}v{'mul' if len(operands) == 2 else 'fma'}"
        yield single_step("mau", name + rounded * (last is goal), operands, last)
