"""Tiles of the spatial axes of a convolution, and the halo a tile takes from its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..device_functions import TILE_FACTS, TILES
from .writer import Writer


@dataclass(frozen=True)
class Axis:
    """One spatial axis: its size, and how the results read it.

    Result ``p`` and tap ``t`` meet at place ``p * stride + t * dilation - begin``. Places outside
    of the axis are padding: ``begin`` before it and ``end`` behind it.
    """

    size: int
    taps: int
    stride: int
    dilation: int
    begin: int
    end: int

    @property
    def extent(self) -> int:
        """The places from the first tap of a result to the last."""
        return (self.taps - 1) * self.dilation + 1

    @property
    def results(self) -> int:
        """The number of results along the axis."""
        return (self.size + self.begin + self.end - self.extent) // self.stride + 1

    @property
    def plain(self) -> bool:
        """Whether the axis has no padding, and no stride over a single tap."""
        return not self.begin and not self.end and (self.taps > 1 or self.stride == 1)

    @property
    def needed(self) -> int:
        """The places of the axis up to the last that a result reads."""
        last = (self.results - 1) * self.stride + self.extent - self.begin
        return max(1, min(self.size, last))


@dataclass(frozen=True)
class Tiling:
    """``count`` tiles with ``results`` each. ``places`` of the axis are a tile's own.

    ``reach`` are the places that the results of a tile read, ``stride`` those from one result to
    the next.
    """

    count: int
    results: int
    places: int
    reach: int
    stride: int


def tilings(axis: Axis) -> Iterator[Tiling]:
    """Yield ways to cut an axis; its halo comes from the next neighbours only."""
    if axis.taps == 1:
        # Only every ``stride``-th place is read, and the others are left out at once.
        yield Tiling(1, axis.results, axis.results, axis.results, 1)
        return
    whole = (axis.results - 1) * axis.stride + axis.extent
    yield Tiling(1, axis.results, whole, whole, axis.stride)
    count = 2
    while count <= axis.results:
        results = -(-max(axis.results, -(-axis.needed // axis.stride)) // count)
        places = results * axis.stride
        reach = (results - 1) * axis.stride + axis.extent
        if axis.begin:
            # A tile that its neighbours take places from reaches to its own last place.
            reach = max(reach, axis.begin + places)
        fits = (reach - axis.extent) // axis.stride + 1 == results
        if fits and axis.begin <= places and reach - axis.begin - places <= places:
            yield Tiling(count, results, places, reach, axis.stride)
        count *= 2


def split(
    write: Writer,
    value: str,
    shape: Sequence[int],
    chosen: Sequence[tuple[Axis, Tiling]],
    channels: int,
) -> str:
    """Append the operators that pad a value and cut its spatial axes; return the result's name.

    Zeros make up the ``channels`` that the value lacks. An axis with several tiles becomes two
    axes: tiles and their places.
    """
    spatial = range(2, len(shape))
    reads = [_read(axis, tiling) for axis, tiling in chosen]
    sizes, steps, late, pads = map(list, zip(*reads, strict=True))
    value, shape = _with_steps(write, value, shape, sizes, steps)
    cut = any(tiling.count > 1 for _, tiling in chosen)
    sizes = [-(-size // step) for size, step in zip(sizes, steps, strict=True)]
    more = (0, channels - shape[1])
    if any(step > 1 for step in late):
        early = [pad if step > 1 else (0, 0) for pad, step in zip(pads, late, strict=True)]
        value = write.padded(value, spatial, early, () if cut else shape)
        full = [size + sum(pad) for size, pad in zip(sizes, early, strict=True)]
        value = write.cut(value, spatial, [0] * len(full), full, late, (*shape[:2], *full))
        sizes = [-(-size // step) for size, step in zip(full, late, strict=True)]
        pads = [(0, 0) if step > 1 else pad for pad, step in zip(pads, late, strict=True)]
    if not cut:
        return write.padded(value, range(1, len(shape)), [more, *pads], shape)
    every = [(0, 0), more, *pads]
    tiles = {2 + n: tiling for n, (_, tiling) in enumerate(chosen) if tiling.count > 1}
    return tiled(write, value, (*shape[:2], *sizes), every, tiles)


def _with_steps(
    write: Writer, value: str, shape: Sequence[int], sizes: list[int], steps: list[int]
) -> tuple[str, Sequence[int]]:
    """Append what takes the first ``sizes`` places in ``steps``; return the shape before it."""
    apart = {
        2 + index: step
        for index, (size, step) in enumerate(zip(shape[2:], steps, strict=True))
        if step > 1 and size % step == 0 and -(-sizes[index] // step) == size // step
    }
    if apart:
        value = write.decimated(value, shape, apart)
        shape = [size // apart.get(axis, 1) for axis, size in enumerate(shape)]
        sizes = [shape[2 + n] if 2 + n in apart else size for n, size in enumerate(sizes)]
        steps = [1 if 2 + n in apart else step for n, step in enumerate(steps)]
    if [*sizes, *steps] != [*shape[2:], *[1] * len(steps)]:
        spatial = range(2, len(shape))
        value = write.cut(value, spatial, [0] * len(sizes), sizes, steps, shape)
    return value, shape


def _read(axis: Axis, tiling: Tiling) -> tuple[int, int, int, tuple[int, int]]:
    """Return how many places are read, their steps before and behind the padding, and that.

    Places behind the last one that is read are left out.
    """
    if tiling.count > 1:
        size, steps = min(axis.size, tiling.count * tiling.places), (1, 1)
        whole = (tiling.count - 1) * tiling.places + tiling.reach
    elif axis.taps > 1:
        size, steps, whole = axis.needed, (1, 1), tiling.reach
    else:
        size, whole = axis.needed, (axis.results - 1) * axis.stride + 1
        late = axis.begin or whole > size
        steps = (1, axis.stride) if late else (axis.stride, 1)
    return size, *steps, (axis.begin, max(0, whole - axis.begin - size))


def tiled(
    write: Writer,
    value: str,
    shape: Sequence[int],
    pads: Sequence[tuple[int, int]],
    tiles: Mapping[int, Tiling],
) -> str:
    """Append zeros at the ends of axes, and ``tiles`` of axes, as one operator of the device."""
    rows = [
        (axis, tile.count, tile.places, pad[0], tile.reach)
        if (tile := tiles.get(axis))
        else (axis, 1, size, pad[0], size + sum(pad))
        for axis, (size, pad) in enumerate(zip(shape, pads, strict=True))
        if any(pad) or axis in tiles
    ]
    facts = dict(zip(TILE_FACTS, zip(*rows, strict=True), strict=True))
    with write.as_one(TILES, value, **facts):
        value = write.padded(value, range(len(shape)), pads)
        for axis in sorted(tiles, reverse=True):
            starts = np.arange(tiles[axis].count)[:, None] * tiles[axis].places
            places = write.constant(starts + np.arange(tiles[axis].reach), "tiles")
            value = write.op("Gather", value, places, axis=axis)
    return value
