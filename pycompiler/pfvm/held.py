"""Constants that are held outside of a model while it is compiled, so that the model stays small.

A tensor of many elements keeps its type and shape in the model, and names its data, as external
data of ONNX does. The data stays where it is, in torch's storage or in a message of its own: it is
neither copied nor serialized with the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from .declared import MOST

Array = NDArray[Any]

_HELD: ContextVar[dict[str, Array] | None] = ContextVar("held", default=None)


@contextmanager
def holding() -> Iterator[None]:
    """Let :func:`tensor_of` and :func:`to_proto` hold data, until the end of the context."""
    before = _HELD.set({})
    try:
        yield
    finally:
        _HELD.reset(before)


def tensor_of(array: Array, name: str) -> onnx.TensorProto:
    """Return a tensor with the data of ``array``, which must not change."""
    held = _HELD.get()
    if held is None or array.size <= MOST or array.dtype.hasobject:
        return numpy_helper.from_array(array, name)
    tensor = onnx.TensorProto(name=name, dims=array.shape, data_location=onnx.TensorProto.EXTERNAL)
    tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    tensor.external_data.add(key="location", value=_hold(array, held))
    return tensor


def _hold(array: Array, held: dict[str, Array]) -> str:
    key = f"held {len(held)}"
    held[key] = np.broadcast_to(array, array.shape)  # a view that nobody may write
    return key


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
    plain = np.ascontiguousarray(array).reshape(-1)
    digest.update(plain.tobytes() if plain.dtype.hasobject else plain.view(np.uint8).data)
    return digest.hexdigest()


def hold(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the data of its own tensors held; ``model`` is unchanged."""
    out = deepcopy(model)
    for tensor in out.graph.initializer:
        tensor.CopyFrom(tensor_of(array_of(tensor), tensor.name))
    return out


def whole(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with all its data inside; itself if none is held."""
    return _filled(model, lambda tensor: numpy_helper.from_array(array_of(tensor), tensor.name))


def without_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with tensors of no elements in place of those whose data is held."""
    return _filled(model, lambda t: onnx.TensorProto(name=t.name, data_type=t.data_type, dims=[0]))


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
        assert held is not None
        if tensor is not None and tensor.size > MOST and tensor.dtype is not ir.DataType.STRING:
            key, shape = _hold(tensor.numpy(), held), ir.Shape(tensor.shape.numpy())
            value.const_value = ir.ExternalTensor(
                key, None, None, tensor.dtype, shape=shape, name=value.name or "", base_dir=""
            )
    return ir.to_proto(model)
