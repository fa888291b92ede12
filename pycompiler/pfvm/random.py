"""Operators that make random numbers: no pass may fold them or merge two of them.

onnx-ir, onnxscript and onnxruntime treat all of these operators as random except Bernoulli and
Dropout. While passes of onnx-ir and onnxscript run, :func:`hidden` gives nodes of these two
operators a domain that the passes do not know, and a unique attribute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir

from .names import nodes_of
from .opsets import STANDARD
from .replacing import Made, replace

#: Operators whose results differ from call to call.
RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
_DROPOUT = "Dropout"
#: The random operators that the libraries' passes treat as functions of their inputs.
_UNKNOWN = ("Bernoulli", _DROPOUT)
_TRAINING = 2  # the input of Dropout that switches it on
_DOMAIN, _NUMBER = "pycompiler.random", "pycompiler_number"


def is_random(node: onnx.NodeProto, false: Collection[str] = ()) -> bool:
    """Whether ``node`` makes random numbers; values in ``false`` are known to be false."""
    if node.domain not in STANDARD:
        return False
    if node.op_type == _DROPOUT:
        given = node.input[_TRAINING] if len(node.input) > _TRAINING else ""
        return bool(given) and given not in false
    return node.op_type in RANDOM


def taken_for_functions(graph: onnx.GraphProto) -> bool:
    """Whether a graph or a body has random nodes that the libraries' passes do not know."""
    return any(is_random(node) and node.op_type in _UNKNOWN for node in nodes_of(graph))


@contextmanager
def hidden(model: ir.Model) -> Iterator[int]:
    """Hide those nodes from the libraries' passes in the body; yield their number.

    While they are hidden, no pass infers the types of their results.
    """
    found = _random_nodes(model)
    for number, node in enumerate(found):
        node.attributes[_NUMBER] = ir.AttrInt64(_NUMBER, number)
        node.domain = _DOMAIN
    try:
        yield len(found)
    finally:
        for node in _all_nodes(model):
            if node.domain == _DOMAIN:
                node.domain = ""
                node.attributes.pop(_NUMBER)


def write_out_bernoulli(model: ir.Model) -> None:
    """Write every Bernoulli as a comparison with random numbers, in place.

    onnxruntime runs the function body that ONNX gives for it, which swaps the chances of 0 and 1.
    """
    replace(_all_nodes(model), {"Bernoulli": _bernoulli})


def _bernoulli(node: ir.Node, made: Made) -> ir.Value | None:
    chance = node.inputs[0]
    if chance is None:
        return None
    wanted = node.attributes.get_int("dtype", int(chance.dtype or ir.DataType.FLOAT))
    if chance.dtype != ir.DataType.FLOAT:  # short floats have too few digits for small chances
        chance = made("Cast", chance, to=int(ir.DataType.FLOAT))
    seed = {name: fact for name, fact in node.attributes.items() if name == "seed"}
    return made(
        "Cast", made("Less", made("RandomUniformLike", chance, facts=seed), chance), to=wanted
    )


def _all_nodes(model: ir.Model) -> list[ir.Node]:
    parts: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    return [node for part in parts for node in ir.traversal.RecursiveGraphIterator(part)]


def _random_nodes(model: ir.Model) -> list[ir.Node]:
    nodes = (node for node in _all_nodes(model) if node.domain in STANDARD)
    return [node for node in nodes if node.op_type in _UNKNOWN and _makes_random(node)]


def _makes_random(node: ir.Node) -> bool:
    if node.op_type != _DROPOUT:
        return True
    given = node.inputs[_TRAINING] if len(node.inputs) > _TRAINING else None
    if given is None:
        return False
    tensor = ir.convenience.get_const_tensor(given)
    return tensor is None or bool(tensor.numpy().any())
