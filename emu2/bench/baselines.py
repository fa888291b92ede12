"""Steps of the whole chip in numpy, as a user would write them: whole arrays, the same bits.

A step is prepared from the memories of a machine before the timing starts. It returns the words
that the instruction leaves in its destination. PE memories are arrays ``[..., word, mab, pe]``, the
order that suits the transfers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import emu2
from emu2.bench import arithmetic as on
from emu2.bench.arithmetic import Words

Step = Callable[[], Any]
"""Does the step and returns its result, however it lies."""


class Memories:
    """The memories of a machine as numpy arrays."""

    def __init__(self, machine: emu2.Machine) -> None:
        """Remember the machine."""
        self.machine = machine

    def upper(self, memory: str, count: int) -> Words:
        """Return the first words of a memory above the PEs: ``[group, ..., word]``."""
        return self.machine.read(memory, count=count)

    def pe(self, memory: str, count: int = 4) -> Words:
        """Return the first words of a memory of the PEs: ``[group, l2b, l1b, word, mab, pe]``."""
        words = self.machine.read(memory, count=count)
        return np.ascontiguousarray(np.moveaxis(words, -1, 3))


def lanes(words: Words, kind: Any) -> NDArray[Any]:
    """Return the lanes of words on a new last axis, the most significant one first."""
    count = 8 // np.dtype(kind).itemsize
    return np.ascontiguousarray(words.view(kind).reshape(*words.shape, count)[..., ::-1])


def joined(result: NDArray[Any]) -> Words:
    """Return words from lanes on the last axis, the most significant one first."""
    return np.ascontiguousarray(result[..., ::-1]).view(np.uint64)[..., 0]


class Baseline:
    """A step, and the memory that must hold its result after the instruction.

    Attributes:
        step: the timed function.
        finish: turns the step's result into words in the order of `Memories`; not timed.
        memory: destination of the instruction.
        count: number of its long words that are compared.
    """

    def __init__(
        self, step: Step, memory: str, count: int = 4, finish: Callable[[Any], Words] = np.asarray
    ) -> None:
        """Keep the parts."""
        self.step, self.memory, self.count, self.finish = step, memory, count, finish

    def check(self, machine: emu2.Machine) -> bool:
        """Return whether the machine holds the same bits after the instruction."""
        memories = Memories(machine)
        pe = machine.spec.memories[self.memory]["level"] == "pe"
        found = (memories.pe if pe else memories.upper)(self.memory, self.count)
        expected = self.finish(self.step())
        return bool(np.array_equal(found, expected.reshape(found.shape)))


def long_add(m: Memories) -> Baseline:
    """Return ``ladd $lm0v $ln0v $lr0v``."""
    x, y = m.pe("lm0"), m.pe("lm1")
    return Baseline(lambda: x + y, "grf0")


def vector_single(m: Memories) -> Baseline:
    """Return ``fvfma $lm0v $ln0v $lr0v $ls0v``."""
    x, y, z = (lanes(m.pe(name), np.uint32) for name in ("lm0", "lm1", "grf0"))
    return Baseline(lambda: on.fma_single(x, y, z), "grf1", finish=joined)


def path(words: Words) -> NDArray[Any]:
    """Return the four singles of pairs of long words: ``[..., cycle, mab, pe, lane]``."""
    low, high = (lanes(words[..., k::2, :, :], np.uint32) for k in (0, 1))
    return np.concatenate([low, high], axis=-1)


def unpath(result: NDArray[Any]) -> Words:
    """Return the pairs of long words of four singles."""
    halves = [joined(np.ascontiguousarray(result[..., k : k + 2])) for k in (0, 2)]
    both = np.stack(halves, axis=4)  # [..., cycle, half, mab, pe]
    return both.reshape(*both.shape[:3], -1, *both.shape[5:])


def vector_half(m: Memories) -> Baseline:
    """Return ``hvfma $lm0v $ln0v $llr0v $lls0v``."""
    x, y = (lanes(m.pe(name), np.uint16) for name in ("lm0", "lm1"))
    z = path(m.pe("grf0", 8))
    return Baseline(lambda: on.fma_half(x, y, z), "grf1", 8, unpath)


def vector_double(m: Memories) -> Baseline:
    """Return the pair ``dvfmau $lm0v $ln0v $lr0v $nowrite``, ``dvfmad $lm0v $ln0v $mauf $ls0v``."""
    x, y, z = m.pe("lm0"), m.pe("lm1"), m.pe("grf0")
    return Baseline(lambda: on.fma_double(x, y, z), "grf1")


def by_mab(values: NDArray[Any]) -> NDArray[Any]:
    """Return ``[..., word, mab, pe, lane]`` as ``[..., mab, word, pe * lane]``."""
    moved = np.moveaxis(values, -3, -4)
    return np.ascontiguousarray(moved.reshape(*moved.shape[:-2], -1))


def from_mab(result: NDArray[Any], pes: int) -> NDArray[Any]:
    """Return the inverse of `by_mab`."""
    return np.moveaxis(result.reshape(*result.shape[:-1], pes, -1), -3, -4)


def matrix_half(m: Memories) -> Baseline:
    """Return ``hmfma $lx $lm0v $llr0v $lls0v``."""
    x = by_mab(lanes(m.pe("lm0"), np.uint16))
    z = by_mab(path(m.pe("grf0", 8)))
    mantissa, place = on.block(by_mab(lanes(m.pe("mx", 16), np.uint16)), 6, 9)
    # Products of 18 bits, and four more bits for their sum, fit into singles.
    matrix = np.ascontiguousarray((mantissa * place).swapaxes(-1, -2).astype(np.float32))

    def step() -> NDArray[np.uint32]:
        mantissa, place = on.block(x, 6, 9)
        sums = np.matmul((mantissa * place).astype(np.float32), matrix)
        return on.to_single(on.add_odd(sums.astype(np.float64), on.single(z)))

    pes = m.machine.spec.counts["pe"]
    return Baseline(step, "grf1", 8, lambda result: unpath(from_mab(result, pes)))


def matrix_pseudo(m: Memories) -> Baseline:
    """Return ``gmfma $lx $lm0v $lr0v $ls0v``."""
    x, z = (by_mab(lanes(m.pe(name), np.uint32)) for name in ("lm0", "grf0"))
    seen = ~np.uint32((1 << on.OMITTED_SINGLE) - 1)  # the multiplier does not see the low bits
    mantissa, place = on.block(by_mab(lanes(m.pe("mx", 8), np.uint32)) & seen, 8, 23)
    matrix = np.ascontiguousarray((mantissa * place).swapaxes(-1, -2))

    def step() -> NDArray[np.uint32]:
        mantissa, place = on.block(x & seen, 8, 23)
        return on.to_single(on.add_odd(np.matmul(mantissa * place, matrix), on.single(z)))

    pes = m.machine.spec.counts["pe"]
    return Baseline(step, "grf1", finish=lambda result: joined(from_mab(result, pes)))


def matrix_single(m: Memories) -> Baseline:
    """Return ``fmfma $lx $lm0v $lr0v $ls0v``: first words of the vector, even columns."""
    x = by_mab(lanes(m.pe("lm0"), np.uint32)[..., :1])
    z = by_mab(lanes(m.pe("grf0"), np.uint32))
    rows = by_mab(lanes(m.pe("mx", 8), np.uint32)[..., :1])
    stand_in = float(1 << (2 * on.OMITTED_SINGLE - 2))

    def parts(bits: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        mantissa, place = on.block(bits, 8, 23)
        low = np.fmod(mantissa, 1 << on.OMITTED_SINGLE)
        return mantissa * place, low * place, np.sign(low) * place

    whole, low, signs = (np.ascontiguousarray(v.swapaxes(-1, -2)) for v in parts(rows))

    def step() -> NDArray[np.uint32]:
        x_whole, x_low, x_signs = parts(x)
        sums = np.matmul(x_whole, whole) - np.matmul(x_low, low)
        sums += stand_in * np.matmul(x_signs, signs)
        return on.to_single(on.add_odd(sums, on.single(z)))

    pes = m.machine.spec.counts["pe"]
    return Baseline(step, "grf1", finish=lambda result: joined(from_mab(result, pes)))


def _moved(source: Words, shape: tuple[int, ...], memory: str, count: int) -> Baseline:
    """Return a copy of `source`, which may be any view, into an array of `shape`."""
    target = np.zeros(shape, np.uint64)

    def step() -> Words:
        target[...] = source
        return target

    return Baseline(step, memory, count)


def l1bmd_load(m: Memories) -> Baseline:
    """Return ``l1bmd $lb0 $lm0v``."""
    shape = m.pe("lm0").shape
    words = int(np.prod(shape[3:]))
    return _moved(m.upper("l1bm", words).reshape(shape), shape, "lm0", 4)


def l1bmd_store(m: Memories) -> Baseline:
    """Return ``l1bmd $lm0v $lb0``."""
    source = m.pe("lm0")
    flat = source.reshape(*source.shape[:3], -1)
    return _moved(flat, flat.shape, "l1bm", flat.shape[-1])


def l1bmm_load(m: Memories) -> Baseline:
    """Return ``l1bmm $lb0 $lm0v``."""
    shape = m.pe("lm0").shape
    words = shape[3] * shape[5]
    source = m.upper("l1bm", words).reshape(*shape[:4], 1, shape[5])
    return _moved(source, shape, "lm0", 4)


def l1bmm_store(m: Memories) -> Baseline:
    """Return ``l1bmm@0 $lm0v $lb0``."""
    source = m.pe("lm0")[..., 0, :]
    flat = (*source.shape[:3], source.shape[3] * source.shape[4])
    baseline = _moved(source, source.shape, "l1bm", flat[-1])
    return baseline


def _l2b_words(m: Memories) -> tuple[int, int, int]:
    counts = m.machine.spec.counts
    return counts["cycle"], counts["l1b"], m.machine.spec.ports["l2bm_lane"]


def l2bmd_down(m: Memories) -> Baseline:
    """Return ``l2bmd $lc0 $lb0``."""
    cycles, l1bs, lane = _l2b_words(m)
    words = m.upper("l2bm", cycles * l1bs * lane)
    source = words.reshape(*words.shape[:2], cycles, l1bs, lane).swapaxes(2, 3)
    return _moved(source, source.shape, "l1bm", cycles * lane)


def l2bmd_up(m: Memories) -> Baseline:
    """Return ``l2bmd $lb0 $lc0``."""
    cycles, l1bs, lane = _l2b_words(m)
    words = m.upper("l1bm", cycles * lane)
    source = words.reshape(*words.shape[:3], cycles, lane).swapaxes(2, 3)
    return _moved(source, source.shape, "l2bm", cycles * l1bs * lane)


def reduce_doubles(m: Memories) -> Baseline:
    """Return ``l1bmrdfadd $lm0v $lb0``: two stages of the network of an L1B."""
    x = m.pe("lm0")
    fan_in = m.machine.spec.ports["reduce_inputs"]
    shape = (*x.shape[:4], x.shape[4] // fan_in, fan_in, x.shape[5])
    x = x.reshape(shape)
    words = x.shape[3] * x.shape[6]
    return Baseline(lambda: on.sum_doubles(on.sum_doubles(x, 5), 4), "l1bm", words)


def reduce_singles(m: Memories) -> Baseline:
    """Return ``l2bmrffadd $lb0 $lc0``: one stage with all L1Bs of an L2B."""
    spec = m.machine.spec
    words = spec.counts["cycle"] * spec.ports["l2bm_narrow"]
    x = lanes(m.upper("l1bm", words), np.uint32)
    return Baseline(lambda: on.sum_singles(x, 2), "l2bm", words, joined)
