"""What a piece costs on the device, and what the host would need for the same work."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

import numpy as np

from ..graph.dtypes import numpy_dtype
from ..report.bound import node_multiply_adds
from .source import Source


@dataclass(frozen=True)
class Costs:
    """The rates of a host and of its way to the board.

    The defaults are those of one core of a server with a PCIe slot of 16 lanes; measure your own.
    ``host_multiply_adds`` and ``host_elements`` are per second: products, and elements of the
    results of all other operators. ``bandwidth`` is in bytes per second, for either direction.
    ``launch`` is the seconds that every run of a piece costs on top.
    """

    host_multiply_adds: float = 5e10
    host_elements: float = 1e9
    bandwidth: float = 1.2e10
    launch: float = 1e-5


@dataclass(frozen=True)
class PieceCost:
    """The cost of one piece; times in seconds.

    ``bytes_moved`` are those of its inputs and outputs, each once. Constants lie on the device.
    """

    bytes_moved: int
    host: float
    device: float
    transfer: float

    @property
    def gain(self) -> float:
        """How much faster the device computes the piece; below 0 if it is slower."""
        return self.host - self.device

    def ratio(self) -> float:
        """Return the transfer over the gain; infinite where nothing is gained."""
        return self.transfer / self.gain if self.gain > 0 else float("inf")


def cost_of(
    source: Source, numbers: Collection[int], seconds_on_device: float, costs: Costs
) -> PieceCost:
    """Return the cost of the piece that has the nodes ``numbers``."""
    inputs, outputs = source.ends(numbers)
    moved = sum(_bytes(source, name) for name in (*inputs, *outputs))
    return PieceCost(
        moved,
        host_seconds(source, numbers, costs),
        seconds_on_device,
        moved / costs.bandwidth + costs.launch,
    )


def host_seconds(source: Source, numbers: Collection[int], costs: Costs) -> float:
    """Return how long the host needs for some nodes. The work in bodies is not counted."""
    seconds = 0.0
    for number in numbers:
        node = source.nodes[number]
        adds = node_multiply_adds(node, source.types)
        made = sum(prod(source.types[name].shape) for name in node.output if name)
        seconds += adds / costs.host_multiply_adds if adds else made / costs.host_elements
    return seconds


def _bytes(source: Source, name: str) -> int:
    type = source.types[name]
    return prod(type.shape) * np.dtype(numpy_dtype(type.elem)).itemsize
