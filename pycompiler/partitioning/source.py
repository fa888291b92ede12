"""The model that is cut: its nodes, constants and types, and small models of some of its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import helper, numpy_helper

from ..errors import error
from ..graph.dtypes import onnx_elem_type
from ..graph.graph import TensorType
from ..pfvm.fold import fold_constants
from ..pfvm.host_groups import open_values, with_host_groups
from ..pfvm.names import fresh, reads_of
from ..pfvm.prepare import prepare, static_types
from ..pfvm.registered import registered
from ..pfvm.session import Array
from ..pfvm.well_formed import check_model

#: The first version of the file format with functions.
_WITH_FUNCTIONS = 8


@dataclass(frozen=True, eq=False)
class Source:
    """A model with static shapes, without functions of its own, and with its constants folded.

    ``readers`` has the numbers of the nodes that read a value, ``maker`` the node that makes it.
    """

    model: onnx.ModelProto
    nodes: tuple[onnx.NodeProto, ...]
    constants: Mapping[str, onnx.TensorProto]
    types: Mapping[str, TensorType]
    maker: Mapping[str, int] = field(default_factory=dict)
    readers: Mapping[str, list[int]] = field(default_factory=dict)

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs."""
        return [value.name for value in self.model.graph.input]

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return [value.name for value in self.model.graph.output]

    def reads(self, number: int) -> list[str]:
        """Return the values that a node reads, also in its bodies; each once."""
        return reads_of(self.nodes[number])

    def before(self, number: int) -> set[int]:
        """Return the nodes whose results a node reads."""
        return {self.maker[name] for name in self.reads(number) if name in self.maker}

    def ends(self, numbers: Collection[int]) -> tuple[list[str], list[str]]:
        """Return what some nodes read from outside, without constants, and what others read."""
        inside = set(numbers)
        own = dict.fromkeys(n for i in numbers for n in self.nodes[i].output if n)
        read = dict.fromkeys(name for i in numbers for name in self.reads(i))
        given = set(self.outputs)
        inputs = [name for name in read if name not in own and name not in self.constants]
        outputs = [n for n in own if n in given or set(self.readers.get(n, ())) - inside]
        return inputs, outputs

    def constants_of(self, numbers: Iterable[int]) -> list[onnx.TensorProto]:
        """Return the constants that some nodes read."""
        read = dict.fromkeys(name for i in numbers for name in self.reads(i))
        return [self.constants[name] for name in read if name in self.constants]

    def info(self, name: str) -> onnx.ValueInfoProto:
        """Return name and type of a value."""
        type = self.types[name]
        return helper.make_tensor_value_info(name, onnx_elem_type(type.elem), type.shape)

    def part(self, numbers: Sequence[int], name: str) -> onnx.ModelProto:
        """Return a model of some nodes and the constants that they read."""
        inputs, outputs = self.ends(numbers)
        graph = helper.make_graph(
            [self.nodes[i] for i in numbers],
            name,
            [self.info(value) for value in inputs],
            [self.info(value) for value in outputs],
            self.constants_of(numbers),
        )
        made = helper.make_model(graph, opset_imports=self.model.opset_import)
        made.ir_version = self.model.ir_version
        return made


@dataclass(frozen=True, eq=False)
class Unit:
    """Nodes that stay together: one node, or those that a pattern has found.

    ``name`` is that of the operator or of the pattern.
    """

    name: str
    numbers: tuple[int, ...]
    source: Source

    @property
    def nodes(self) -> list[onnx.NodeProto]:
        """The nodes, in the order of the model."""
        return [self.source.nodes[i] for i in self.numbers]

    @property
    def is_composite(self) -> bool:
        """Whether a pattern made it."""
        return len(self.numbers) > 1

    def elems(self) -> Iterator[str]:
        """Yield the element types of its inputs and outputs: ``float``, ``int64``..."""
        for node in self.nodes:
            for name in (*node.input, *node.output):
                if name:
                    yield self.source.types[name].elem

    def constant(self, name: str) -> Array | None:
        """Return the data of a constant; None if the value is none."""
        found = self.source.constants.get(name)
        return None if found is None else numpy_helper.to_array(found)

    def model(self) -> onnx.ModelProto:
        """Return a model of these nodes alone."""
        return self.source.part(self.numbers, "unit")


def read_source(model: onnx.ModelProto) -> Source:
    """Return the model ready to be cut; ``model`` is unchanged. P0103, P0108, P0801."""
    check_model(model)
    if registered(model):
        reason = "it has registered values, which change from call to call"
        raise error("P0801", reason=reason)
    made = prepare(model)
    if open_values(made):
        made = prepare(with_host_groups(made))
    made = prepare(fold_constants(made))
    made.ir_version = max(made.ir_version, _WITH_FUNCTIONS)
    graph = made.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    given = [value for value in graph.input if value.name not in constants]
    del graph.input[:]
    graph.input.extend(given)
    _own_names(graph)
    types = static_types(made)
    for value in graph.output:
        elem = onnx_elem_type(types[value.name].elem)
        value.CopyFrom(helper.make_tensor_value_info(value.name, elem, types[value.name].shape))
    nodes = _needed(graph)
    source = Source(made, nodes, constants, types)
    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    readers: dict[str, list[int]] = {}
    for number in range(len(nodes)):
        for name in source.reads(number):
            readers.setdefault(name, []).append(number)
    return Source(made, nodes, constants, types, maker, readers)


def _needed(graph: onnx.GraphProto) -> tuple[onnx.NodeProto, ...]:
    """Return the nodes that an output depends on."""
    wanted, kept = {value.name for value in graph.output}, []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            wanted.update(reads_of(node))
            kept.append(node)
    return tuple(reversed(kept))


def _own_names(graph: onnx.GraphProto) -> None:
    """Give every node a name of its own, in place."""
    taken: set[str] = set()
    for number, node in enumerate(graph.node):
        node.name = fresh(node.name or f"{node.op_type}_{number}", taken)
        taken.add(node.name)
