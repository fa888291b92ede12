"""The chip's half words on the host: the emulator converts them.

Halves have no denormals and no NaN: exponent 0 is zero, an exponent of all ones is infinity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emu2._core import from_half, to_half


def halves_of(array: NDArray[np.generic]) -> NDArray[np.uint16]:
    """Round numbers to nearest, ties to even.

    Too large numbers and NaN become infinity, too small numbers zero.
    """
    return to_half(np.ascontiguousarray(array, np.float32).reshape(-1)).reshape(array.shape)


def singles_of(words: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return the singles that equal half words."""
    return from_half(np.ascontiguousarray(words, np.uint16).reshape(-1)).reshape(words.shape)


def fits_halves(array: NDArray[np.generic]) -> bool:
    """Whether halves turn no element into infinity or zero that is not so already."""
    singles = array.astype(np.float32)
    rounded = singles_of(halves_of(singles))
    return not ((rounded == 0) & (singles != 0) | np.isinf(rounded) & ~np.isinf(singles)).any()
