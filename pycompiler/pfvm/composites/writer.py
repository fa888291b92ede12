"""Writes the nodes and constants that replace one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ...graph.dtypes import device_dtype, onnx_elem_type
from ...graph.graph import TensorType
from ...machine import Target
from ..declared import constants
from ..device_functions import DEVICE, PICK, function_of, with_functions
from ..held import Array, array_of, tensor_of
from ..names import all_names, reserved
from ..with_nodes import with_nodes

#: The element types that most rules accept. Short floats are singles on the device.
FLOATS = frozenset({"float", "float16", "bfloat16"})
#: Integers of 8 and 16 bits have 32 on the device.
SMALL = frozenset({"int8", "uint8", "int16", "uint16"})
#: The integers that have products.
INTEGERS = frozenset({"int32", "int64", "uint32", "uint64"})
#: The element types of rules that only move elements.
MOVED = FLOATS | SMALL | {"double", "bool", "int32", "int64", "uint32", "uint64"}
#: The element types of rules that every float suits.
REALS = FLOATS | {"double"}
#: The element types whose elements the device compares, chooses and adds.
NUMBERS = REALS | SMALL | {"int32", "int64", "uint64"}
#: Places up to this one are exact as singles.
MOST_PLACES = 1 << 24

#: The part of LM that the elements of a value may take: the rest is for the padding of its axes.
_PADDED = 3 / 4
_VIEWS = ("Reshape", "Flatten")
#: The part of LM that the elements of one slice should take at most.
_SLICE = 1 / 8


@dataclass
class Writer:
    """Collects the nodes that replace one node."""

    node: onnx.NodeProto
    types: dict[str, TensorType]
    taken: set[str]
    #: inputs that are constants
    data: dict[str, Array]
    #: the machine; None for the host
    target: Target | None = None
    #: the inputs of the model
    given: frozenset[str] = frozenset()
    #: the nodes that make the inputs, and those before them, by the names of their results
    makers: Mapping[str, onnx.NodeProto] = field(default_factory=dict)
    #: all constants of the model
    held: Mapping[str, onnx.TensorProto] = field(default_factory=dict)
    #: how often other operators of the model pass over the pixels of a convolution, in the mean
    passes: float = 0
    #: the parts in which the batch goes through the model
    parts: int = 1
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    functions: list[onnx.FunctionProto] = field(default_factory=list)
    #: how many values have each name, without the numbers behind it
    named: Counter[str] = field(default_factory=Counter)
    #: the nodes so far, with those inside of functions
    count: int = 0
    #: the rows in DRAM that values are views of, and the shapes of these rows
    in_rows: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)

    def part(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a part of a batch of pictures."""
        return -(-shape[0] // self.parts), *shape[1:]

    @property
    def rows(self) -> int:
        """The length of the longest table that Gather may index by address."""
        # Half of LM leaves room for the other axes of the table.
        return self.target.words("lm0") // 2 if self.target is not None else 0

    @property
    def longest_row(self) -> int:
        """The most long words of a row that may be picked from a table in DRAM."""
        return self.target.dar_row if self.target is not None else 0

    def input(self, index: int) -> str:
        """Return the name of an input; empty if it is not given."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def type(self, index: int) -> TensorType:
        """Return the type of an input."""
        return self.types[self.node.input[index]]

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute of the node."""
        for found in self.node.attribute:
            if found.name == name:
                return helper.get_attribute_value(found)
        return default

    def single(self, name: str, default: float) -> float:
        """Return an attribute in floating point, which ONNX keeps as a single."""
        return float(np.float32(self.attribute(name, default)))

    def reduced_axes(self) -> list[int] | None:
        """Return the axes of a reduction, from its second input; None if they are not constant."""
        rank, name = len(self.type(0).shape), self.input(1)
        if name and name not in self.data:
            return None
        found = [int(axis) % rank for axis in self.data[name].reshape(-1)] if name else []
        if found or int(self.attribute("noop_with_empty_axes", 0)):
            return found
        return list(range(rank))

    def viewed(self, name: str) -> str:
        """Return what a value is a Reshape or Flatten of; empty if it is none."""
        maker = self.makers.get(name)
        return maker.input[0] if maker is not None and maker.op_type in _VIEWS else ""

    def constant(self, array: Array, what: str) -> str:
        """Return the name of a constant."""
        name = self.name(what)
        self.constants.append(tensor_of(np.asarray(array), name))
        return name

    def number(self, value: float) -> str:
        """Return the name of a constant of the node's own element type."""
        return self.own(np.asarray(value), "number")

    def own(self, array: Array, what: str) -> str:
        """Return the name of a constant, converted to the node's own element type."""
        kind = onnx.TensorProto.DataType.Value(self.type(0).elem.upper())
        return self.constant(array.astype(helper.tensor_dtype_to_np_dtype(kind)), what)

    def cast(self, value: str, elem: str, result: str | None = None) -> str:
        """Append a Cast to an element type."""
        return self.op("Cast", value, result=result, to=onnx_elem_type(elem))

    def ints(self, values: Sequence[int]) -> str:
        """Return the name of a constant of integers, such as axes."""
        return self.constant(np.asarray(values, dtype=np.int64), "axes")

    def op(
        self, op: str, *inputs: str | float, result: str | None = None, **attributes: Any
    ) -> str:
        """Append a node; return the name of its result. Numbers get the node's element type."""
        names = [one if isinstance(one, str) else self.number(one) for one in inputs]
        name = result or self.name(op)
        made = helper.make_node(op, names, [name], **attributes)
        made.name = f"{self.node.name or self.node.op_type}.{op.partition('.')[0]}.{self.count}"
        self.count += 1
        made.metadata_props.extend(self.node.metadata_props)
        self.nodes.append(made)
        return name

    def again(self, inputs: Sequence[str], outputs: Sequence[str] | None = None) -> onnx.NodeProto:
        """Append the node itself with other inputs, and perhaps other outputs."""
        made = onnx.NodeProto()
        made.CopyFrom(self.node)
        made.input[:] = inputs
        made.output[:] = self.node.output if outputs is None else outputs
        self.nodes.append(made)
        return made

    @contextmanager
    def as_one(self, op: str, *inputs: str, **attributes: Any) -> Iterator[None]:
        """Make one operator of the device of the nodes that are written inside.

        They read ``inputs``. The last one gives the result.
        """
        around = self.nodes, self.constants
        self.nodes, self.constants = [], []
        yield
        made = function_of(op, inputs, self.nodes, self.constants, tuple(attributes))
        self.nodes, self.constants = around
        self.functions.append(made)
        self.count -= 1  # the call stands for the last node
        self.op(made.name, *inputs, result=made.output[0], domain=DEVICE)
        facts = (helper.make_attribute(*fact) for fact in attributes.items())
        self.nodes[-1].attribute.extend(facts)

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """Append a Reshape; 0 stands for no elements."""
        return self.op("Reshape", value, self.ints(shape), allowzero=1)

    def cut(
        self,
        value: str,
        axes: Sequence[int],
        starts: Sequence[int],
        ends: Sequence[int],
        steps: Sequence[int] | None = None,
        shape: Sequence[int] = (),
    ) -> str:
        """Append a Slice along ``axes``.

        Axes of ``shape`` that one PE could not hold together are cut one after the other.
        """
        cuts = list(zip(starts, ends, axes, steps or [1] * len(axes), strict=True))
        groups = [cuts]
        if shape:
            changed = [cut for cut in cuts if (*cut[:2], cut[3]) != (0, shape[cut[2]], 1)]
            if self.are_large(shape[axis] for _, _, axis, _ in changed):
                groups = [[cut] for cut in changed]
        for group in groups:
            numbers = (self.ints(list(column)) for column in zip(*group, strict=True))
            value = self.op("Slice", value, *numbers)
        return value

    def first_of(self, value: str, shape: Sequence[int], sizes: Sequence[int]) -> str:
        """Append the first ``sizes`` elements along the axes from 2 on, if ``shape`` has more."""
        if tuple(shape[2:]) == tuple(sizes):
            return value
        return self.cut(value, range(2, len(shape)), [0] * len(sizes), sizes, shape=shape)

    def are_large(self, sizes: Iterable[int]) -> bool:
        """Whether axes of these sizes leave a PE no room for other axes."""
        return self.target is not None and prod(sizes) > self.rows

    def has_room(self, shape: Sequence[int]) -> bool:
        """Whether all PEs together can hold a value of this shape in LM, with some padding.

        Its elements are like those of the first input.
        """
        return self.target is not None and prod(shape) <= _PADDED * self._elements

    @property
    def _elements(self) -> int:
        """The elements like those of the first input that the LM0 of all PEs hold."""
        assert self.target is not None
        words = device_dtype(self.type(0).elem).words_per_long
        return words * prod(self.target.pe_shape) * self.target.words("lm0")

    @property
    def row_step(self) -> int:
        """The elements that rows in DRAM are padded to a multiple of; 0 if there are no rows."""
        if self.target is None:
            return 0
        return self.target.row_words * device_dtype(self.type(0).elem).words_per_long

    def is_slice(self, elements: int) -> bool:
        """Whether so many elements are small enough for a slice."""
        return self.target is not None and elements <= _SLICE * self._elements

    def decimated(self, value: str, shape: Sequence[int], steps: Mapping[int, int]) -> str:
        """Append operators that take every ``steps[axis]``-th element of an axis, from the first.

        Each step must divide the size of its axis. Elements and steps become two axes, so the axis
        of the elements may lie on units.
        """
        apart: list[int] = []
        picked: list[int] = []
        for axis, size in enumerate(shape):
            step = steps.get(axis, 1)
            apart.append(size // step)
            if step > 1:
                picked.append(len(apart))
                apart.append(step)
        value = self.reshape(value, apart)
        value = self.cut(value, picked, [0] * len(picked), [1] * len(picked))
        return self.reshape(value, [size // steps.get(axis, 1) for axis, size in enumerate(shape)])

    def padded(
        self,
        value: str,
        axes: Sequence[int],
        pads: Sequence[tuple[int, int]],
        shape: Sequence[int] = (),
    ) -> str:
        """Append Pads with zeros by (begin, end) along ``axes``; nothing if all are 0.

        Axes of ``shape`` that one PE could not hold together are padded one after the other.
        """
        used = [(axis, pad) for axis, pad in zip(axes, pads, strict=True) if any(pad)]
        large = bool(shape) and self.are_large(shape[axis] for axis, _ in used)
        for group in [[one] for one in used] if large else [used] if used else []:
            amounts = [*(pad[0] for _, pad in group), *(pad[1] for _, pad in group)]
            places = self.ints([axis for axis, _ in group])
            value = self.op("Pad", value, self.ints(amounts), self.number(0.0), places)
        return value

    def name(self, what: str) -> str:
        """Return a new name for a value."""
        wanted, count = f"{self.node.output[0]}.{what}", self.named[what]
        self.named[what] += 1
        return reserved(f"{wanted}__{count}" if count else wanted, self.taken)

    def pick(self, value: str, axis: int, places: Array) -> str:
        """Append the elements at ``places`` of ``axis``: a Slice if they are evenly spaced."""
        steps = np.unique(np.diff(places))
        if len(steps) > 1 or 0 in steps:
            return self.picked(value, axis, places.tolist())
        step = int(steps[0]) if len(steps) else 1
        start, end = int(places[0]), int(places[-1]) + (1 if step > 0 else -1)
        bounds = (start, end if end >= 0 else np.iinfo(np.int64).min, axis, step)
        return self.op("Slice", value, *(self.ints([v]) for v in bounds))

    def picked(self, value: str, axis: int, places: Sequence[int]) -> str:
        """Append the elements at ``places`` of an axis; long lists stay data."""
        known = self.as_one(PICK, value, axis=axis, index=places)
        with known if len(places) <= self.rows else nullcontext():
            return self.op("Gather", value, self.ints(places), axis=axis)

    def mean(self, value: str, axes: Sequence[int], count: int) -> str:
        """Append the mean over axes, which keep size 1."""
        return self.mean_of(self.op("ReduceSum", value, self.ints(axes), keepdims=1), count)

    def mean_of(self, total: str, count: int) -> str:
        """Append the mean of ``count`` numbers, rounded once: equal ones keep their value."""
        if self.type(0).elem != "float" or not count & (count - 1):
            return self.op("Mul", total, self.number(1.0 / max(1, count)))
        wide = self.cast(total, "double")
        part = self.op("Mul", wide, self.constant(np.asarray(1.0 / count), "share"))
        return self.cast(part, "float")


def axis_of(write: Writer, default: int) -> int:
    """Return the attribute `axis`, counted from the front."""
    rank = len(write.type(0).shape)
    return int(write.attribute("axis", default)) % rank if rank else 0


#: Appends what replaces a node; False leaves the node. The value of a node appended last takes the
#: place of the node's only result; after True, all results have their names already.
Rule = Callable[[Writer], str | bool]


def rewritten(
    model: onnx.ModelProto,
    types: dict[str, TensorType],
    rule_of: Callable[[onnx.NodeProto], Rule | None],
    **known: Any,
) -> onnx.ModelProto:
    """Return ``model`` with what rules write in place of its nodes; itself if they write nothing.

    ``types`` are the types of its values. ``known`` goes to all writers.
    """
    data, taken = constants(model.graph), all_names(model.graph)
    given = frozenset(value.name for value in model.graph.input)
    makers = {name: node for node in model.graph.node for name in node.output}
    nodes: list[onnx.NodeProto] = []
    made: list[onnx.TensorProto] = []
    functions: list[onnx.FunctionProto] = []
    changed = False
    for node in model.graph.node:
        if (rule := rule_of(node)) is not None:
            read = {n: array_of(data[n]) for n in node.input if n in data}
            write = Writer(node, types, taken, read, given=given, makers=makers, held=data, **known)
            if found := rule(write):
                if isinstance(found, str):
                    write.nodes[-1].output[:] = node.output[:1]
                nodes += write.nodes
                made += write.constants
                functions += write.functions
                changed = True
                continue
        nodes.append(node)
    return with_functions(with_nodes(model, nodes, made), functions) if changed else model
