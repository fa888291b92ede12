"""Fourier transforms as products with a constant matrix, on pairs of real and imaginary parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..held import Array
from .tiles import Tiling, tiled
from .writer import Writer

#: The most elements of a matrix.
_MOST = 1 << 22


def dft(write: Writer) -> str | bool:
    """Multiply pairs along an axis by sines and cosines."""
    shape, rank = write.type(0).shape, len(write.type(0).shape)
    length, axis = _number(write, 1, None), _axis(write, rank)
    if rank < 2 or axis is None or length == 0:
        return False
    parts, size = shape[-1], shape[axis]
    count = _length(write, size) if length is None else length
    half, inverse = (bool(write.attribute(name, 0)) for name in ("onesided", "inverse"))
    matrix = _matrix(size, parts, count, half, inverse)
    if matrix is None:
        return False
    order = [a for a in range(rank - 1) if a != axis] + [axis, rank - 1]
    value = write.node.input[0]
    if order != list(range(rank)):
        value = write.op("Transpose", value, perm=order)
    front = [shape[a] for a in order[:-2]]
    value = _multiplied(write, value, front, matrix, 1 if half and inverse else 2)
    back = [order.index(a) for a in range(rank)]
    return write.op("Transpose", value, perm=back)


def stft(write: Writer) -> str | bool:
    """Cut a signal into frames, and transform each."""
    names = (*write.node.input, "", "")
    shape = write.type(0).shape
    step, length = _number(write, 1, None), _number(write, 3, None)
    if not step or (names[3] and not length) or len(shape) != 3:
        return False
    window = write.data.get(names[2])
    if names[2]:
        length = write.types[names[2]].shape[0]
    if length is None or not 0 < length <= shape[1]:
        return False
    matrix = _matrix(length, shape[2], length, bool(write.attribute("onesided", 1)), False)
    if matrix is None:
        return False
    starts = np.arange((shape[1] - length) // step + 1) * step
    if length <= step and shape[1] <= len(starts) * step and len(starts) > 1:
        tiling = Tiling(len(starts), 0, step, length, 0)
        frames = tiled(write, write.node.input[0], shape, [(0, 0)] * 3, {1: tiling})
    else:
        index = write.constant(starts[:, None] + np.arange(length), "index")
        frames = write.op("Gather", write.node.input[0], index, axis=1)
    if window is not None:
        matrix = matrix * np.repeat(window, shape[2])[:, None]
    elif names[2]:
        frames = write.op("Mul", frames, write.reshape(names[2], [length, 1]))
    value = _multiplied(write, frames, [shape[0], len(starts)], matrix, 2)
    return write.op("Identity", value)


def _number(write: Writer, place: int, default: int | None) -> int | None:
    """Return an input that is one number; 0 if it is no constant."""
    name = write.input(place)
    if not name:
        return default
    given = write.data.get(name)
    return 0 if given is None else int(given.reshape(-1)[0])


def _axis(write: Writer, rank: int) -> int | None:
    """Return the axis of a DFT: an input since opset 20, an attribute before."""
    name = write.input(2)
    if name:
        given = write.data.get(name)
        return None if given is None else int(given.reshape(-1)[0]) % rank
    own = write.attribute("axis", None)
    if own is None:  # the default was 1, and is the last but one
        return 1 if rank == 3 else None
    return int(own) % rank


def _length(write: Writer, size: int) -> int:
    """Return the length without an input for it: half a spectrum stands for a whole one."""
    half = write.attribute("onesided", 0) and write.attribute("inverse", 0)
    return 2 * (size - 1) if half else size


def _matrix(size: int, parts: int, count: int, half: bool, inverse: bool) -> Array | None:
    """Return rows of (element, part), columns of (frequency, part); None if it is too large."""
    results = count // 2 + 1 if half and not inverse else count
    if size * parts * results * 2 > _MOST:
        return None
    one = np.eye(size)
    given = np.stack([one, 1j * one][:parts], 1).reshape(size * parts, size)
    if half and inverse:  # the other half of the spectrum is the conjugate
        return np.fft.irfft(given, count)
    found = (np.fft.ifft if inverse else np.fft.fft)(given, count)[:, :results]
    return np.stack([found.real, found.imag], -1).reshape(size * parts, -1)


def _multiplied(write: Writer, value: str, front: Sequence[int], matrix: Array, parts: int) -> str:
    rows, columns = matrix.shape
    flat = write.reshape(value, [*front, rows])
    found = write.op("MatMul", flat, write.own(matrix, "turns"))
    return write.reshape(found, [*front, columns // parts, parts])
