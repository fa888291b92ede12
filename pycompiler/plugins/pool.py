"""A memory pool: cuts one region of a device into buffers, and notices wrong uses of them.

A buffer that is freed on a stream is free for that stream at once, and for others as soon as these
run after it. So a free buffer is never written while an earlier operation still reads it.
"""

from __future__ import annotations

import threading

from ..errors import error
from .interface import DeviceContext, Stream

#: The last operation of each stream that used some memory; None if there is none.
_Uses = dict[Stream, int] | None


class Buffer:
    """Memory of a device. The pool frees it; after that, every use is an error."""

    # These stand here, and not in every buffer, because it makes an allocation faster.
    _live = True
    _writer: tuple[Stream, int] | None = None
    #: These come before the next write. In a new buffer, they used its memory before it was freed.
    _readers: _Uses = None

    def __init__(self, pool: MemoryPool, address: int, size: int):
        self.pool, self._address, self.size = pool, address, size

    @property
    def address(self) -> int:
        """The address of its first unit. P0823 after it was freed."""
        if not self._live:
            raise error("P0823", what=f"{self.size} {self.pool.unit} at {self._address}")
        return self._address

    def reads(self, stream: Stream) -> None:
        """Note that the next operation of a stream reads it. P0822, P0823."""
        self._check(stream, self._writer)
        if self._readers is None:
            self._readers = {}
        self._readers[stream] = stream.tick + 1

    def writes(self, stream: Stream) -> None:
        """Note that the next operation of a stream writes it. P0822, P0823."""
        self._check(stream, self._writer)
        for reader in (self._readers or {}).items():
            self._check(stream, reader)
        self._writer, self._readers = (stream, stream.tick + 1), None

    def _check(self, stream: Stream, earlier: tuple[Stream, int] | None) -> None:
        at = self.address
        device = self.pool.device
        if stream.device is not device:
            reason = f"stream {stream.number} is one of {stream.device.name}, not of {device.name}"
            raise error("P0822", what=f"memory at {at}", reason=reason)
        if earlier is not None and not stream.is_after(*earlier):
            reason = (
                f"stream {stream.number} does not wait for operation {earlier[1]} of stream "
                f"{earlier[0].number}"
            )
            raise error("P0822", what=f"memory at {at}", reason=reason)

    def _uses(self) -> _Uses:
        if self._writer is None:
            return self._readers
        found = dict(self._readers or {})
        stream, tick = self._writer
        found[stream] = max(tick, found.get(stream, 0))
        return found


class MemoryPool:
    """Buffers of one device. ``capacity`` counts units; by default a quarter of the device's."""

    def __init__(self, device: DeviceContext, capacity: int | None = None):
        resources = device.resources
        self.device, self.unit = device, resources.unit
        self._align = resources.alignment
        self.capacity = (resources.capacity // 4 if capacity is None else capacity) // self._align
        self.capacity *= self._align
        self._base = resources.allocate(self.capacity)
        self._top = 0
        #: By size: free blocks, each with the operations that used it last.
        self._free: dict[int, list[tuple[int, _Uses]]] = {}
        #: The units in buffers now.
        self.used = 0
        self._lock = threading.Lock()
        self._closed = False

    def allocate(self, size: int, stream: Stream | None = None) -> Buffer:
        """Return a buffer, whose first use is on ``stream`` (None: the host). P0821, P0825."""
        rounded = -(-size // self._align) * self._align
        with self._lock:
            blocks = self._free.get(rounded)
            if blocks and (not blocks[-1][1] or _ended(blocks[-1][1], stream)):
                at, uses = blocks.pop()
            else:
                at, uses = self._found(size, rounded, stream)
            self.used += rounded
        buffer = Buffer(self, at, rounded)
        if uses:
            buffer._readers = uses
        return buffer

    def free(self, buffer: Buffer) -> None:
        """Take a buffer back. P0824 if it is free already or of another pool."""
        if buffer.pool is not self or not buffer._live:
            reason = "it is free already" if buffer.pool is self else "it is of another pool"
            raise error("P0824", what=f"{buffer.size} {self.unit}", reason=reason)
        with self._lock:
            buffer._live = False
            uses = buffer._uses() if buffer._writer or buffer._readers else None
            self._free.setdefault(buffer.size, []).append((buffer._address, uses))
            self.used -= buffer.size

    def close(self) -> None:
        """Give the region back to the device."""
        if not self._closed:
            self._closed = True
            self.device.resources.free(self._base)

    def _found(self, size: int, rounded: int, stream: Stream | None) -> tuple[int, _Uses]:
        """Return the place of a block that does not lie ready, and its uses."""
        if self._closed or size <= 0:
            reason = "the pool is closed" if self._closed else "buffers have at least one unit"
            raise error("P0825", what=f"{size} {self.unit}", reason=reason)
        blocks = self._free.get(rounded, [])
        for number, (at, uses) in enumerate(blocks):
            if _ended(uses, stream):
                del blocks[number]
                return at, uses
        if self._top + rounded <= self.capacity:
            self._top += rounded
            return self._base + self._top - rounded, None
        return self._merged(rounded), None

    def _merged(self, size: int) -> int:
        """Wait for all who used free blocks, join neighbours, and take the tightest one."""
        blocks = sorted((at, n, uses) for n, some in self._free.items() for at, uses in some)
        for stream in {stream for _, _, uses in blocks for stream in uses or ()}:
            stream.synchronize()
        joined: list[list[int]] = []
        for at, length, _ in blocks:
            if joined and sum(joined[-1]) == at:
                joined[-1][1] += length
            else:
                joined.append([at, length])
        if joined and sum(joined[-1]) == self._base + self._top:
            self._top = joined.pop()[0] - self._base
        self._free = {}
        fitting = [block for block in joined if block[1] >= size]
        found = min(fitting, key=lambda block: block[1], default=None)
        for block in joined:
            if block is found:
                block = [block[0] + size, block[1] - size]
            if block[1]:
                self._free.setdefault(block[1], []).append((block[0], None))
        if found is not None:
            return found[0]
        if self._top + size <= self.capacity:
            self._top += size
            return self._base + self._top - size
        name, unit = self.device.name, self.unit
        raise error(
            "P0821", device=name, size=size, unit=unit, used=self.used, capacity=self.capacity
        )


def _ended(uses: _Uses, stream: Stream | None) -> bool:
    """Whether the next operation of a stream runs after all uses."""
    for own, tick in (uses or {}).items():
        if tick > own.done if stream is None else not stream.is_after(own, tick):
            return False
    return True
