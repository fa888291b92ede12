"""Four ways to use memory, from no reuse to the best packing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..scheduler.address_search import Buffer, OutOfTimeError, best_fit, place
from .tensors import ACTIVATION, GRADIENT, WEIGHT_GRADIENT, Tensor


@dataclass(frozen=True)
class Use:
    """A way to use memory, the bytes that it needs, and the offset of each tensor."""

    name: str
    size: int
    offsets: dict[str, int]


def lower_bound(tensors: Sequence[Tensor]) -> int:
    """Return the most bytes that live at one time: no packing needs less."""
    changes: dict[int, int] = {}
    for tensor in tensors:
        changes[tensor.start] = changes.get(tensor.start, 0) + tensor.size
        changes[tensor.end] = changes.get(tensor.end, 0) - tensor.size
    return max(accumulate(changes[time] for time in sorted(changes)), default=0)


def packed(tensors: Sequence[Tensor], seconds: float = 10.0) -> tuple[dict[str, int], int]:
    """Return offsets of tensors, and the bytes that they need.

    If best fit does not reach the lower bound, an exact search follows, for about ``seconds``.
    """
    buffers = [Buffer(t.name, t.start, t.end, t.size) for t in tensors if t.size]
    offsets, size = best_fit(buffers)
    least = lower_bound(tensors)
    if size > least:
        try:
            found = place(buffers, least, seconds)
        except OutOfTimeError:
            found = None
        if found is not None:
            return found, least
    return offsets, size


def _of(tensors: Sequence[Tensor], *kinds: str) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor.kind in kinds]


def _stacked(tensors: Sequence[Tensor], base: int = 0) -> tuple[dict[str, int], int]:
    """Put tensors one above the other."""
    offsets = {}
    for tensor in tensors:
        offsets[tensor.name] = base
        base += tensor.size
    return offsets, base


def uses(tensors: Sequence[Tensor], seconds: float = 10.0) -> list[Use]:
    """Return the four ways: each needs no more than the one before it.

    The second keeps weight gradients to the end, where all updates follow. In the third each
    weight gradient lives until its update, and shares memory with the other gradients. In the last
    activations do too.
    """
    offsets, size = _stacked(tensors)
    found = [Use("no reuse", size, offsets)]
    offsets, size = _stacked(_of(tensors, ACTIVATION, WEIGHT_GRADIENT))
    more, extra = packed(_of(tensors, GRADIENT), seconds)
    offsets |= {name: size + offset for name, offset in more.items()}
    found.append(Use("gradients share memory", size + extra, offsets))
    offsets, size = _stacked(_of(tensors, ACTIVATION))
    more, extra = packed(_of(tensors, GRADIENT, WEIGHT_GRADIENT), seconds)
    offsets |= {name: size + offset for name, offset in more.items()}
    found.append(Use("immediate update", size + extra, offsets))
    offsets, size = packed(tensors, seconds)
    found.append(Use("best packing", size, offsets))
    return found
