"""A product that only a sum reads becomes part of it: the products need no room in LM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from ..graph.edit import Edit
from ..graph.graph import MNGraph, MNNode, Side
from ..layers.operators import LAYERS
from ..layers.sum_of_products import SUM_OF_PRODUCTS


def sum_products(graph: MNGraph, exact: Collection[str], apart: Collection[str] = ()) -> MNGraph:
    """Replace each Mul of two values of one shape, and the ReduceSum behind it, by one node.

    Values in ``exact`` stay, as do operators of the types ``apart``.
    """
    if not {"Mul", "ReduceSum"}.isdisjoint(apart):
        return graph
    kept = {*exact, *(name for _, name in graph.outputs)}
    readers = Counter(name for node in graph.nodes for name in dict.fromkeys(node.inputs))
    products = {
        node.outputs[0]: node
        for node in graph.device_nodes()
        if node.op == "Mul" and readers[node.outputs[0]] == 1 and node.outputs[0] not in kept
    }
    edit = Edit(graph)
    for node in graph.nodes:
        product = products.get(node.inputs[0]) if node.inputs else None
        if product is not None and _joins(node, product, graph):
            edit.instead[node.name] = replace(node, op=SUM_OF_PRODUCTS, inputs=product.inputs)
            edit.gone.add(product.name)
    return edit.done()


def _joins(node: MNNode, product: MNNode, graph: MNGraph) -> bool:
    if node.op != "ReduceSum" or node.side is not Side.DEVICE or len(node.inputs) > 1:
        return False
    if node.segment != product.segment:
        return False
    values = [graph.values[name] for name in product.inputs]
    shapes = {value.shape for value in values}
    dtypes = [value.dtype for value in (*values, graph.values[node.outputs[0]])]
    layer = LAYERS[SUM_OF_PRODUCTS]
    made = replace(node, op=SUM_OF_PRODUCTS, inputs=product.inputs)
    same = shapes == {graph.values[product.outputs[0]].shape}
    return same and layer.unsupported(made, graph, dtypes) is None
