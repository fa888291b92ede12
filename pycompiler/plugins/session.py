"""A device in use: buffers, copies and kernels on streams, each checked before it is passed on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from ..errors import error
from ..graph.graph import TensorType
from ..pfvm.session import Array
from .interface import DeviceContext, Executor, Form, Kernel, Stream
from .kernel_cache import KernelCache
from .pool import Buffer, MemoryPool


class Session:
    """One context with a pool, streams and the kernels that were compiled for it.

    A stream is used by one thread of the host at a time. ``capacity`` is that of the pool.
    """

    def __init__(self, device: DeviceContext, capacity: int | None = None):
        self.device = device
        self.pool = MemoryPool(device, capacity)
        self._streams = 0
        self.stream = self.new_stream()
        self.kernels = None if device.kernels is None else KernelCache(device.kernels)
        self.graphs = None if device.graphs is None else KernelCache(device.graphs)

    def new_stream(self) -> Stream:
        """Return a stream without operations."""
        self._streams += 1
        return self.device.resources.new_stream(self.device, self._streams)

    def form(self, array: Array) -> Form:
        """Return the form of an array that no kernel has asked for. P0828."""
        return self.device.resources.form(type_of(array))

    def copy_in(self, array: Array, buffer: Buffer, form: Form, stream: Stream) -> Future[Any]:
        """Copy an array to the device. P0822, P0823, P0825."""
        _fits(buffer, form)
        buffer.writes(stream)
        resources, address = self.device.resources, buffer.address
        words = resources.encode(array, form)
        return stream.enqueue(lambda: resources.write(address, words))

    def copy_out(self, buffer: Buffer, form: Form, stream: Stream) -> Future[Array]:
        """Copy a tensor to the host. P0822, P0823, P0825."""
        _fits(buffer, form)
        buffer.reads(stream)
        resources, address = self.device.resources, buffer.address
        return stream.enqueue(lambda: resources.decode(resources.read(address, form), form))

    def launch(
        self,
        executor: Executor,
        kernel: Kernel,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        stream: Stream,
    ) -> Future[Any]:
        """Run a kernel on buffers. P0822, P0823, P0825."""
        for buffers, forms in ((inputs, kernel.inputs), (outputs, kernel.outputs)):
            if len(buffers) != len(forms):
                what = f"{len(buffers)} buffers"
                raise error("P0825", what=what, reason=f"the kernel has {len(forms)} tensors there")
            for buffer, form in zip(buffers, forms, strict=True):
                _fits(buffer, form)
        for buffer in inputs:
            buffer.reads(stream)
        for buffer in outputs:
            if buffer in inputs:
                reason = "a kernel may not write over its operands"
                raise error("P0825", what=f"memory at {buffer.address}", reason=reason)
            buffer.writes(stream)
        given, made = [b.address for b in inputs], [b.address for b in outputs]
        return stream.enqueue(lambda: executor.launch(kernel, given, made))

    def close(self) -> None:
        """Give the pool's memory back; the context stays."""
        self.pool.close()


def type_of(array: Array) -> TensorType:
    """Return the type of an array. P0828 if ONNX has no such elements."""
    import onnx
    from onnx import helper

    try:
        code = helper.np_dtype_to_tensor_dtype(array.dtype)
    except ValueError as problem:
        raise error("P0828", what=f"an array of {array.dtype}", reason=str(problem)) from problem
    return TensorType(onnx.TensorProto.DataType.Name(code).lower(), tuple(np.shape(array)))


def _fits(buffer: Buffer, form: Form) -> None:
    if form.size > buffer.size:
        reason = f"{form.size} {buffer.pool.unit} do not fit its {buffer.size}"
        raise error("P0825", what=f"memory at {buffer.address}", reason=reason)
