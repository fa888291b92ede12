"""The chip's half words on the host.

Halves have no denormals and no NaN: exponent 0 is zero, an exponent of all ones is infinity.
Rounding is to nearest, ties to even, like the chip's own conversion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..machine import Target

_SINGLE = np.finfo(np.float32)
_SINGLE_SIGN = _SINGLE.nexp + _SINGLE.nmant
_MAGNITUDE = (1 << _SINGLE_SIGN) - 1


def _bias(exponent: int) -> int:
    return (1 << exponent - 1) - 1


@dataclass(frozen=True)
class HalfFormat:
    """A half format: one sign bit, ``exponent`` bits of exponent, ``fraction`` bits of fraction."""

    exponent: int
    fraction: int

    @property
    def _dropped(self) -> int:
        """The fraction bits of a single that a half lacks."""
        return int(_SINGLE.nmant) - self.fraction

    @property
    def _rebias(self) -> int:
        """The exponent biases of single and half, subtracted, at the place of a half's exponent."""
        return (_bias(int(_SINGLE.nexp)) - _bias(self.exponent)) << self.fraction

    @property
    def _infinite(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def _sign(self) -> int:
        return self.exponent + self.fraction

    def to_half(self, array: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Round singles. Too large values and NaN become infinity, too small values zero."""
        bits = array.view(np.uint32).astype(np.int64)
        magnitude, dropped = bits & _MAGNITUDE, self._dropped
        rounded = (magnitude + (1 << dropped - 1) - 1 + (magnitude >> dropped & 1)) >> dropped
        half = np.clip(rounded - self._rebias, 0, self._infinite)
        half[half < 1 << self.fraction] = 0
        words: NDArray[np.uint16] = (half | bits >> _SINGLE_SIGN << self._sign).astype(np.uint16)
        return words

    def keeps(self, array: NDArray[np.generic]) -> bool:
        """Whether :meth:`to_half` turns no element into infinity or zero that is not so already."""
        singles = np.ascontiguousarray(array, np.float32)
        found = self.from_half(self.to_half(singles))
        lost = (found == 0) & (singles != 0) | np.isinf(found) & ~np.isinf(singles)
        return not lost.any()

    def from_half(self, words: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return the singles that equal the half words."""
        bits = words.astype(np.int64)
        magnitude = bits & (1 << self._sign) - 1
        single = magnitude + self._rebias << self._dropped
        single[magnitude < 1 << self.fraction] = 0
        single[magnitude >= self._infinite] = int(np.float32(np.inf).view(np.uint32))
        signed = (single | bits >> self._sign << _SINGLE_SIGN).astype(np.uint32)
        values: NDArray[np.float32] = signed.view(np.float32)
        return values


@lru_cache(maxsize=16)
def half_format(target: Target) -> HalfFormat:
    """Return the format of the halves of a machine."""
    return HalfFormat(*target.spec.formats["half"])
