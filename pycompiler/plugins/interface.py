"""What a chip must bring: a context with resources and with executors of kernels or of graphs.

Addresses and sizes count units that the resource manager names, such as bytes. How elements lie in
memory is a plug-in's own business: a :class:`Form` names it, `encode` and `decode` go there and
back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import onnx
from numpy.typing import NDArray

from ..graph.graph import TensorType
from ..partitioning.source import Source, Unit
from ..pfvm.session import Array

#: The raw content of memory, in whatever array a plug-in likes.
Words = NDArray[Any]


@dataclass(frozen=True)
class Form:
    """How a tensor lies in a plug-in's memory: its type, its order as text, its size in units."""

    type: TensorType
    order: str
    size: int


@dataclass(eq=False)
class Kernel:
    """A compiled operator or graph. ``cycles`` is None if the chip cannot tell."""

    inputs: tuple[Form, ...]
    outputs: tuple[Form, ...]
    cycles: int | None = None


@dataclass(frozen=True, eq=False)
class Event:
    """A point of a stream: ``seen`` has the last operation of each stream before it."""

    seen: Mapping[Stream, int]
    native: Any


class Stream(ABC):
    """Operations that run one after the other.

    The bookkeeping here knows which operations of which streams lie before the next one. A chip
    with queues of its own fills in the four methods with an underscore.
    """

    def __init__(self, device: DeviceContext, number: int):
        self.device, self.number = device, number
        #: The number of operations so far; those up to ``done`` have ended, as the host knows.
        self.tick = self.done = 0
        self._seen: dict[Stream, int] = {}

    def enqueue(self, work: Callable[[], Any]) -> Future[Any]:
        """Add an operation; the result is that of ``work``."""
        self.tick += 1
        return self._enqueue(work)

    def record(self) -> Event:
        """Return an event after all operations so far."""
        return Event({**self._seen, self: self.tick}, self._record())

    def wait(self, event: Event) -> None:
        """Let all later operations run after an event of any stream of the same device."""
        for stream, tick in event.seen.items():
            self._seen[stream] = max(tick, self._seen.get(stream, 0))
        self._wait(event.native)

    def synchronize(self) -> None:
        """Wait in the host until all operations have ended; raises what one of them raised."""
        ended = {**self._seen, self: self.tick}
        self._synchronize()
        for stream, tick in ended.items():
            stream.done = max(tick, stream.done)

    def is_after(self, stream: Stream, tick: int) -> bool:
        """Whether the next operation runs after operation ``tick`` of ``stream``."""
        return self is stream or tick <= stream.done or tick <= self._seen.get(stream, 0)

    @abstractmethod
    def _enqueue(self, work: Callable[[], Any]) -> Future[Any]:
        """Add an operation behind all others of the stream."""

    @abstractmethod
    def _record(self) -> Any:
        """Return what :meth:`_wait` needs to wait for all operations so far."""

    @abstractmethod
    def _wait(self, native: Any) -> None:
        """Let all later operations wait for what :meth:`_record` returned."""

    @abstractmethod
    def _synchronize(self) -> None:
        """Wait until all operations have ended."""


class ResourceManager(ABC):
    """Memory of a chip, and copies to and from it.

    ``capacity`` counts units; regions begin at multiples of ``alignment``.
    """

    unit: str
    capacity: int
    alignment: int

    @abstractmethod
    def allocate(self, size: int) -> int:
        """Return the address of a new region. Called rarely: the pool cuts regions up. P0821."""

    @abstractmethod
    def free(self, address: int) -> None:
        """Give a region back."""

    @abstractmethod
    def form(self, type: TensorType) -> Form:
        """Return the form of a tensor that no kernel has asked for yet. P0828."""

    def same(self, one: Form, other: Form) -> bool:
        """Whether the words of one form can be read as those of another."""
        return one == other

    @abstractmethod
    def encode(self, array: Array, form: Form) -> Words:
        """Return an array as it lies in memory."""

    @abstractmethod
    def decode(self, words: Words, form: Form) -> Array:
        """Return what :meth:`encode` was given."""

    @abstractmethod
    def write(self, address: int, words: Words) -> None:
        """Copy from the host to the device, and return when it is done."""

    @abstractmethod
    def read(self, address: int, form: Form) -> Words:
        """Copy from the device to the host."""

    @abstractmethod
    def new_stream(self, device: DeviceContext, number: int) -> Stream:
        """Return a stream without operations (:class:`~.tasks.TaskStream` if the chip has none)."""


class Executor(ABC):
    """Compiles models to kernels, and runs them."""

    @abstractmethod
    def compile(self, model: onnx.ModelProto, given: Mapping[str, Form]) -> Kernel:
        """Return a kernel with the model's inputs and outputs, in their order.

        ``given`` are the forms that inputs have already: the kernel should take them, but need not.
        P0828 or another diagnostic if the chip does not take the model.
        """

    @abstractmethod
    def launch(self, kernel: Kernel, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run a kernel on the addresses of its tensors, and return when it is done."""


class GraphExecutor(Executor):
    """Graph mode: a whole model becomes one kernel, with its constants inside."""


class KernelExecutor(Executor):
    """Kernel mode: a model is split, and every part becomes a kernel."""

    def optimise(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Return a model with the same results that suits the chip better."""
        return model

    def split(self, source: Source) -> list[Unit]:
        """Return the parts of a model in order: a kernel for each. By default single operators."""
        return [Unit(node.op_type, (i,), source) for i, node in enumerate(source.nodes)]

    @abstractmethod
    def refusal(self, unit: Unit) -> str | None:
        """Return why the chip does not take a part of a model; None if it does."""


class DeviceContext(ABC):
    """A chip, or a part of one, that is ready for work.

    A plug-in is a function that returns one. ``graphs`` or ``kernels`` is None if the chip lacks
    that mode.
    """

    name: str
    resources: ResourceManager
    graphs: GraphExecutor | None = None
    kernels: KernelExecutor | None = None

    @abstractmethod
    def close(self) -> None:
        """Free everything; nothing of the context can be used afterwards."""
