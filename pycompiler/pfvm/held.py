"""Constants that are held outside of a model while it is compiled, so that the model stays small.

A tensor of many elements keeps its type and shape in the model, and names its data, as external
data of ONNX does. The data stays where it is, in torch's storage, in a message of its own or in a
file, which is mapped: it is neither copied nor serialized with the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from ..files import DATA, Content, pieces
from .declared import MOST

Array = NDArray[Any]

_HELD: ContextVar[dict[str, Array] | None] = ContextVar("held", default=None)


#: The most bytes of held data that a file of a model has inside. Writing and reading copies them
#: several times, and from 2 GiB on a message of protobuf cannot be written.
INSIDE = 1 << 26
#: In files beside a model, the data of a tensor begins at a multiple of so many bytes: a page.
_ALIGNED = 1 << 12


@contextmanager
def holding(more: Mapping[str, Array] | None = None) -> Iterator[None]:
    """Let :func:`tensor_of` and :func:`to_proto` hold data, until the end of the context.

    What is held around it, and what :func:`data_held` returned, in ``more``, are held too.
    """
    before = _HELD.set({**(_HELD.get() or {}), **(more or {})})
    try:
        yield
    finally:
        _HELD.reset(before)


def tensor_of(array: Array, name: str) -> onnx.TensorProto:
    """Return a tensor with the data of ``array``, which must not change."""
    held = _HELD.get()
    small = held is None or array.size <= MOST or array.dtype.hasobject
    if small or ir.DataType.from_numpy(array.dtype).bitwidth < 8:  # these share bytes
        return numpy_helper.from_array(array, name)
    assert held is not None
    tensor = onnx.TensorProto(name=name, dims=array.shape, data_location=onnx.TensorProto.EXTERNAL)
    tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    key = f"held {len(held)}"
    held[key] = np.broadcast_to(array, array.shape)  # a view that nobody may write
    tensor.external_data.add(key="location", value=key)
    return tensor


def _data(tensor: onnx.TensorProto) -> Array | None:
    places = tensor.external_data
    return (_HELD.get() or {}).get(places[0].value) if len(places) == 1 else None


def is_held(tensor: onnx.TensorProto) -> bool:
    """Whether the data of a tensor is held."""
    return _data(tensor) is not None


def array_of(tensor: onnx.TensorProto) -> Array:
    """Return the data of a tensor."""
    found = _data(tensor)
    return np.asarray(numpy_helper.to_array(tensor)) if found is None else found


def digest_of(array: Array) -> str:
    """Return a digest of type, shape and data."""
    digest = hashlib.sha256(f"{array.dtype}{array.shape}".encode())
    for piece in pieces([array.tobytes() if array.dtype.hasobject else array]):
        digest.update(piece)
    return digest.hexdigest()


def hold(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the data of its own tensors held; ``model`` is unchanged."""
    out = deepcopy(model)
    for tensor in out.graph.initializer:
        tensor.CopyFrom(tensor_of(array_of(tensor), tensor.name))
    return out


def with_data_inside(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """Return the tensor with its data inside, as functions need it: only a graph's may be held."""
    return numpy_helper.from_array(array_of(tensor), tensor.name) if is_held(tensor) else tensor


def whole(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with all its data inside; itself if none is held."""
    return _filled(model, with_data_inside)


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with copies of its held data, which may be that of a module in training."""
    return _filled(model, lambda tensor: tensor_of(array_of(tensor).copy(), tensor.name))


def without_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with tensors of no elements in place of those whose data is held."""
    return _filled(model, lambda t: onnx.TensorProto(name=t.name, data_type=t.data_type, dims=[0]))


def data_held(model: onnx.ModelProto) -> dict[str, Array]:
    """Return the data that the model holds, for :func:`holding` in another process."""
    held = filter(is_held, model.graph.initializer)
    return {tensor.external_data[0].value: array_of(tensor) for tensor in held}


def files_of(model: onnx.ModelProto, name: str) -> dict[str, Content]:
    """Return the file ``name`` of a model; if it holds much, with one beside it for the data."""
    if sum(array.nbytes for array in data_held(model).values()) <= INSIDE:
        return {name: bytes(whole(model).SerializeToString())}
    out, parts, end = deepcopy(model), list[bytes | Array](), 0
    for tensor in filter(is_held, out.graph.initializer):
        array = array_of(tensor)
        del tensor.external_data[:]
        facts = {"location": name + DATA, "offset": end, "length": array.nbytes}
        for key, value in facts.items():
            tensor.external_data.add(key=key, value=str(value))
        padding = bytes(-array.nbytes % _ALIGNED)
        parts, end = [*parts, array, padding], end + array.nbytes + len(padding)
    return {name: bytes(out.SerializeToString()), name + DATA: parts}


def with_data(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Give a model, in place, its external data, which lies in ``folder``.

    Data is mapped if it can be held. Raises what onnx raises for data that it cannot read.
    """
    mapped: list[tuple[onnx.TensorProto, onnx.TensorProto]] = []
    for tensor in model.graph.initializer if _HELD.get() is not None else ():
        found = ir.serde.deserialize_tensor(tensor, str(folder))
        # onnx reads, or refuses, everything that is no whole array in a file.
        if (
            isinstance(found, ir.ExternalTensor)
            and 0 < found.nbytes == found.length
            and Path(found.path).is_file()
        ):
            mapped.append((tensor, tensor_of(found.numpy(), tensor.name)))
            tensor.data_location = onnx.TensorProto.DEFAULT
    onnx.load_external_data_for_model(model, str(folder))
    for tensor, own in mapped:
        tensor.CopyFrom(own)
    return model


def _filled(
    model: onnx.ModelProto, made: Callable[[onnx.TensorProto], onnx.TensorProto]
) -> onnx.ModelProto:
    if not any(map(is_held, model.graph.initializer)):
        return model
    out = deepcopy(model)
    for tensor in out.graph.initializer:
        if is_held(tensor):
            tensor.CopyFrom(made(tensor))
    return out


def from_proto(model: onnx.ModelProto) -> ir.Model:
    """Return the model in onnx-ir, whose tensors have their data."""
    made = ir.from_proto(model)
    for tensor in filter(is_held, model.graph.initializer):
        value = made.graph.initializers[tensor.name]
        value.const_value = ir.tensor(array_of(tensor), name=tensor.name)
    return made


def to_proto(model: ir.Model) -> onnx.ModelProto:
    """Return the message of a model of onnx-ir."""
    held = _HELD.get()
    for value in model.graph.initializers.values() if held is not None else ():
        tensor = value.const_value
        if tensor is not None and tensor.size > MOST and tensor.dtype is not ir.DataType.STRING:
            made = tensor_of(tensor.numpy(), value.name or "")
            value.const_value = ir.serde.deserialize_tensor(made, "")
    return ir.to_proto(model)
