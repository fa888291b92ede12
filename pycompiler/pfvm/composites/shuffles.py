"""Moves between channels and pixels: DepthToSpace and SpaceToDepth."""

from __future__ import annotations

from .writer import Writer


def depth_to_space(write: Writer) -> str:
    """Move blocks of channels to neighbouring pixels."""
    batch, channels, rows, columns = write.type(0).shape
    block = int(write.attribute("blocksize", 0))
    rest = channels // block**2
    if write.attribute("mode", b"DCR") == b"DCR":
        apart, order = (batch, block, block, rest, rows, columns), (0, 3, 4, 1, 5, 2)
    else:
        apart, order = (batch, rest, block, block, rows, columns), (0, 1, 4, 2, 5, 3)
    return _shuffled(write, apart, order, (batch, rest, rows * block, columns * block))


def space_to_depth(write: Writer) -> str | bool:
    """Move the pixels of a block to channels."""
    batch, channels, rows, columns = write.type(0).shape
    block = int(write.attribute("blocksize", 0))
    down, right = rows // block, columns // block
    apart = (batch, channels, down, block, right, block)
    mode = write.attribute("mode", b"DCR")
    if mode not in _ORDERS:
        return False
    return _shuffled(write, apart, _ORDERS[mode], (batch, channels * block**2, down, right))


#: By the mode of SpaceToDepth: whether places in a block or channels come first.
_ORDERS = {b"DCR": (0, 3, 5, 1, 2, 4), b"CRD": (0, 1, 3, 5, 2, 4)}


def _shuffled(
    write: Writer, apart: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]
) -> str:
    split = write.op("Reshape", write.node.input[0], write.ints(apart))
    moved = write.op("Transpose", split, perm=order)
    return write.op("Reshape", moved, write.ints(shape))
