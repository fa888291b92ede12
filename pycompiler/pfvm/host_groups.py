"""Groups nodes around values of unknown size: the host runs each group as one node.

The size of such a value depends on the values of a call, although the declared shapes around it are
fixed: a Range whose end is an input, or the sum of the elements that a mask chooses. A group has
all nodes that make or read such values. It also has the short calculations that decide the sizes,
so that the device's rounding decides none. Everything that leaves a group has a known type, which
:class:`.session.HostSession` compares with what it gets.

A group is an If that is always true: its body holds the nodes, and no pass looks into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .known_shapes import known_types
from .names import all_names, reads_of, rename, reserved
from .parameters import settled_parameters
from .prepare import prepare
from .unroll import unrolled
from .with_nodes import with_nodes

#: The operator of a group in the graph and in the report.
GROUP = "HostGroup"
_NOTE = "pycompiler.host_group"
#: Longer lists are data, and decide no sizes.
_SHORT = 64
_WHOLE = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
#: The most operators that a group names.
_NAMED = 6


def group_of(node: onnx.NodeProto) -> str | None:
    """Return the operators of a group, as text; None for other nodes."""
    return next((note.value for note in node.metadata_props if note.key == _NOTE), None)


def open_values(model: onnx.ModelProto) -> set[str]:
    """Return the tensors that nodes of the main graph make and whose shape is not known.

    ``model`` has inferred types.
    """
    types = known_types(model.graph)
    kinds = {info.name: info.type.WhichOneof("value") for info in model.graph.value_info}
    made = (name for node in model.graph.node for name in node.output if name)
    return {n for n in made if n not in types and kinds.get(n) in (None, "tensor_type")}


def with_host_groups(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with inferred types, and with one node for each group.

    What types and known lengths of loops settle needs no group. The model gets none if the shape of
    an input or a result is not known.
    """
    model = settled_parameters(prepare(model))
    if open_values(model):
        model = settled_parameters(unrolled(model))
    graph = model.graph
    found, types = open_values(model), known_types(graph)
    if not found or any(info.name not in types for info in (*graph.input, *graph.output)):
        return model
    out = with_nodes(model, ())
    out.graph.node.extend(_Groups(out.graph, list(model.graph.node), found, types).nodes())
    stale = [info for info in out.graph.value_info if info.name in found]
    for info in stale:
        out.graph.value_info.remove(info)
    return out


class _Groups:
    """The groups of a graph, as sets of the numbers of its nodes."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        nodes: Sequence[onnx.NodeProto],
        found: set[str],
        types: Mapping[str, tuple[int, tuple[int, ...]]],
    ):
        self.graph, self._nodes, self._open, self._types = graph, nodes, found, types
        self._reads = [reads_of(node) for node in nodes]
        self._maker = {name: at for at, node in enumerate(nodes) for name in node.output if name}
        self._taken = all_names(graph) | {n for node in nodes for n in (*node.input, *node.output)}

    def nodes(self) -> Iterator[onnx.NodeProto]:
        """Yield the nodes in an order in which each reads what is made before it."""
        groups = self._joined([self._with_sizes(one) for one in self._around_open_values()])
        units = [set(group) for group in groups]
        units += [{number} for number in set(range(len(self._nodes))).difference(*groups)]
        owner = {number: unit for unit, members in enumerate(units) for number in members}
        before = [
            {owner[one] for number in members for one in self._before(number)} - {unit}
            for unit, members in enumerate(units)
        ]
        for unit in TopologicalSorter(dict(enumerate(before))).static_order():
            if unit < len(groups):
                yield from self._group(units[unit])
            else:
                yield self._nodes[min(units[unit])]

    def _before(self, number: int) -> set[int]:
        return {self._maker[name] for name in self._reads[number] if name in self._maker}

    def _around_open_values(self) -> list[set[int]]:
        """Return the sets of nodes that open values connect."""
        groups: list[set[int]] = []
        for number, node in enumerate(self._nodes):
            touched = self._open.intersection((*self._reads[number], *node.output))
            if touched:
                near = {self._maker[name] for name in touched} | {number}
                met = [group for group in groups if group & near]
                groups = [group for group in groups if not group & near]
                groups.append(near.union(*met))
        return groups

    def _with_sizes(self, group: set[int]) -> set[int]:
        """Return a group with the short calculations before it."""
        found, waiting = set(group), list(group)
        while waiting:
            for number in self._before(waiting.pop()):
                names = (*self._reads[number], *self._nodes[number].output)
                if number not in found and all(map(self._is_short, names)):
                    found.add(number)
                    waiting.append(number)
        return found

    def _is_short(self, name: str) -> bool:
        """Whether a value may decide a size: one number, or a short list of whole numbers."""
        if not name:
            return True
        elem, shape = self._types.get(name, (0, (0,)))
        return prod(shape) == 1 or (elem in _WHOLE and 0 < prod(shape) <= _SHORT)

    def _joined(self, groups: list[set[int]]) -> list[set[int]]:
        """Return the groups with all nodes between their own; groups that meet become one."""
        while True:
            grown = [self._closed(group) for group in groups]
            merged: list[set[int]] = []
            for group in grown:
                met = [one for one in merged if one & group]
                merged = [one for one in merged if not one & group]
                merged.append(group.union(*met))
            if merged == groups:
                return groups
            groups = merged

    def _closed(self, group: set[int]) -> set[int]:
        """Return a group with every node that reads from it and is read by it, at any distance."""
        after, before = set(group), set(group)
        for number in range(len(self._nodes)):
            if self._before(number) & after:
                after.add(number)
        for number in reversed(range(len(self._nodes))):
            if number in before:
                before |= self._before(number)
        return after & before

    def _group(self, members: set[int]) -> Iterator[onnx.NodeProto]:
        """Yield the node that holds some nodes, unless nothing reads their results."""
        nodes = [self._nodes[number] for number in sorted(members)]
        wanted = {info.name for info in self.graph.output}
        for number, names in enumerate(self._reads):
            if number not in members:
                wanted.update(names)
        results = [name for node in nodes for name in node.output if name in wanted]
        if not results:
            return
        stem = f"{results[0]}.{GROUP}"
        body = helper.make_graph(nodes, stem, [], [self._info(name) for name in results])
        rename(body, {name: reserved(f"{name}__inner", self._taken) for name in results})
        true = reserved(f"{stem}.true", self._taken)
        self.graph.initializer.append(numpy_helper.from_array(np.array(True), true))
        branches = {"then_branch": body, "else_branch": self._rest(body)}
        made = helper.make_node("If", [true], results, reserved(stem, self._taken), **branches)
        operators = list(
            dict.fromkeys(node.op_type for node in nodes if node.op_type != "Constant")
        )
        shown = ", ".join(operators[:_NAMED]) + ", ..." * (len(operators) > _NAMED)
        made.metadata_props.extend(next(filter(self._makes_open, nodes)).metadata_props)
        made.metadata_props.add(key=_NOTE, value=shown)
        yield made

    def _makes_open(self, node: onnx.NodeProto) -> bool:
        return any(name in self._open for name in node.output)

    def _info(self, name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, *self._types[name])

    def _rest(self, body: onnx.GraphProto) -> onnx.GraphProto:
        """Return the branch that never runs: one number for each result."""
        nodes, infos = [], []
        for info in body.output:
            name, elem = reserved(f"{info.name}.none", self._taken), info.type.tensor_type.elem_type
            zero = helper.make_tensor(name, elem, (), [0])
            nodes.append(helper.make_node("Constant", [], [name], value=zero))
            infos.append(helper.make_tensor_value_info(name, elem, ()))
        return helper.make_graph(nodes, f"{body.name}.none", [], infos)
