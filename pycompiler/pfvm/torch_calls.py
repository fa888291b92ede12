"""Operators of torch that ONNX lacks, as nodes that the host runs with torch itself.

Such a node has the domain :data:`DOMAIN` and the operator's full name as its type. Its attribute
``call`` has the arguments as JSON; operands stand there by number. Complex tensors are pairs of
real numbers along a last axis, as everywhere in a model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from .names import nodes_of

#: The domain of the nodes.
DOMAIN = "pycompiler.torch"
#: The attribute with the arguments.
CALL = "call"
#: Where torch has operators without side effects.
_PLACES = ("aten", "prims")


def has_calls(model: onnx.ModelProto) -> bool:
    """Whether a node of the model, or of one of its bodies, calls torch."""
    return any(node.domain == DOMAIN for node in nodes_of(model.graph))


def called(node: onnx.NodeProto, operands: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return what torch makes of a node's operands. ImportError without torch."""
    try:
        import torch
    except ImportError as problem:
        raise ImportError(f"{node.op_type} runs in torch, which is not installed") from problem

    def value(given: Any) -> Any:
        if isinstance(given, list):
            return [value(one) for one in given]
        if not isinstance(given, dict):
            return given
        (kind, content), *_ = given.items()
        if kind == "tensor":
            return _tensor(operands[content])
        if kind == "pairs":
            return torch.view_as_complex(_tensor(operands[content]))
        return complex(*content) if kind == "complex" else getattr(torch, content)

    call = json.loads(onnx.helper.get_node_attr_value(node, CALL))
    operator = _operator(node.op_type)
    with torch.no_grad():
        found = operator(*value(call["args"]), **{n: value(v) for n, v in call["kwargs"].items()})
    tensors = [found] if isinstance(found, torch.Tensor) else list(found)
    made = [tensors[place] for place in call["results"]]
    return {name: _array(tensor) for name, tensor in zip(node.output, made, strict=True)}


def _operator(name: str) -> Any:
    """Return an operator of torch that computes, and does nothing else. ValueError if it is not."""
    import torch

    place, _, rest = name.partition(".")
    packet, _, overload = rest.rpartition(".")
    try:
        if place not in _PLACES:
            raise AttributeError
        found = getattr(getattr(getattr(torch.ops, place), packet), overload)
        schema = found._schema
    except AttributeError:
        raise ValueError(f"torch {torch.__version__} has no operator {name}") from None
    if schema.is_mutable or any(argument.name == "filename" for argument in schema.arguments):
        raise ValueError(f"{name} does more than to compute")
    return found


def _tensor(array: NDArray[Any]) -> Any:
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array, order="C"))


def _array(tensor: Any) -> NDArray[Any]:
    import torch

    tensor = tensor.resolve_conj().resolve_neg()
    tensor = tensor.clone() if tensor._is_zerotensor() else tensor
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        halves: NDArray[Any] = tensor.contiguous().view(torch.int16).numpy()
        return halves.view(ml_dtypes.bfloat16)
    return np.asarray(tensor.numpy())
