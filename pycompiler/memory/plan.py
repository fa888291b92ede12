"""What training a model would need: the tensors of its layers, forwards and backwards.

This counts layers, as a plan on paper does, and not the operators of a compiled step:

* A norm or an activation behind a convolution or product that nothing else reads is computed
  within it: together they are one layer with one tensor.
* Of two convolutions that are added, the second adds into the sum.
* Each tensor has a gradient of its size, from the first layer that adds to it to the layer that
  made the tensor.
* A layer's backward pass takes two steps: gradients, then the update of its own parameters.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import prod

import onnx

from ..errors import error
from ..graph.graph import TensorType
from ..pfvm.names import reads_of
from ..pfvm.prepare import static_types
from ..pfvm.registered import registered, updates
from .tensors import ACTIVATION, GRADIENT, VIEWS, WEIGHT_GRADIENT, Tensor, bytes_of

_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_WITHIN = frozenset(
    {"BatchNormalization", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Clip", "Gelu", "Elu", "Selu"}
)
_STATISTICS = 3  # the place of running statistics, which learn without a gradient
#: What the backward pass of an operator reads. Others read their operands and their result.
_OPERANDS, _RESULT, _NOTHING = (True, False), (False, True), (False, False)
_READS = {
    **dict.fromkeys(("Relu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Exp", "Sqrt"), _RESULT),
    **dict.fromkeys(("Add", "Sub", "Sum", "Neg", "Concat", "Split", "Slice", "Pad"), _NOTHING),
    **dict.fromkeys(("Transpose", "Expand", "ReduceSum", "ReduceMean", "Resize"), _NOTHING),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool"), _NOTHING),
    **dict.fromkeys(("Mul", "Div", "MatMul", "Gemm", "Conv", "ConvTranspose"), _OPERANDS),
}


@dataclass
class _Layer:
    reads: list[str]
    writes: list[str]
    parameters: list[str]
    kept: set[str] = field(default_factory=set)


_FLOATS = ("float", "double", "float16", "bfloat16")


def training_tensors(
    model: onnx.ModelProto, *, half: bool = False, vectors: bool = True, inputs: bool = False
) -> list[Tensor]:
    """Return the tensors of a training step of ``model``, which has static shapes and no updates.

    ``half`` counts 16 bits for each float32. ``vectors`` counts the gradients of biases and of
    the scales of norms too, ``inputs`` those of the function's inputs. P0118 for a model that
    trains already, P0103.
    """
    if updates(model):
        raise error("P0118", name="the model", type="a training step already")
    types = static_types(model)
    layers = _layers(model, types)
    given = [value.name for value in model.graph.input if value.name in _read(layers)]
    found = {name: types[name] for name in given}
    start = dict.fromkeys(given, 0)
    end = dict.fromkeys(given, 1)
    for time, layer in enumerate(layers):
        for name in layer.reads:
            end[name] = time + 1
        for name in layer.writes:
            start[name], end[name], found[name] = time, time + 1, types[name]
    loss = len(layers)
    for name in _results(model, layers):
        end[name] = loss + 1
    first: dict[str, int] = dict.fromkeys(_results(model, layers), loss)
    last: dict[str, int] = {}
    weights: list[Tensor] = []
    for back, layer in enumerate(reversed(layers)):
        time = loss + 1 + 2 * back
        for name in layer.kept:
            end[name] = time + 1
        for name in layer.writes:
            first.setdefault(name, time)
            last[name] = time + 1
        for name in layer.reads:
            first.setdefault(name, time)
            last[name] = time + 1
        for name in layer.parameters:
            if vectors or len(types[name].shape) > 1:
                size = bytes_of(types[name], half=half)
                full = f"gradient of {name}"
                weights.append(Tensor(full, WEIGHT_GRADIENT, size, time, time + 2))
    tensors = [
        Tensor(name, ACTIVATION, bytes_of(type, half=half), start[name], end[name])
        for name, type in found.items()
    ]
    gradients = [
        Tensor(f"gradient of {name}", GRADIENT, bytes_of(type, half=half), first[name], last[name])
        for name, type in found.items()
        if type.elem in _FLOATS and name in last and (inputs or name not in given)
    ]
    return [*tensors, *reversed(gradients), *weights]


def _read(layers: list[_Layer]) -> set[str]:
    return {name for layer in layers for name in layer.reads}


def _results(model: onnx.ModelProto, layers: list[_Layer]) -> list[str]:
    """Return the tensors that no layer reads: what the function returns."""
    read = _read(layers)
    return [name for layer in layers for name in layer.writes if name not in read]


def _layers(model: onnx.ModelProto, types: dict[str, TensorType]) -> list[_Layer]:
    constants = {t.name for t in model.graph.initializer} | set(registered(model))
    readers = Counter(name for node in model.graph.node for name in node.input)
    readers.update(value.name for value in model.graph.output)
    tensor: dict[str, str] = {}  # the tensor that holds a value
    layers: dict[str, _Layer] = {}  # by the tensor that they write
    products: dict[str, _Layer] = {}  # those into which more may go
    for node in model.graph.node:
        outputs = [name for name in node.output if name and readers[name]]
        if node.op_type == "Constant" or all(name in constants for name in node.input if name):
            constants.update(node.output)
            continue
        given = node.input
        if node.op_type == "BatchNormalization":
            given = given[:_STATISTICS]
        own = [name for name in given if name in constants and _learns(types[name])]
        captured = sorted({*reads_of(node)} - {*node.input})  # by the bodies of a control flow
        operands = [tensor.get(n, n) for n in (*node.input, *captured) if n and n not in constants]
        if node.op_type in VIEWS:
            tensor.update(dict.fromkeys(outputs, operands[0]))
            continue
        inner = products.get(operands[0])
        if node.op_type in _WITHIN and inner is not None and readers[node.input[0]] == 1:
            _move(inner, operands[0], outputs[0], layers, products)
            inner.parameters += own
            inner.kept.add(outputs[0])
            continue
        if node.op_type in ("Add", "Sum") and len(operands) == 2:
            second = products.get(operands[1])
            both = inner is not None and second is not None
            if both and second is not None and readers[node.input[1]] == 1:
                _move(second, operands[1], outputs[0], layers, products)
                second.reads.append(operands[0])
                del products[outputs[0]]
                continue
        layer = _Layer(operands, outputs, own)
        of_operands, of_result = _READS.get(node.op_type, (True, True))
        if of_operands:
            layer.kept.update(operands)
        if of_result:
            layer.kept.update(outputs)
        layers.update(dict.fromkeys(outputs, layer))
        if node.op_type in _PRODUCTS:
            products[outputs[0]] = layer
    unique = {id(layer): layer for layer in layers.values()}
    for layer in unique.values():
        layer.reads = list(dict.fromkeys(tensor.get(name, name) for name in layer.reads))
    return list(unique.values())


def _move(
    layer: _Layer, old: str, new: str, layers: dict[str, _Layer], products: dict[str, _Layer]
) -> None:
    """Let ``layer`` write ``new`` instead of ``old``; it runs as late as ``new`` was made."""
    layer.writes = [new]
    layer.kept.discard(old)
    del layers[old], products[old]
    layers[new] = products[new] = layer


def _learns(type: TensorType) -> bool:
    return type.elem in _FLOATS and prod(type.shape) > 1
