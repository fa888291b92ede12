"""Rows of Fourier transforms."""

from __future__ import annotations

import random

import numpy as np
import torch
from operator_rows import REAL, WIDE, Row, Sample, Tensor, normal, signed, widened

from pycompiler.tolerance import SUM

MOST = 240  # elements


def _dft(rng: random.Random) -> Sample:
    """Real and complex signals, padded and cut, both directions, along each axis."""
    rank = rng.randint(2, 4)
    sizes = [rng.choice([1, 2, 3, 5, 6]) for _ in range(rank - 1)]
    while np.prod(sizes) > MOST // 2:
        sizes[sizes.index(max(sizes))] = 1
    half = rng.random() < 0.4
    parts = 1 if half or rng.random() < 0.3 else 2
    inverse = not half and rng.random() < 0.5
    axis = rng.randrange(rank - 1)
    count = rng.choice([sizes[axis], sizes[axis] + 2, max(1, sizes[axis] - 1)])
    x = normal(rng, (*sizes, parts))

    def function(x: Tensor, **_: Tensor) -> Tensor:
        whole = torch.complex(x[..., 0], x[..., 1] if parts == 2 else torch.zeros_like(x[..., 0]))
        if half:
            found = torch.fft.rfft(whole.real, count, axis)
        else:
            found = (torch.fft.ifft if inverse else torch.fft.fft)(whole, count, axis)
        return torch.view_as_real(found)

    operands = {"x": x, "n": np.array(count), "axis": np.array(signed(rng, axis, rank))}
    return Sample(
        operands,
        function,
        fixed=frozenset({"n", "axis"}),
        attributes={"inverse": int(inverse), "onesided": int(half)},
        terms=2 * count,
        scale=float(np.abs(x).max()),
        absolute=1e-5 * float(np.abs(x).max()),
    )


def _stft(rng: random.Random) -> Sample:
    """Frames with and without a window, half and whole spectra."""
    length, step = rng.randint(2, 8), rng.randint(1, 4)
    size = length + step * rng.randint(0, 4) + rng.randint(0, step - 1)
    half = rng.random() < 0.5
    x, window = normal(rng, (rng.randint(1, 3), size, 1)), normal(rng, (length,))
    windowed = rng.random() < 0.6

    def function(x: Tensor, window: Tensor | None = None, **_: Tensor) -> Tensor:
        frames = x[..., 0].unfold(1, length, step)
        frames = frames if window is None else frames * window
        found = torch.fft.rfft(frames) if half else torch.fft.fft(frames)
        return torch.view_as_real(found)

    operands = {
        "x": x,
        "step": np.array(step),
        "window": window if windowed else None,
        "length": np.array(length),
    }
    largest = float(np.abs(x).max()) * (float(np.abs(window).max()) if windowed else 1.0)
    return Sample(
        operands,
        function,
        fixed=frozenset({"step", "length", *(["window"] if rng.random() < 0.5 else [])}),
        attributes={"onesided": int(half)},
        terms=length + 1,
        scale=largest,
        absolute=1e-5 * largest,
    )


FLOAT, DOUBLE = "Float", "Double"
ROWS: tuple[Row, ...] = (
    Row("DFT", FLOAT, REAL, _dft, SUM, range(2, 5)),
    Row("STFT", FLOAT, REAL, _stft, SUM, range(3, 4)),
    Row("DFT", DOUBLE, WIDE, widened(_dft), SUM, range(2, 5)),
    Row("STFT", DOUBLE, WIDE, widened(_stft), SUM, range(3, 4)),
)
