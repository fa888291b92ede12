"""Tiles of the spatial axes of a convolution, and the halo a tile takes from its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        if axis.begin <= places and reach - axis.begin - places <= places:
            yield Tiling(count, results, places, reach, axis.stride)
        count *= 2


def split(
    write: Writer, value: str, shape: Sequence[int], chosen: Sequence[tuple[Axis, Tiling]]
) -> str:
    """Append the operators that pad a value and cut its spatial axes; return the result's name.

    An axis with several tiles becomes two axes: tiles and places.
    """
    spatial = range(2, len(shape))
    pads = [(0, 0)] * len(chosen)
    ends, steps = list(shape[2:]), [1] * len(chosen)
    for index, (axis, tiling) in enumerate(chosen):
        if tiling.count > 1:
            # Places behind the last one that is read must not make a tile of their own.
            ends[index] = min(axis.size, tiling.count * tiling.places)
            pads[index] = (0, tiling.count * tiling.places - ends[index])
            continue
        ends[index] = axis.needed
        filled = tiling.reach if axis.taps > 1 else (axis.results - 1) * axis.stride + 1
        pads[index] = (axis.begin, max(0, filled - axis.begin - axis.needed))
        if axis.taps == 1:
            steps[index] = axis.stride
    kept = [e == size for e, size in zip(ends, shape[2:], strict=True)]
    if not all(kept):
        value = write.cut(value, spatial, [0] * len(ends), ends)
    value = write.padded(value, spatial, pads, shape)
    if any(step > 1 for step in steps):
        full = [end + sum(pad) for end, pad in zip(ends, pads, strict=True)]
        value = write.cut(value, spatial, [0] * len(ends), full, steps)
    sizes: list[int] = []
    for (axis, tiling), end, pad in zip(chosen, ends, pads, strict=True):
        if tiling.count > 1:
            sizes += [tiling.count, tiling.places]
        else:
            sizes.append(axis.results if axis.taps == 1 else end + sum(pad))
    value = write.reshape(value, (*shape[:2], *sizes))
    place = 2
    for axis, tiling in chosen:
        if tiling.count == 1:
            place += 1
            continue
        value = _with_halo(write, value, place, axis, tiling)
        place += 2
    return value


def _with_halo(write: Writer, value: str, place: int, axis: Axis, tiling: Tiling) -> str:
    """Append what joins the tiles of axis ``place`` with the ends of their neighbours."""
    # The ends are cut out first: where tiles lie on units, only these places move between units.
    places = tiling.places
    before, behind = axis.begin, tiling.reach - axis.begin - places
    parts: list[str] = []
    if before > 0:
        ends = write.cut(value, [place + 1], [places - before], [places])
        parts.append(write.padded(ends, [place], [(1, -1)]))
    own = write.cut(value, [place + 1], [0], [places + behind]) if behind < 0 else value
    parts.append(own)
    if behind > 0:
        starts = write.cut(value, [place + 1], [0], [behind])
        parts.append(write.padded(starts, [place], [(-1, 1)]))
    return parts[0] if len(parts) == 1 else write.op("Concat", *parts, axis=place + 1)
