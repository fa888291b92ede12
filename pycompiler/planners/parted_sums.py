"""Weight gradients of which every unit keeps a share become two nodes.

The first one leaves the sums of all units as parts, the second one adds the parts up. Between them
the parts are a value that a scheduler may place. The planners that run before see one node.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ..graph.digits import all_ranges, copied_digits, primes
from ..graph.graph import MNGraph, MNNode, MNValue, TensorType
from ..graph.layout import UNIT_LEVELS, Broadcast, Layout, SubAxis
from ..layers.weight_gradient.joining import JOIN
from ..layers.weight_gradient.layouts import PARTS, partial_layout, reduced_digits, shared_sums
from ..machine import Target
from ..pfvm.names import fresh
from ..pfvm.windows import WEIGHT_GRADIENT


def part_sums(graph: MNGraph, target: Target) -> MNGraph:
    """Return the graph with two nodes for each such gradient."""
    nodes: list[MNNode] = []
    values: dict[str, MNValue] = {}
    names, called = set(graph.values), {node.name for node in graph.nodes}
    device = {node.name for node in graph.device_nodes()}
    for node in graph.nodes:
        if (
            node.name not in device
            or node.op != WEIGHT_GRADIENT
            or shared_sums(node, graph, target) is None
        ):
            nodes.append(node)
            continue
        result = graph.values[node.outputs[0]]
        partial, over = partial_layout(node, graph, target), reduced_digits(node, graph)
        layout = _parted(partial, over, result, target)
        name, join = fresh(f"{result.name}.parts", names), fresh(f"{node.name}.{JOIN}", called)
        names.add(name)
        called.add(join)
        values[name] = replace(
            result,
            name=name,
            type=TensorType(result.type.elem, (prod(sub.size for sub in over), *result.shape)),
            layout=layout,
            num_lw=layout.num_lw(target.cycles),
        )
        nodes.append(replace(node, outputs=(name,), attributes=(*node.attributes, (PARTS, 1))))
        nodes.append(replace(node, name=join, op=JOIN, inputs=(name,), attributes=()))
    return graph.with_values(values, nodes=tuple(nodes)) if values else graph


def _parted(partial: Layout, over: list[SubAxis], value: MNValue, target: Target) -> Layout:
    """Return the layout of all parts: the first axis lies on the units that hold them."""
    ranges = all_ranges(target.level_range, value.dtype)
    parts = Layout((tuple(over),))
    copies = [
        Broadcast(level, digit.size, digit.stride)
        for level in UNIT_LEVELS
        for digit in sorted(
            copied_digits(partial, level, ranges)
            - {
                (sub.stride * stride, size)
                for sub in parts.on(level)
                for stride, size in primes(sub.size)
            }
        )
    ]
    return Layout((tuple(over), *partial.axes), tuple(copies))
