"""GridSample: as a product with the weights that every sampled point gives to every place.

Along each axis, a point has a weight for every place: the places near it have one that is not 0.
So a place outside of the input has no weight, and nothing is picked by index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .writer import Writer

_CUBIC = -0.75  # the coefficient that torch and onnxruntime have
#: The names of modes before opset 20.
_MODES = {"bilinear": "linear", "bicubic": "cubic"}


@dataclass(frozen=True)
class _Points:
    """The points of all pictures along one axis of ``size`` places; ``at`` has a place for each.

    ``at`` is a value of shape (pictures, 1, points).
    """

    write: Writer
    at: str
    size: int
    corners: bool
    padding: str

    def inside(self, at: str) -> str:
        """Append what padding makes of places; places that count as zeros stay where they are."""
        if self.padding == "reflection":
            at = self._reflected(at)
        if self.padding == "zeros":
            return at
        return self.write.op("Clip", at, 0.0, self.size - 1.0)

    def _reflected(self, at: str) -> str:
        """Append the reflection at the centres of the outer places, or at their outer edges."""
        low, span = (0.0, self.size - 1.0) if self.corners else (-0.5, float(self.size))
        if not span:
            return self.write.op("Mul", at, 0.0)
        far = self.write.op("Abs", self.write.op("Sub", at, low))
        turns = self.write.op("Floor", self.write.op("Mul", far, 0.5 / span))
        rest = self.write.op("Sub", far, self.write.op("Mul", turns, 2 * span))
        back = self.write.op("Abs", self.write.op("Sub", rest, span))
        return self.write.op("Sub", low + span, back)

    def weights(self, mode: str) -> str:
        """Append the weights of all places, of shape (pictures, places, points)."""
        places = np.arange(self.size, dtype=np.float64).reshape(1, -1, 1)
        number = self.write.own(places, "places")
        if mode == "cubic":
            return self._cubic(number)
        at = self.inside(self.at)
        if mode == "nearest":
            same = self.write.op("Equal", self.write.op("Round", at), number)
            return self.write.op("Where", same, 1.0, 0.0)
        away = self.write.op("Abs", self.write.op("Sub", at, number))
        return self.write.op("Max", self.write.op("Sub", 1.0, away), 0.0)

    def _cubic(self, number: str) -> str:
        """Append weights of the four nearest places; padding moves each of them alone."""
        low = self.write.op("Floor", self.at)
        part = self.write.op("Sub", self.at, low)
        total = ""
        for tap in range(-1, 3):
            place = self.inside(self.write.op("Add", low, float(tap)))
            away = self.write.op("Abs", self.write.op("Sub", part, float(tap)))
            weight = self._polynomial(away, near=tap in (0, 1))
            same = self.write.op("Equal", place, number)
            own = self.write.op("Where", same, weight, 0.0)
            total = self.write.op("Add", total, own) if total else own
        return total

    def _polynomial(self, away: str, *, near: bool) -> str:
        """Append the weight of a place ``away`` from a point: at most 1 (``near``), else 1 to 2."""
        a = _CUBIC
        powers = (a + 2, -(a + 3), 0.0, 1.0) if near else (a, -5 * a, 8 * a, -4 * a)
        found = self.write.op("Add", self.write.op("Mul", away, powers[0]), powers[1])
        for power in powers[2:]:
            found = self.write.op("Add", self.write.op("Mul", found, away), power)
        return found


def grid_sample(write: Writer) -> str | bool:
    """Multiply the last axis, or all axes at once, by the weights of the points."""
    shape, grid = write.type(0).shape, write.type(1).shape
    rank = len(shape) - 2
    if write.target is None or rank < 1 or write.type(0).elem != write.type(1).elem:
        return False
    mode, padding = (
        write.attribute(name, default).decode()
        for name, default in (("mode", b"linear"), ("padding_mode", b"zeros"))
    )
    mode, corners = _MODES.get(mode, mode), bool(write.attribute("align_corners", 0))
    count, sizes, points = shape[0], shape[2:], prod(grid[1:-1])
    weights = []
    for axis, size in enumerate(sizes):
        # The last axis comes first in the grid.
        own = rank - 1 - axis
        at = write.cut(write.node.input[1], [rank + 1], [own], [own + 1])
        at = write.reshape(at, (count, 1, points))
        at = _places(write, at, size, corners)
        weights.append(_Points(write, at, size, corners, padding).weights(mode))
    joined = 1
    # All axes in one product: fewer elements if there are more channels than places in the last.
    if shape[1] >= sizes[-1]:
        joined = rank
    factor = _joined(write, weights[rank - joined :], sizes[rank - joined :], (count, points))
    front, back = sizes[: rank - joined], sizes[rank - joined :]
    value = write.reshape(write.node.input[0], (count, shape[1] * prod(front), prod(back)))
    value = write.op("MatMul", value, factor)
    value = write.reshape(value, (count, shape[1], *front, points))
    for axis in reversed(range(len(front))):
        wide = (count, *([1] * (axis + 1)), front[axis], points)
        value = write.op("Mul", value, write.reshape(weights[axis], wide))
        value = write.op("ReduceSum", value, write.ints([axis + 2]), keepdims=0)
    result = (count, shape[1], *grid[1:-1])
    return write.op("Identity", write.reshape(value, result))


def affine_grid(write: Writer) -> str | bool:
    """Multiply the places of a picture, from -1 to 1 along each axis, by the matrices."""
    size = write.data.get(write.node.input[1])
    if size is None:
        return False
    count, _, *sizes = (int(n) for n in size.reshape(-1))
    axes = []
    for length in sizes:
        step = np.arange(length) * 2.0 + (1 - length)
        apart = length - 1 if write.attribute("align_corners", 0) else length
        axes.append(step / apart if apart else step + 1)  # onnxruntime puts one row at the end
    # The last axis comes first in the grid.
    grid = [axis.reshape(-1) for axis in reversed(np.meshgrid(*axes, indexing="ij"))]
    places = write.own(np.stack([*grid, np.ones(prod(sizes))], -1), "places")
    turned = write.op("Transpose", write.node.input[0], perm=[0, 2, 1])
    found = write.op("MatMul", places, turned)
    result = (count, *sizes, len(sizes))
    return write.op("Identity", write.reshape(found, result))


def _places(write: Writer, at: str, size: int, corners: bool) -> str:
    """Append the places of coordinates from -1 to 1: between outer centres (corners) or edges."""
    at = write.op("Add", at, write.number(1.0))
    if corners:
        return write.op("Mul", at, write.number((size - 1) / 2))
    scaled = write.op("Mul", at, write.number(size / 2))
    return write.op("Sub", scaled, write.number(0.5))


def _joined(
    write: Writer, weights: Sequence[str], sizes: Sequence[int], ends: tuple[int, int]
) -> str:
    """Append the products of the weights of several axes, which become one axis."""
    count, points = ends
    found, length = weights[0], sizes[0]
    for own, size in zip(weights[1:], sizes[1:], strict=True):
        outer = write.reshape(found, (count, length, 1, points))
        inner = write.reshape(own, (count, 1, size, points))
        length *= size
        found = write.reshape(write.op("Mul", outer, inner), (count, length, points))
    return found
