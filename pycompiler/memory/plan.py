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
    layers = _Layers(model, types).all()
    read = set[str]().union(*(layer.reads for layer in layers))
    # What no layer reads is what the function returns.
    results = [name for layer in layers for name in layer.writes if name not in read]
    given = [value.name for value in model.graph.input if value.name in read]
    start, end = dict.fromkeys(given, 0), dict.fromkeys(given, 1)
    loss, first, last = len(layers), dict[str, int](), dict[str, int]()
    for time, layer in enumerate(layers):
        tensors = (*layer.reads, *layer.writes)
        start.update(dict.fromkeys(layer.writes, time))
        end.update(dict.fromkeys(tensors, time + 1))
        # Of the layers that add to a gradient, the last one does so first.
        first.update(dict.fromkeys(tensors, loss + 1 + 2 * (loss - 1 - time)))
    end.update(dict.fromkeys(results, loss + 1))
    first.update(dict.fromkeys(results, loss))

    def made(name: str, kind: str, start: int, end: int) -> Tensor:
        full = name if kind == ACTIVATION else f"gradient of {name}"
        return Tensor(full, kind, bytes_of(types[name], half=half), start, end)

    weights: list[Tensor] = []
    for back, layer in enumerate(reversed(layers)):
        time = loss + 1 + 2 * back
        end.update(dict.fromkeys(layer.kept, time + 1))
        last.update(dict.fromkeys((*layer.reads, *layer.writes), time + 1))
        for name in layer.parameters:
            if vectors or len(types[name].shape) > 1:
                weights.append(made(name, WEIGHT_GRADIENT, time, time + 2))
    activations = [made(name, ACTIVATION, start[name], end[name]) for name in start]
    gradients = [
        made(name, GRADIENT, first[name], last[name])
        for name in start
        if types[name].elem in _FLOATS and name in last and (inputs or name not in given)
    ]
    return [*activations, *reversed(gradients), *weights]


class _Layers:
    """The layers of a model, in the order of the operators that end them."""

    def __init__(self, model: onnx.ModelProto, types: dict[str, TensorType]):
        self._types = types
        self._constants = {t.name for t in model.graph.initializer} | set(registered(model))
        self._readers = Counter(name for node in model.graph.node for name in node.input)
        self._readers.update(value.name for value in model.graph.output)
        self._tensor: dict[str, str] = {}  # the tensor that holds a value
        self._layers: dict[str, _Layer] = {}  # by the tensor that they write
        self._products: dict[str, _Layer] = {}  # those into which more may go
        for node in model.graph.node:
            if node.op_type == "Constant" or self._constants.issuperset(filter(None, node.input)):
                self._constants.update(node.output)
            else:
                self._add(node)

    def all(self) -> list[_Layer]:
        """Return the layers; each reads a tensor once."""
        unique = {id(layer): layer for layer in self._layers.values()}
        for layer in unique.values():
            layer.reads = list(dict.fromkeys(self._tensor.get(n, n) for n in layer.reads))
        return list(unique.values())

    def _add(self, node: onnx.NodeProto) -> None:
        outputs = [name for name in node.output if name and self._readers[name]]
        captured = sorted({*reads_of(node)} - {*node.input})  # by the bodies of a control flow
        reads = [n for n in (*node.input, *captured) if n and n not in self._constants]
        operands = [self._tensor.get(name, name) for name in reads]
        if node.op_type in VIEWS:
            self._tensor.update(dict.fromkeys(outputs, operands[0]))
            return
        given = node.input[: _STATISTICS if node.op_type == "BatchNormalization" else None]
        own = [n for n in given if n in self._constants and _learns(self._types[n])]
        inner = self._products.get(operands[0])
        if node.op_type in _WITHIN and inner is not None and self._readers[node.input[0]] == 1:
            self._move(inner, operands[0], outputs[0])
            inner.parameters += own
            inner.kept.add(outputs[0])
        elif inner is None or not self._added(node, operands, outputs[0]):
            self._begin(node.op_type, _Layer(operands, outputs, own))

    def _added(self, node: onnx.NodeProto, operands: list[str], output: str) -> bool:
        """Whether the second product of a sum adds into the first; it then does so."""
        if node.op_type not in ("Add", "Sum") or len(operands) != 2:
            return False
        second = self._products.get(operands[1])
        if second is None or self._readers[node.input[1]] != 1:
            return False
        self._move(second, operands[1], output)
        second.reads.append(operands[0])
        del self._products[output]
        return True

    def _begin(self, op: str, layer: _Layer) -> None:
        of_operands, of_result = _READS.get(op, (True, True))
        layer.kept.update(layer.reads * of_operands, layer.writes * of_result)
        self._layers.update(dict.fromkeys(layer.writes, layer))
        if op in _PRODUCTS:
            self._products[layer.writes[0]] = layer

    def _move(self, layer: _Layer, old: str, new: str) -> None:
        """Let ``layer`` write ``new`` instead of ``old``; it runs as late as ``new`` was made."""
        layer.writes = [new]
        layer.kept.discard(old)
        del self._layers[old], self._products[old]
        self._layers[new] = self._products[new] = layer


def _learns(type: TensorType) -> bool:
    return type.elem in _FLOATS and prod(type.shape) > 1
