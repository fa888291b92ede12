"""Operators of torch that ONNX lacks, as nodes that the host runs with torch itself.

Such a node has the domain :data:`DOMAIN` and the operator's full name as its type. Its attribute
``call`` has the arguments as JSON; operands stand there by number. Complex tensors are pairs of
real numbers along a last axis, as everywhere in a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from ..graph.stages import stages
from .declared import inferred
from .names import graphs, outer_reads

#: The domain of the nodes.
DOMAIN = "pycompiler.torch"
#: The attribute with the arguments.
CALL = "call"
#: Where torch has operators without side effects.
_PLACES = ("aten", "prims")

_Arrays = dict[str, NDArray[Any]]


def has_calls(model: onnx.ModelProto) -> bool:
    """Whether a node of the model, or of one of its bodies, calls torch."""
    return any(node.domain == DOMAIN for part in graphs(model.graph) for node in part.node)


class CallingSession:
    """A model with calls, cut into stages: each is a model without calls, or calls alone.

    ``start`` makes a session of a model without calls.
    """

    def __init__(self, model: onnx.ModelProto, start: Callable[[onnx.ModelProto], Any]):
        model = inferred(model)
        graph = model.graph
        self._outputs = [info.name for info in graph.output]
        self._constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
        makers = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
        reads = [[*node.input, *outer_reads(node)] for node in graph.node]
        plain = [node.domain != DOMAIN for node in graph.node]
        found = stages(plain, [[makers[n] for n in names if n in makers] for names in reads])
        self._stages: list[tuple[Any, list[str], Sequence[Any]]] = []
        for stage in sorted(set(found)):
            own = [at for at, number in enumerate(found) if number == stage]
            nodes = [graph.node[at] for at in own]
            session, needs, results = None, nodes, [n for node in nodes for n in node.output if n]
            if plain[own[0]]:
                later = {n for at, names in enumerate(reads) if found[at] > stage for n in names}
                results = [name for name in results if name in later | set(self._outputs)]
                part = _part(model, nodes, results)
                session, needs = start(part), [port.name for port in part.graph.input]
            self._stages.append((session, results, needs))

    def run(self, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the results in order. Raises what a stage raises, ImportError without torch."""
        known: _Arrays = {**self._constants, **feed}
        for session, results, needs in self._stages:
            if session is None:
                for node in needs:
                    known |= _called(node, [known[name] for name in node.input])
                continue
            given = {name: known[name] for name in needs}
            known |= zip(results, session.run(given), strict=True)
        return [known[name] for name in self._outputs]


def _part(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], results: Iterable[str]
) -> onnx.ModelProto:
    """Return a model of some nodes, which reads what they do not make."""
    graph = model.graph
    infos = {info.name: info for info in (*graph.input, *graph.value_info, *graph.output)}
    made = {name for node in nodes for name in node.output}
    read = dict.fromkeys(n for node in nodes for n in (*node.input, *outer_reads(node)) if n)
    constants = [tensor for tensor in graph.initializer if tensor.name in read]
    known = made | {tensor.name for tensor in constants}
    part = onnx.helper.make_graph(
        nodes,
        "part",
        [infos[name] for name in read if name not in known],
        [infos.get(name, onnx.ValueInfoProto(name=name)) for name in results],
        constants,
        value_info=[infos[name] for name in made if name in infos and name not in results],
    )
    out = onnx.helper.make_model(part, opset_imports=model.opset_import)
    out.ir_version = model.ir_version
    return out


def _called(node: onnx.NodeProto, operands: Sequence[NDArray[Any]]) -> _Arrays:
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
