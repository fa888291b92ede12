"""Transforms, filters, pictures and scans."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .programs import program, uniform


@program("FFT, one axis", x=(45, 105))
def fft(xp: Any, x: Any) -> Any:
    """Transforms of real numbers, of length 3 * 5 * 7."""
    y = xp.fft.rfft(x)
    return xp.real(y), xp.imag(y)


@program("FFT of complex numbers", a=(45, 99), b=(45, 99))
def complex_fft(xp: Any, a: Any, b: Any) -> Any:
    """A filter: there, a product, and back, all complex."""
    x = a + 1j * b if xp is np else torch.complex(a, b)
    y = xp.fft.ifft(xp.fft.fft(x) * xp.fft.fft(x * x))
    return xp.real(y), xp.imag(y)


@program("FFT, two axes", x=(45, 63))
def fft_2d(xp: Any, x: Any) -> Any:
    """Poisson's equation on a torus: a transform, a division, and back."""
    y = xp.fft.rfft2(x)
    rows, columns = (
        2 - 2 * np.cos(2 * np.pi * f) for f in (np.fft.fftfreq(45), np.fft.rfftfreq(63))
    )
    symbol = 0.001 + rows[:, None] + columns
    if xp is not np:
        symbol = torch.from_numpy(symbol).to(x.dtype)
    return xp.fft.irfft2(y / symbol, x.shape)


@program("FFT, three axes", x=(15, 21, 9))
def fft_3d(xp: Any, x: Any) -> Any:
    """The energy of each wave of a block."""
    y = xp.fft.fftn(x)
    return xp.real(y) ** 2 + xp.imag(y) ** 2


@program("FFT of a prime length", x=(31, 61))
def prime(xp: Any, x: Any) -> Any:
    """A transform by the library of a length that has no factors."""
    y = xp.fft.fft(x)
    return xp.real(y), xp.imag(y)


def _by_library(xp: Any, x: Any) -> Any:
    y = np.fft.fft(x)
    return y.real, y.imag


@program("Bluestein", reference=_by_library, x=(31, 61))
def bluestein(xp: Any, x: Any) -> Any:
    """A transform of prime length as a convolution with chirps of length 128 (Bluestein)."""
    n, long = x.shape[1], 128
    k = np.arange(n)
    turn = np.exp(-1j * np.pi * (k * k % (2 * n)) / n)
    ring = np.zeros(long, complex)
    ring[:n], ring[-n + 1 :] = turn.conj(), turn.conj()[1:][::-1]
    chirp, kernel = (torch.from_numpy(t) for t in (turn, np.fft.fft(ring)))
    if x.dtype == torch.float32:
        chirp, kernel = chirp.to(torch.complex64), kernel.to(torch.complex64)
    y = torch.fft.ifft(torch.fft.fft(x * chirp, long) * kernel)[:, :n] * chirp
    return torch.real(y), torch.imag(y)


def _fir(xp: Any, x: Any, taps: Any) -> Any:
    n = taps.shape[0]
    return sum(taps[k] * x[:, k : x.shape[1] - n + 1 + k] for k in range(n))


@program("FIR", reference=_fir, x=(7, 2003), taps=(31,))
def fir(xp: Any, x: Any, taps: Any) -> Any:
    """A filter of 31 taps of seven signals."""
    return torch.nn.functional.conv1d(x[:, None], taps[None, None])[:, 0]


@program("median filter", x=(61, 67))
def median(xp: Any, x: Any) -> Any:
    """The median of nine neighbours by Paeth's network of exchanges."""
    v = [x[i : 59 + i, j : 65 + j] for i in range(3) for j in range(3)]

    def order(a: int, b: int) -> None:
        v[a], v[b] = xp.minimum(v[a], v[b]), xp.maximum(v[a], v[b])

    steps = "12 45 78 01 34 67 12 45 78 03 58 47 36 14 25 47 42 64 42"
    for pair in steps.split():
        order(int(pair[0]), int(pair[1]))
    return v[4]


@program("Sobel", x=(2, 91, 115))
def sobel(xp: Any, x: Any) -> Any:
    """The lengths of gradients of pictures."""
    right, left, below, above = x[:, :, 2:], x[:, :, :-2], x[:, 2:], x[:, :-2]
    gx = right[:, :-2] + 2 * right[:, 1:-1] + right[:, 2:] - left[:, :-2] - 2 * left[:, 1:-1]
    gx = gx - left[:, 2:]
    gy = below[:, :, :-2] + 2 * below[:, :, 1:-1] + below[:, :, 2:] - above[:, :, :-2]
    gy = gy - 2 * above[:, :, 1:-1] - above[:, :, 2:]
    return xp.sqrt(gx * gx + gy * gy)


@program("deriche", x=(13, 15))
def deriche(xp: Any, x: Any) -> Any:
    """A recursive smoothing filter of second order along rows, there and back (PolyBench)."""
    alpha = 0.25
    e = float(np.exp(-alpha))
    k = (1 - e) ** 2 / (1 + 2 * alpha * e - e * e)
    a1, a2, a3, a4 = k, k * e * (alpha - 1), k * e * (alpha + 1), -k * e * e
    b1, b2 = 2**-alpha, -(e * e)
    n = x.shape[1]
    none = xp.zeros_like(x[:, 0])
    there, y1, y2, x1 = [], none, none, none
    for j in range(n):
        y = a1 * x[:, j] + a2 * x1 + b1 * y1 + b2 * y2
        there.append(y)
        x1, y1, y2 = x[:, j], y, y1
    back, y1, y2, x1, x2 = [], none, none, none, none
    for j in range(n - 1, -1, -1):
        y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
        back.append(y)
        x1, x2, y1, y2 = x[:, j], x1, y, y1
    return xp.stack([a + b for a, b in zip(there, back[::-1], strict=True)], 1)


@program("Mandelbrot", x=uniform(87, 93, low=-2.0, high=0.5), y=uniform(87, 93, low=-1.2, high=1.2))
def mandelbrot(xp: Any, x: Any, y: Any) -> Any:
    """How many of ten steps z = z z + c stay inside of 2; those that left stand still."""
    a, b, count = xp.zeros_like(x), xp.zeros_like(x), xp.zeros_like(x)
    for _ in range(10):
        inside = a * a + b * b < 4
        count = count + xp.where(inside, xp.ones_like(a), xp.zeros_like(a))
        new = a * a - b * b + x
        b = xp.where(inside, 2 * a * b + y, b)
        a = xp.where(inside, new, a)
    return count


@program("scans", x=(53, 301))
def scans(xp: Any, x: Any) -> Any:
    """Sums of prefixes along both axes: the summed areas of a picture."""
    return xp.cumsum(xp.cumsum(x, 0), 1)


@program("linear recurrence by doubling", a=uniform(61, 63, low=-1.0), b=(61, 63))
def recurrence(xp: Any, a: Any, b: Any) -> Any:
    """x[k] = a[k] x[k - 1] + b[k] along rows, by Hillis and Steele's scan of pairs."""
    by = 1
    while by < a.shape[1]:
        pairs = a[:, by:] * b[:, :-by] + b[:, by:]
        b = xp.concatenate([b[:, :by], pairs], 1)
        a = xp.concatenate([a[:, :by], a[:, by:] * a[:, :-by]], 1)
        by *= 2
    return b


@program("reductions", x=(301, 17, 23))
def reductions(xp: Any, x: Any) -> Any:
    """Norms and extremes along single axes and of everything."""
    square = x * x
    return (
        xp.sqrt(xp.sum(square, 0)),
        xp.amax(x, 1),
        xp.sum(xp.abs(x), 2),
        xp.sqrt(xp.sum(square)),
        xp.amin(x),
    )
