"""The host as a plug-in: memory is bytes, kernels are models in the host's ONNX runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from ..errors import error
from ..graph.dtypes import numpy_dtype
from ..graph.graph import TensorType
from ..partitioning.source import Unit
from ..pfvm.prepare import prepare, static_types
from ..pfvm.session import Array, HostSession
from .interface import (
    DeviceContext,
    Form,
    GraphExecutor,
    Kernel,
    KernelExecutor,
    ResourceManager,
    Stream,
    Words,
)
from .tasks import TaskPool, TaskStream

_CAPACITY = 1 << 32
_ALIGNMENT = 64


class HostMemory(ResourceManager):
    """Regions of bytes; an address is a number that no other region has."""

    unit, capacity, alignment = "bytes", _CAPACITY, _ALIGNMENT

    def __init__(self) -> None:
        self.tasks = TaskPool()
        self._regions: dict[int, Array] = {}
        self._next = _ALIGNMENT

    def allocate(self, size: int) -> int:
        """Return the address of a new region; the host gives memory when it is written."""
        held = sum(region.size for region in self._regions.values())
        if held + size > self.capacity:
            raise error(
                "P0821", device="host", size=size, unit=self.unit, used=held, capacity=self.capacity
            )
        address = self._next
        self._regions[address] = np.zeros(size, np.uint8)
        self._next += -(-size // _ALIGNMENT) * _ALIGNMENT
        return address

    def free(self, address: int) -> None:
        """Give a region back."""
        del self._regions[address]

    def form(self, type: TensorType) -> Form:
        """Return the form of a tensor: its elements in C order."""
        dtype = numpy_dtype(type.elem)
        return Form(type, "C", max(1, int(np.prod(type.shape, dtype=np.int64)) * dtype.itemsize))

    def encode(self, array: Array, form: Form) -> Words:
        """Return the bytes of an array."""
        flat = np.array(array, numpy_dtype(form.type.elem), order="C").reshape(-1)
        return flat.view(np.uint8)

    def decode(self, words: Words, form: Form) -> Array:
        """Return the array of some bytes."""
        count = int(np.prod(form.type.shape, dtype=np.int64))
        dtype = numpy_dtype(form.type.elem)
        return words[: count * dtype.itemsize].view(dtype).reshape(form.type.shape)

    def write(self, address: int, words: Words) -> None:
        """Copy bytes to an address."""
        region, at = self._at(address)
        region[at : at + words.size] = words

    def read(self, address: int, form: Form) -> Words:
        """Return a copy of the bytes at an address."""
        region, at = self._at(address)
        return region[at : at + form.size].copy()

    def new_stream(self, device: DeviceContext, number: int) -> Stream:
        """Return a stream of tasks."""
        return TaskStream(device, number, self.tasks)

    def _at(self, address: int) -> tuple[Array, int]:
        for first, region in self._regions.items():
            if first <= address < first + region.size:
                return region, address - first
        raise error("P0825", what=f"address {address}", reason="no region of the host has it")


class HostKernel(Kernel):
    """A model in the host's runtime."""

    session: HostSession


class HostExecutor(KernelExecutor, GraphExecutor):
    """Runs single operators and whole models alike."""

    def __init__(self, memory: HostMemory):
        self.memory = memory

    def refusal(self, unit: Unit) -> str | None:
        """Return None: what the host lacks, its compile refuses."""
        return None

    def compile(self, model: onnx.ModelProto, given: Mapping[str, Form]) -> Kernel:
        """Load a model into the runtime. P0602."""
        model = prepare(model)
        types = static_types(model)
        held = {tensor.name for tensor in model.graph.initializer}
        inputs, outputs = (
            tuple(self.memory.form(types[v.name]) for v in values if v.name not in held)
            for values in (model.graph.input, model.graph.output)
        )
        kernel = HostKernel(inputs, outputs)
        kernel.session = HostSession(model, "a kernel of the host")
        return kernel

    def launch(self, kernel: Kernel, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run the model on arrays at addresses."""
        assert isinstance(kernel, HostKernel)
        memory, keys = self.memory, kernel.session.input_keys
        arrays = [
            memory.decode(memory.read(at, form), form)
            for at, form in zip(inputs, kernel.inputs, strict=True)
        ]
        results = kernel.session.run(dict(zip(keys, arrays, strict=True)))
        for at, form, key in zip(outputs, kernel.outputs, kernel.session.output_keys, strict=True):
            memory.write(at, memory.encode(results[key], form))


class HostContext(DeviceContext):
    """The host, in both modes."""

    name = "host"

    def __init__(self) -> None:
        self.resources = self._memory = HostMemory()
        self.kernels = self.graphs = HostExecutor(self._memory)

    def close(self) -> None:
        """End the threads."""
        self._memory.tasks.close()


def host() -> HostContext:
    """Return the host as a device."""
    return HostContext()
