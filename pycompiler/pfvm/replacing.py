"""New nodes in place of others, in the graphs of onnx-ir. They take over names and source lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from .held import Array

#: The domains of ONNX's own operators.
DOMAINS = ("", "ai.onnx")
#: The operators that give a value another shape.
VIEWS = ("Reshape", "Squeeze", "Unsqueeze")


class Made:
    """New nodes with the source lines of ``like``. Calls append a node and return its result.

    Names begin with those of ``like``, and ``what`` tells nodes of one source apart.
    """

    def __init__(self, like: ir.Node, what: str = ""):
        assert like.graph is not None
        self.nodes: list[ir.Node] = []
        self.like = like
        self._graph, self._what, self._count = like.graph, what and f".{what}", 0

    def _name(self, start: str | None, what: object) -> str:
        return f"{start or self.like.op_type}{self._what}.{what}"

    def __call__(
        self,
        op: str,
        *inputs: ir.Value | None,
        shape: Sequence[int] | None = None,
        facts: Mapping[str, ir.Attr] | None = None,
        **more: Any,
    ) -> ir.Value:
        """Append a node with the attributes ``facts`` and ``more``.

        A result of known ``shape`` has the element type of the result of ``like``.
        """
        name = self._name(self.like.name, len(self.nodes))
        made = ir.node(op, inputs, {**(facts or {}), **more}, name=name)
        made.metadata_props.update(self.like.metadata_props)
        result, old = made.outputs[0], self.like.outputs[0]
        result.name = self._name(old.name, f"{op}{len(self.nodes)}")
        if shape is not None:
            result.shape, result.type = ir.Shape(shape), old.type
        self.nodes.append(made)
        return result

    def constant(self, array: Array) -> ir.Value:
        """Return a new parameter of the graph."""
        known = self._graph.initializers
        while (name := self._name(self.like.outputs[0].name, f"constant{self._count}")) in known:
            self._count += 1
        tensor = ir.tensor(np.ascontiguousarray(array), name=name)
        value = ir.Value(name=name, const_value=tensor)
        value.shape, value.type = ir.Shape(array.shape), ir.TensorType(tensor.dtype)
        self._graph.register_initializer(value)
        return value

    def view(self, value: ir.Value | None, shape: Sequence[int]) -> ir.Value:
        """Return the value with another shape."""
        if value is not None and shape_of(value) == tuple(shape):
            return value
        sizes = self.constant(np.asarray(shape, dtype=np.int64))
        return self("Reshape", value, sizes, shape=shape)

    def put(self, value: ir.Value, chain: Sequence[ir.Node]) -> None:
        """Put the new nodes in place of a chain: ``value`` takes over name and readers of its last.

        Without new nodes, only readers change; an output needs a node of its own to keep its name.
        """
        old = chain[-1].outputs[0]
        if not self.nodes and old.is_graph_output():
            return
        self.take_over(value, old)
        for node in reversed(chain):
            self._graph.remove(node, safe=True)

    def take_over(self, value: ir.Value, old: ir.Value) -> None:
        """Put the new nodes in front of the one that makes ``old``; its readers read ``value``."""
        maker = old.producer()
        assert maker is not None
        if self.nodes:
            self._graph.insert_before(maker, self.nodes)
            name, old.name = old.name, f"{old.name}.before"
            value.name, value.type = name, old.type or value.type
            value.shape = old.shape or value.shape
        old.replace_all_uses_with(value, replace_graph_outputs=True)


#: Returns what replaces the result of a node, made of new nodes; None leaves the node.
Rule = Callable[[ir.Node, Made], ir.Value | None]


def replace(nodes: Iterable[ir.Node], rules: Mapping[str, Rule]) -> None:
    """Apply the rules for ONNX's own operators, in place."""
    for node in nodes:
        rule = rules.get(node.op_type) if node.domain in DOMAINS else None
        if rule is not None:
            made = Made(node)
            found = rule(node, made)
            if found is not None:
                made.put(found, [node])


def constant_of(value: ir.Value | None) -> Array | None:
    """Return the data of a constant; None if the value is none."""
    tensor = None if value is None else value.const_value
    # A graph input with a default may get another value.
    if value is None or tensor is None or value.is_graph_input():
        return None
    return np.asarray(tensor.numpy())


def shape_of(value: ir.Value | None) -> tuple[int, ...] | None:
    """Return the shape of a value; None if it is not known, or if there are no elements."""
    if value is None or value.shape is None:
        return None
    sizes = tuple(n for n in value.shape if isinstance(n, int) and n > 0)
    return sizes if len(sizes) == len(value.shape) else None


def only_user(value: ir.Value | None, graph: ir.Graph | ir.Function | None) -> ir.Node | None:
    """Return the only node that reads a value; None if there is none in the graph, or several."""
    users = [] if value is None or value.is_graph_output() else list(value.uses())
    node = users[0].node if len(users) == 1 else None
    return node if node is not None and node.domain in DOMAINS and node.graph is graph else None
