"""Orders work for device and host into stages that alternate between the two.

All work of a stage runs together, so a stage is a convex set: no path leads out of it and back in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def stages(on_device: Sequence[bool], before: Sequence[Collection[int]]) -> list[int]:
    """Return the stage of every unit of work, counted from 0.

    Unit ``i`` reads the results of the units ``before[i]``, which have smaller numbers. No order
    has fewer stages on the device. Their number is the largest number of device parts on any path
    through the graph. Of two such orders, the one with fewer stages is used.
    """
    orders = [_from(first, on_device, before) for first in (True, False)]
    return min(orders, key=lambda order: _size(order, on_device))


def _from(first: bool, on_device: Sequence[bool], before: Sequence[Collection[int]]) -> list[int]:
    """Return the earliest stage of each unit if stage 0 is on the device (``first``) or not."""
    order: list[int] = []
    for side, sources in zip(on_device, before, strict=True):
        parity = 0 if side is first else 1
        for source in sources:
            parity = max(parity, order[source] + (on_device[source] is not side))
        order.append(parity)
    lowest = min(order, default=0)
    return [parity - lowest for parity in order]


def _size(order: Sequence[int], on_device: Sequence[bool]) -> tuple[int, int]:
    used = {stage for stage, side in zip(order, on_device, strict=True) if side}
    return len(used), len(set(order))
