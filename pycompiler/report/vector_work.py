"""The work of a model for the slots of vectors, the ALU and the MAU, in cycles at least.

A slot takes a long word of every PE in a cycle. How many instructions a function needs for one is
asked of the program from which its code is made. What may become part of something else counts
nothing, see docs/compiler/README.md.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, ItemsView, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil, prod
from typing import Any

import onnx

from ..graph.dtypes import MNDtype, device_dtype
from ..graph.graph import TensorType
from ..layers.elementwise import program_of
from ..layers.functions.elementwise_function import REALS, UNARY
from ..layers.functions.table import FUNCTIONS
from ..machine import Target
from ..pfvm.windows import windows_of

#: Functions whose code may vanish: a sign is part of what reads it, a conversion of what makes it.
_FREE = {"Neg", "Cast"}
#: Functions that become one with the function in front of them.
_JOINED = {"Reciprocal": "Sqrt"}
#: What other operators do at least with each element of their first input: a norm adds a square,
#: and scales; a softmax takes a power; a clip compares.
_EACH = {
    **dict.fromkeys(("Softmax", "LogSoftmax", "SoftmaxCrossEntropyLoss"), ("Exp",)),
    **dict.fromkeys(("LayerNormalization", "GroupNormalization"), ("Mul", "Mul")),
    **dict.fromkeys(("InstanceNormalization", "RMSNormalization"), ("Mul", "Mul")),
    "Mish": ("Exp",),
    "Clip": ("Max",),
}
#: A function, and for how many elements.
_Work = tuple[str, int]


def vector_cycles(
    model: onnx.ModelProto, types: Mapping[str, TensorType], target: Target, *, halves: bool
) -> int:
    """Return the cycles of the busier slot; ``halves`` says that floats may be halves.

    ``model`` is prepared, and ``types`` has the type of each of its values.
    """
    busy: defaultdict[str, Fraction] = defaultdict(Fraction)
    makers = {name: node.op_type for node in model.graph.node for name in node.output}
    outside = {tensor.name for tensor in (*model.graph.initializer, *model.graph.input)}
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx") or not node.input or node.input[0] not in types:
            continue
        given = device_dtype(types[node.input[0]].elem)
        if given not in REALS:
            continue
        facts = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        for op, count in _work(node, facts, types, makers, outside):
            short = halves and given is MNDtype.FLOAT and FUNCTIONS[op].halves
            dtype = MNDtype.HALF if short else given
            for unit, instructions in _instructions(op, dtype, facts):
                busy[unit] += Fraction(instructions * count * dtype.bits, MNDtype.LONG.bits)
    return ceil(max(busy.values(), default=0) / prod(target.pe_shape))


def _instructions(op: str, dtype: MNDtype, facts: Mapping[str, Any]) -> ItemsView[str, int]:
    """Return the instructions of each slot for a long word."""
    function = FUNCTIONS[op]
    inputs = function.arity.start if function.arity == UNARY else 2
    attributes = tuple((key, facts[key]) for key in sorted(function.attributes & facts.keys()))
    program = program_of(op, tuple(range(inputs)), (dtype,) * inputs, dtype, attributes)
    return Counter(one.unit for one in program.operations).items()


def _work(
    node: onnx.NodeProto,
    facts: Mapping[str, Any],
    types: Mapping[str, TensorType],
    makers: Mapping[str, str],
    outside: Collection[str],
) -> Iterator[_Work]:
    """Yield what a node does at least."""
    op, shape = node.op_type, types[node.input[0]].shape
    function = FUNCTIONS.get(op)
    if op in _EACH:
        yield from ((name, prod(shape)) for name in _EACH[op])
    elif op == "MaxPool":
        yield "Max", _compared(facts, shape, types[node.output[0]].shape)
    elif op == "Conv" and node.input[1] in outside:
        taps = types[node.input[1]].shape
        if 1 < facts.get("group", 1) == shape[1] and taps[1] == 1:
            result = types[node.output[0]].shape
            windows = windows_of({**facts, "kernel_shape": taps[2:]}, shape[2:], result[2:])
            pairs = (int((window.taps >= 0).sum()) for window in windows)
            yield "Mul", prod(result[:2]) * prod(pairs)
    elif function is None or function.arity != UNARY or function.style != "same" or op in _FREE:
        return
    elif makers.get(node.input[0]) != _JOINED.get(op, ""):
        yield op, prod(shape)


def _compared(facts: Mapping[str, Any], shape: Sequence[int], result: Sequence[int]) -> int:
    """Return the comparisons of a pool: one for each result, and all elements are in some."""
    windows = windows_of(facts, shape[2:], result[2:])
    taken = [{tuple(at for at in row if at >= 0) for row in w.taps.tolist()} for w in windows]
    read = prod(len(set().union(*places)) for places in taken)
    single = prod(sum(len(place) == 1 for place in places) for places in taken)
    results = prod(map(len, taken)) - single
    return prod(shape[:2]) * max(results, read - results - single)
