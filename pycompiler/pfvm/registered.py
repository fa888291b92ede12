"""Values of a model that may change between calls: registered parameters and buffers.

In the ONNX model such a value is an input with an initializer, which is its default. The model's
metadata maps the input to its registered name, which is empty if the value belongs to this model
alone. Passes must not treat the initializer as a constant, so they work on the model that
:func:`detach` returns.

A model that trains has the new values as outputs behind the caller's; see :func:`updates`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx
import onnx.numpy_helper

from .held import Array, tensor_of
from .metadata import read, record

_KEY = "pycompiler.registered"
_UPDATES = "pycompiler.updates"

#: The registered name of a value that no other function shares.
PRIVATE = ""


def registered(model: onnx.ModelProto) -> dict[str, str]:
    """Return the registered name of each registered value, in order."""
    return dict(read(model, _KEY, {}))


def updates(model: onnx.ModelProto) -> dict[str, str]:
    """Return, by output: the registered input whose new value it is."""
    return dict(read(model, _UPDATES, {}))


def mark_updates(model: onnx.ModelProto, inputs: Mapping[str, str]) -> None:
    """Record that more outputs are new values of registered ``inputs``."""
    if inputs:
        record(model, _UPDATES, {**updates(model), **inputs})


def mark(model: onnx.ModelProto, names: Mapping[str, str]) -> None:
    """Make the initializers that ``names`` maps to registered names inputs too."""
    if not names:
        return
    for tensor in model.graph.initializer:
        if tensor.name in names:
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            model.graph.input.append(info)
    record(model, _KEY, {**registered(model), **names})


def set_defaults(model: onnx.ModelProto, values: Callable[[str], Array]) -> None:
    """Set each shared default to the array that ``values`` returns for the registered name."""
    names = {value: name for value, name in registered(model).items() if name != PRIVATE}
    for tensor in model.graph.initializer:
        if tensor.name in names:
            array = values(names[tensor.name])
            tensor.CopyFrom(tensor_of(array, tensor.name))


def detach(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[onnx.TensorProto]]:
    """Return ``model`` with registered values as plain inputs, and their initializers."""
    names = registered(model)
    if not names:
        return model, []
    out = onnx.ModelProto()
    out.CopyFrom(model)
    tensors = [tensor for tensor in model.graph.initializer if tensor.name in names]
    others = [tensor for tensor in model.graph.initializer if tensor.name not in names]
    del out.graph.initializer[:]
    out.graph.initializer.extend(others)
    return out, tensors


def attach(model: onnx.ModelProto, tensors: list[onnx.TensorProto]) -> onnx.ModelProto:
    """Add the initializers that :func:`detach` took back to ``model``."""
    model.graph.initializer.extend(tensors)
    return model
