"""Factors of products in half are rounded where they are made, not where they are multiplied.

A product in half rounds its factors when they enter the MAU, and so do convolutions and the
gradients of their weights. If MNCoreNarrow rounds them earlier, they have the same bits, and layout
switches, tiles, copies and DRAM transfers move half as many words. Between MNCoreNarrow and the
product there may only be operators that neither compute nor mix elements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ..graph.draft import Edit
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode, Side
from ..graph.rewrite import Facts, FlowRewrite, Part, Pattern, Rewrite
from ..layers.depthwise import in_halves
from ..layers.depthwise_code import CHANNELS
from ..layers.half_conversions import AXIS, NARROW, WIDEN
from ..layers.matmul import PRODUCTS
from ..layers.products.roles import roles_of, takes_halves
from ..layers.tiling.axes import other_axes, whole_words
from ..layers.view import VIEWS, order_of
from ..machine import Target
from ..pfvm.device_functions import PICK, TILES
from ..pfvm.windows import DEPTHWISE, WEIGHT_GRADIENT
from .halves import CONVOLUTIONS, keeps_words, same_words_axis

#: Operators that rounding may pass: what they do to halves is what they do to singles.
_EXACT = ("Relu",)
_COPIES = ("Slice",)
#: Products whose factors are rounded here. What convolutions give each other is halves already.
_PRODUCTS = ("MatMul", "Gemm")


@dataclass
class _Found:
    """What is rounded.

    ``whole`` has the word axis of each value that only readers of halves read. ``beside`` has for
    other values the word axis and the readers of a rounded copy.
    """

    whole: dict[str, int] = field(default_factory=dict)
    beside: dict[str, dict[int, set[str]]] = field(default_factory=dict)


def _rounded(graph: MNGraph, facts: Facts) -> Iterator[Edit]:
    """Round factors where they are made: a product in half is one of half(x) and half(y)."""
    kept = {*facts.exact, *(name for _, name in graph.outputs)}
    found, outside = _search(graph, facts.target, kept), _outside(graph)
    copied: set[str] = set()
    for node in graph.nodes:
        for name in dict.fromkeys((*node.inputs, *node.outputs)):
            if name in found.whole and name in node.outputs:
                yield _whole(node, name, graph, found)
            for axis, readers in found.beside.get(name, {}).items():
                copy = f"{name}.halves{axis}"
                # What the host gives is rounded where it is first read so.
                at_reader = name in outside
                here = node.name in readers if at_reader else name in node.outputs
                if not here or copy in copied:
                    continue
                copied.add(copy)
                edit = Edit(inputs={(reader, name): copy for reader in readers})
                edit.values[copy] = replace(graph.values[name], name=copy, dtype=MNDtype.HALF)
                beside = edit.before if at_reader else edit.behind
                beside[node.name].append(_narrow(name, copy, axis, node))
                yield edit


def _narrow(source: str, result: str, axis: int, near: MNNode) -> MNNode:
    return MNNode(f"{result}.{NARROW}", NARROW, (source,), (result,), ((AXIS, axis),)).near(near)


def _whole(node: MNNode, out: str, graph: MNGraph, found: _Found) -> Edit:
    """Make a result halves; an operator that gets singles gives singles, which are rounded."""
    edit = Edit(values={out: replace(graph.values[out], dtype=MNDtype.HALF)})
    if not _passes(node, out, graph, found):
        single = f"{out}.singles"
        edit.values[single] = replace(graph.values[out], name=single)
        edit.outputs[node.name, out] = single
        edit.behind[node.name].append(_narrow(single, out, found.whole[out], node))
    return edit


def _search(graph: MNGraph, target: Target, kept: Collection[str]) -> _Found:
    readers = graph.readers()
    # Smaller values do not even fill a long word of each PE. But every MAB has the weights of a
    # convolution.
    least = prod(target.pe_shape) * MNDtype.FLOAT.words_per_long
    found, outside = _Found(), _outside(graph)
    made = [name for node in graph.nodes for name in node.outputs if name]
    for name in reversed([*graph.inputs, *made]):
        value = graph.values[name]
        if value.dtype is not MNDtype.FLOAT:
            continue
        wanting: dict[int, set[str]] = {}
        for node in readers.get(name, ()):
            if node.op in _PRODUCTS and prod(value.shape) < least:
                continue
            for axis in _wanted(node, name, graph, found, target):
                wanting.setdefault(axis, set()).add(node.name)
        if not wanting:
            continue
        only = next(iter(wanting.values()))
        all_want = len(wanting) == 1 and len(only) == len(readers[name])
        if all_want and name not in kept and name not in outside:
            found.whole[name] = next(iter(wanting))
        else:
            # Each Slice rounds its part: the parts are fewer words than the whole.
            slices = {node.name for node in readers[name] if node.op in _COPIES}
            rest = {axis: own - slices for axis, own in wanting.items()}
            found.beside[name] = {axis: own for axis, own in rest.items() if own}
    return found


def _outside(graph: MNGraph) -> set[str]:
    """Return the values that come from outside of the device."""
    made = (name for node in graph.nodes if node.side is Side.HOST for name in node.outputs)
    return {*graph.inputs, *made}


def _wanted(
    node: MNNode, name: str, graph: MNGraph, found: _Found, target: Target
) -> Iterator[int]:
    """Yield the axis along which a reader wants the halves of a value, if it wants halves."""
    if node.side is not Side.DEVICE:
        return
    if in_halves(node):
        if name in node.inputs[:2]:
            yield CHANNELS if node.inputs[0] == name else 0
        return
    if node.op in (*_PRODUCTS, *CONVOLUTIONS, WEIGHT_GRADIENT):
        if name in node.inputs[2:] or not takes_halves(node, graph, target):
            return
        if node.op == WEIGHT_GRADIENT:
            # Both operands have their channels there.
            yield 1
            return
        roles = roles_of(node, graph)
        yield roles.a[2] if node.inputs[0] == name else roles.b[1]
        return
    axis = found.whole.get(node.outputs[0])
    if axis is None or node.inputs[0] != name:
        return
    source = _before(node, axis, graph)
    if source is not None:
        yield source


def _before(node: MNNode, axis: int, graph: MNGraph) -> int | None:
    """Return the word axis that an operator's input must have; None if none gives ``axis``."""
    if len(node.outputs) != 1:
        return None
    source, result = (graph.values[n].shape for n in (node.inputs[0], node.outputs[0]))
    if node.op in _EXACT:
        return axis
    if node.op == "Transpose":
        return order_of(node, len(source))[axis]
    if node.op in VIEWS:
        return same_words_axis(result, axis, source)
    if node.op == TILES:
        kept = other_axes(node, graph) if whole_words(node, graph, MNDtype.HALF) else ()
        return next((one.source for one in kept if one.result == axis), None)
    if node.op in ("Pad", PICK):
        return axis if keeps_words(node, graph, axis) else None
    return axis if node.op in _COPIES and source[axis] == result[axis] else None


def _passes(node: MNNode, out: str, graph: MNGraph, found: _Found) -> bool:
    """Whether an operator's input comes as halves where its result is wanted so."""
    if in_halves(node):
        return found.whole[out] == CHANNELS
    if node.op in PRODUCTS:
        return False
    axis, name = _before(node, found.whole[out], graph), node.inputs[0]
    copied = found.beside.get(name, {}).get(-1 if axis is None else axis, ())
    return axis is not None and (found.whole.get(name) == axis or node.name in copied)


def _depthwise(nodes: Sequence[MNNode], part: Part) -> Edit | None:
    """Give convolutions of single channels in half the halves that they read and write."""
    (node,) = nodes
    if not in_halves(node):
        return None
    edit, out = Edit(), node.outputs[0]
    for name, axis in zip(node.inputs, (CHANNELS, 0), strict=False):
        if part.values[name].dtype is MNDtype.FLOAT:
            copy = f"{node.name}.halves{axis}"
            edit.inputs[node.name, name] = copy
            edit.values[copy] = replace(part.values[name], name=copy, dtype=MNDtype.HALF)
            edit.before[node.name].append(_narrow(name, copy, axis, node))
    if part.values[out].dtype is MNDtype.FLOAT:
        short = f"{out}.halves"
        edit.outputs[node.name, out] = short
        edit.values[short] = replace(part.values[out], name=short, dtype=MNDtype.HALF)
        wide = MNNode(f"{out}.{WIDEN}", WIDEN, (short,), (out,), ((AXIS, CHANNELS),))
        edit.behind[node.name].append(wide.near(node))
    return edit if edit.values else None


ROUND_DEPTHWISE = Rewrite(
    "round_depthwise",
    "factors and results of convolutions of single channels are rounded to half",
    pattern=Pattern(frozenset({DEPTHWISE})),
    edit=_depthwise,
    needed=True,
)
ROUND_FACTORS = FlowRewrite("round_factors", "", _rounded)
