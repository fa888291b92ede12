"""New values of registered values that the program writes over the old ones.

Such a new value gets the DRAM words of the old one. So nothing may read the old value once the
first word of the new one is written: neither the device nor the host nor the caller.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..graph.graph import Location, MNGraph, Side
from ..layers.split_concat import CONCAT, SPLIT, slices_of
from ..pfvm.device_functions import STORE


def written_in_place(graph: MNGraph, renewed: Mapping[str, str]) -> dict[str, str]:
    """Return, by new value, the old value that it overwrites in DRAM.

    ``renewed`` maps the key of an output to the old value that it replaces. A new value overwrites
    the old one only if the device makes it and both have the same order of elements.
    """
    order = _Order(graph)
    given = [name for _, name in graph.outputs]
    stores = {one.outputs[0]: one.inputs[0] for one in graph.device_nodes() if one.op == STORE}
    for key, new in graph.outputs:
        old = renewed.get(key)
        # The caller gets an output, and another registered value its copy, after the call.
        if old is None or new in stores or old in given or given.count(new) > 1:
            continue
        if _alike(graph, new, old) and order.read_before(old, new):
            stores[new] = old
    return stores


def _alike(graph: MNGraph, new: str, old: str) -> bool:
    """Whether both values lie in DRAM in the same order."""
    device = graph.device_values()
    if new not in device or old not in device:
        return False
    a, b = graph.values[new], graph.values[old]
    alike = (a.type, a.dtype, a.layout) == (b.type, b.dtype, b.layout)
    return alike and a.location is b.location is Location.DRAM


class _Order:
    """When the words of values are read and written, by the numbers of nodes."""

    def __init__(self, graph: MNGraph):
        self._slices: dict[str, tuple[str, ...]] = {}
        self._read: dict[str, int] = {}
        self._written: dict[str, int] = {}
        for number, node in enumerate(graph.nodes):
            if node.op in (SPLIT, CONCAT):  # they have no code
                whole, parts = slices_of(node)
                self._slices[whole] = parts
                continue
            self._read |= dict.fromkeys(node.inputs, number)
            if node.side is Side.DEVICE:
                self._written |= dict.fromkeys(node.outputs, number)

    def read_before(self, old: str, new: str) -> bool:
        """Whether each word of ``old`` is read for the last time before ``new`` overwrites it."""
        parts = self._slices.get(new, (new,))
        if any(part not in self._written for part in parts):
            return False
        first = min(self._written[part] for part in parts)
        others = self._slices.get(old, ())
        if len(others) != len(parts):
            return max(self._last_read(name) for name in (old, *others)) < first
        # Each slice of the new value has the address of the same slice of the old one.
        pairs = zip(others, parts, strict=True)
        apart = all(self._last_read(other) < self._written[part] for other, part in pairs)
        return apart and self._last_read(old) < first

    def _last_read(self, name: str) -> int:
        return self._read.get(name, -1)
