"""Finds registered values, such as key-value caches, of which a call renews a row.

The new value is a ScatterND or a TensorScatter of the old one, perhaps between Transposes. It is
made in LM. Of that, only what may have elements of the row goes to DRAM (MNCoreStore), into the
words of the old value. Where that cannot be, the whole value goes there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np
import onnx

from ..graph.graph import TensorType
from ..machine import Target
from .composites.picking import from_the_front
from .composites.scattering import SCATTERED
from .composites.writer import SMALL, Writer, axis_of
from .declared import constants
from .device_functions import STORE, with_functions
from .held import array_of
from .metadata import read, record
from .names import all_names, reads_of, rename
from .with_nodes import with_nodes

_WHOLE = "pycompiler.written_whole"
#: What ends the name of the new value in LM.
_READ = ".read"


def written_whole(model: onnx.ModelProto) -> dict[str, str]:
    """Return why values of which a call renews some rows are written as a whole, by value."""
    return dict(read(model, _WHOLE, {}))


def store_rows(
    model: onnx.ModelProto, types: dict[str, TensorType], renewed: Mapping[str, str], target: Target
) -> onnx.ModelProto:
    """Return the model with stores of rows; itself if there are none.

    ``renewed`` has, by output, the input whose new value it is. Others read what the scatter makes
    in LM, and need not wait for the store.
    """
    stores, whole = _stores(model, types, renewed, target)
    if whole:
        record(model, _WHOLE, whole)
    if not stores:
        return model
    graph, nodes, last = onnx.GraphProto(), list[onnx.NodeProto](), list[onnx.NodeProto]()
    graph.node.extend(model.graph.node)
    rename(graph, {new: new + _READ for new in stores})
    # A store holds up all that reads DRAM, so stores come last if LM has room for the values.
    values = sum(prod(types[new].shape) for new in stores)
    for own, node in zip(model.graph.node, graph.node, strict=True):
        nodes.append(node)
        for write in (stores[new] for new in own.output if new in stores):
            (last if write.is_slice(values) else nodes).extend(write.nodes)
    made = [one for write in stores.values() for one in write.constants]
    functions = [one for write in stores.values() for one in write.functions]
    return with_functions(with_nodes(model, [*nodes, *last], made), functions)


def _stores(
    model: onnx.ModelProto, types: dict[str, TensorType], renewed: Mapping[str, str], target: Target
) -> tuple[dict[str, Writer], dict[str, str]]:
    """Return the stores by new value, and by old value why there is none."""
    makers = {name: node for node in model.graph.node for name in node.output}
    reads = Counter(name for node in model.graph.node for name in reads_of(node))
    reads.update(value.name for value in model.graph.output)
    taken, data = all_names(model.graph), constants(model.graph)
    stores, whole = dict[str, Writer](), dict[str, str]()
    for new, old in renewed.items():
        behind, name = _moves(new, makers)
        scatter = makers.get(name)
        if scatter is None or scatter.op_type not in ("ScatterND", "TensorScatter"):
            continue
        before, source = _moves(scatter.input[0], makers)
        axes = _turned(range(len(types[old].shape)), before)
        if source != old or _turned(axes, behind) != sorted(axes):
            continue
        known = {n: array_of(data[n]) for n in scatter.input if n in data}
        write = Writer(scatter, types, taken, known, target)
        alone = all(reads[name] == 1 for name in (old, *(one.output[0] for one in before)))
        reason = _written(write, old, new, axes) if alone else "other operators read the old value"
        if reason:
            whole[old] = reason
        else:
            stores[new] = write
    return stores, whole


def _moves(name: str, makers: Mapping[str, onnx.NodeProto]) -> tuple[list[onnx.NodeProto], str]:
    """Return the moves that make a value, the first one in front, and what they move."""
    found: list[onnx.NodeProto] = []
    while (node := makers.get(name)) is not None and node.op_type in ("Transpose", "Identity"):
        found.insert(0, node)
        name = node.input[0]
    return found, name


def _turned(axes: Iterable[int], nodes: Sequence[onnx.NodeProto]) -> list[int]:
    """Return the axes behind Transposes and Identities."""
    found = list(axes)
    for node in (node for node in nodes if node.op_type == "Transpose"):
        order = next((one.ints for one in node.attribute if one.name == "perm"), None)
        found = [found[at] for at in order] if order is not None else found[::-1]
    return found


def _written(write: Writer, old: str, new: str, axes: Sequence[int]) -> str:
    """Append a store; return why it cannot be, empty if it can."""
    data, place = write.type(0), write.input(1)
    if data.elem not in SCATTERED - SMALL:
        return f"its elements are {data.elem}"
    if 0 in data.shape or not write.is_slice(prod(data.shape)):
        return "it is large, and may be worked on in slices"
    if write.node.op_type == "ScatterND":
        *rows, depth = write.type(1).shape
        axis, count = max(range(depth), key=lambda at: data.shape[at], default=0), prod(rows)
        flat = write.cut(write.reshape(place, [-1]), [0], [axis], [axis + 1])
        place = from_the_front(write, flat, write.type(1).elem, data.shape[axis])
    else:
        axis = axis_of(write, -2)
        count, depth = data.shape[0] * write.type(1).shape[axis], 1
        place = write.input(2) or write.constant(np.zeros(1, np.int64), "place")
        if write.attribute("mode", b"linear") == b"circular":
            place = write.op("Mod", place, write.constant(np.asarray(data.shape[axis]), "size"))
    if count != 1 or not depth:
        return f"{count} rows of it are new"
    place = write.cast(place, "int32")
    with write.as_one(STORE, old, place, new + _READ, axis=axes[axis]):
        write.op("Identity", new + _READ, result=new)
    return ""
