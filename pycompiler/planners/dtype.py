"""The dtype planner: it decides the device dtype of each value.

``float`` keeps every element type and computes matrix products in single precision. ``mixed``
multiplies halves and sums the products in single precision. If only such products read a value of
the host, the host rounds it to half when it packs the value. All other factors are rounded when
they enter the MAU, which gives the same bits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from ..graph.dtypes import MNDtype, device_dtype
from ..graph.graph import MNGraph, MNNode, Side, Stage
from ..layers.depthwise import in_halves
from ..layers.depthwise_code import CHANNELS
from ..layers.matmul import PRECISION, PRODUCTS
from ..layers.products.roles import DOUBLE, precision, roles_of, takes_halves
from ..layers.tiling.axes import whole_words
from ..layers.view import VIEWS
from ..machine import Target
from ..pfvm.device_functions import TILES
from ..pfvm.windows import DEPTHWISE, WEIGHT_GRADIENT
from .given import Given
from .overrides import PRECISION_OF, Overrides

#: The precisions of products that belong to each ``float_dtype``.
_FOLLOWED = {"float": frozenset({"single"}), "mixed": frozenset({"single", "half"})}


def product_precisions(
    float_dtype: str, gemm_precision: str = "auto", overrides: Overrides | None = None
) -> frozenset[str]:
    """Return the precisions in which products may compute under these options."""
    found = _FOLLOWED[float_dtype] if gemm_precision == "auto" else frozenset({gemm_precision})
    decided = (overrides or {}).values()
    chosen = {facts["precision"] for facts in decided if "precision" in facts}
    chosen |= {PRECISION_OF[MNDtype(facts["dtype"])] for facts in decided if "dtype" in facts}
    return found | chosen


def plan_dtypes(
    graph: MNGraph, target: Target, given: Given, registered: Collection[str] = ()
) -> MNGraph:
    """Set the dtype of every value.

    ``registered`` values are shared by several functions on the device, so they keep all their
    bits.
    """
    values = {
        name: replace(value, dtype=device_dtype(value.type.elem))
        for name, value in graph.values.items()
    }

    def depthwise(node: MNNode) -> bool:
        """Whether the factors of a convolution of single channels are halves: it moves less."""
        value = values[node.inputs[0]]
        whole = value.type.shape[CHANNELS] % MNDtype.HALF.words_per_long == 0
        large = prod(value.type.shape) >= prod(target.pe_shape) * MNDtype.FLOAT.words_per_long
        return whole and large and value.dtype is MNDtype.FLOAT and chosen(node) == "half"

    def chosen(node: MNNode) -> str:
        if values[node.outputs[0]].dtype is MNDtype.DOUBLE:
            return DOUBLE
        decided = given.overrides.get(node.outputs[0], {})
        if "precision" in decided:
            return decided["precision"]
        if "dtype" in decided:
            return PRECISION_OF[MNDtype(decided["dtype"])]
        if given.gemm_precision != "auto":
            return given.gemm_precision
        if node.op == DEPTHWISE:
            return "half" if given.float_dtype == "mixed" else "single"
        # A sum of few terms gains nothing from halves, and its rounding errors do not average out.
        roles = roles_of(node, graph)
        short = roles.k * roles.taps < precision("half", target).block
        return "half" if given.float_dtype == "mixed" and not short else "single"

    nodes = tuple(
        replace(node, attributes=(*node.attributes, (PRECISION, chosen(node))))
        if node.side is Side.DEVICE
        and (node.op in (*PRODUCTS, WEIGHT_GRADIENT) or (node.op == DEPTHWISE and depthwise(node)))
        else node
        for node in graph.nodes
    )
    graph = graph.with_values(values, nodes=nodes, stage=Stage.DTYPE)
    found = _rounded_by_host(graph, target, {*given.overrides, *registered})
    return graph.with_values({n: replace(graph.values[n], dtype=MNDtype.HALF) for n in found})


def _reads_halves(node: MNNode, graph: MNGraph, target: Target) -> bool:
    """Whether the first two operands of a node may be halves."""
    if node.side is not Side.DEVICE or node.op not in (*PRODUCTS, WEIGHT_GRADIENT):
        return in_halves(node)
    return takes_halves(node, graph, target)


def _rounded_by_host(graph: MNGraph, target: Target, exact: Collection[str]) -> set[str]:
    """Return the inputs and constants that are read only as factors of products in half.

    Tiles of such values belong to them. Values in ``exact`` keep all their bits. The contracted
    axis must fill its blocks, because the device does not clear padding of halves.
    """
    kept = {*exact, *(name for _, name in graph.outputs)}
    outside = {*graph.inputs, *graph.constants}
    found = {n for n in outside if graph.values[n].dtype is MNDtype.FLOAT and n not in kept}
    moved: dict[str, str] = {}
    for node in graph.device_nodes():
        if node.op in VIEWS or (node.op == TILES and whole_words(node, graph, MNDtype.HALF)):
            name, of = node.outputs[0], node.inputs[0]
            if of in found and name not in kept:
                moved[name] = of
                found.add(name)
    read: set[str] = set()
    for node in graph.nodes:
        if node.outputs[0] in moved:
            continue
        factors = set(node.inputs[:2]) if _reads_halves(node, graph, target) else set()
        found -= set(node.inputs) - factors
        found -= set(node.inputs[2:])
        read |= factors
    found &= read | set(moved.values())
    for name, of in reversed(list(moved.items())):
        if name not in found:
            found.discard(of)
    # What is made of a value that keeps its bits keeps them too.
    for name, of in moved.items():
        if of not in found:
            found.discard(name)
    return found
