"""The chip's half words on the host: 1 sign bit, 6 of exponent, 9 of fraction.

No denormals and no NaN: exponent 0 is zero, all ones is infinity. Rounding is to nearest, ties to
even, as the chip's own conversion does it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FRACTION, _SINGLE_FRACTION = 9, 23
_DROPPED = _SINGLE_FRACTION - _FRACTION
_REBIAS = (127 - 31) << _FRACTION
_INFINITE = 63 << _FRACTION
_SIGN = 15


def to_half(array: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Round singles. Too large becomes infinity, too small zero; NaN becomes infinity."""
    bits = array.view(np.uint32).astype(np.int64)
    magnitude = bits & 0x7FFFFFFF
    rounded = (magnitude + (1 << _DROPPED - 1) - 1 + (magnitude >> _DROPPED & 1)) >> _DROPPED
    half = np.clip(rounded - _REBIAS, 0, _INFINITE)
    half[half < 1 << _FRACTION] = 0
    words: NDArray[np.uint16] = (half | bits >> 31 << _SIGN).astype(np.uint16)
    return words


def from_half(words: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return the singles that are equal to half words."""
    bits = words.astype(np.int64)
    magnitude = bits & (1 << _SIGN) - 1
    single = magnitude + _REBIAS << _DROPPED
    single[magnitude < 1 << _FRACTION] = 0
    single[magnitude >= _INFINITE] = 0x7F800000
    values: NDArray[np.float32] = (single | bits >> _SIGN << 31).astype(np.uint32).view(np.float32)
    return values
