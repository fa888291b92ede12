"""Values that convolutions in half write and read: they are stored as halves.

A long word then holds four elements instead of two, all along the channels: the axis that the
next convolution contracts. So every value here has a *word axis*, and only operators that keep
the halves of a long word together work on such values. Other readers get the value as singles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import prod

from ..graph.draft import Edit
from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode, Side
from ..graph.half import fits_halves
from ..graph.rewrite import Facts, FlowRewrite
from ..layers.copy_operators import Copy
from ..layers.crop import CROP
from ..layers.depthwise import in_halves
from ..layers.depthwise_code import CHANNELS
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.elementwise import Elementwise
from ..layers.half_conversions import AXIS, NARROW, WIDEN
from ..layers.local_copy import COPY
from ..layers.operators import LAYERS
from ..layers.products.roles import precision_of, roles_of, takes_halves
from ..layers.switch.layer import SWITCH
from ..layers.tiling.axes import other_axes, whole_words
from ..layers.view import VIEWS, order_of
from ..layers.windows import Window
from ..machine import WORDS_PER_LONG, Target
from ..pfvm.device_functions import PICK, TILES
from ..pfvm.windows import GROUPED, WEIGHT_GRADIENT

#: The products whose results may be stored as halves.
CONVOLUTIONS = ("Conv", GROUPED)
#: Copies that may work on halves.
_COPIES = ("Slice", "Concat", "Pad", PICK)
#: Operators of the planners that change only the place of a value.
_MOVES = (SWITCH, COPY, DOWNLOAD, UPLOAD)
#: Values whose singles take less than this share of an LM stay singles: they gain nothing, and
#: sums over L1Bs, which suit small results, are sums of singles.
_SMALL_SHARE = 64


def _stored(graph: MNGraph, facts: Facts) -> Iterator[Edit]:
    """Store what lies between convolutions as halves: a convolution in half reads half(x).

    A constant without data stays single.
    """
    target, readers, made = facts.target, graph.readers(), graph.producers()
    found, constants = _halves(graph, facts)
    used = {n for name in found for n in made[name].inputs if n in constants}
    for name in sorted(used):
        yield Edit(values={name: replace(graph.values[name], dtype=MNDtype.HALF)})
    for name, axis in found.items():
        wanting = [one for one in readers[name] if not _reads(one, name, graph, found, target)]
        yield _half(name, axis, made[name], wanting, graph, target)


def _halves(graph: MNGraph, facts: Facts) -> tuple[dict[str, int], set[str]]:
    """Return the word axes of the results that become halves, by name, and constants that do."""
    target, data, readers, made = facts.target, facts.data, graph.readers(), graph.producers()
    kept = {*facts.exact, *(name for _, name in graph.outputs)}
    found: dict[str, int] = {}
    for node in graph.device_nodes():
        if len(node.outputs) == 1 and node.outputs[0] not in kept:
            axis = _written(node, graph, found, target)
            if axis is not None:
                found[node.outputs[0]] = axis

    @cache
    def may_round(name: str) -> bool:
        """Whether a constant stays usable as halves: no element becomes infinite or zero."""
        return name not in kept and name in data and fits_halves(data[name])

    while True:
        constants = _constants(graph, found, readers, may_round)
        wrong = [
            name
            for name in found
            if not any(_reads(node, name, graph, found, target) for node in readers.get(name, ()))
            or any(node.side is not Side.DEVICE for node in readers[name])
            or not _fed(made[name], found, constants)
        ]
        if not wrong:
            return found, constants
        for name in wrong:
            del found[name]


def channel_axes(graph: MNGraph, target: Target) -> dict[str, int]:
    """Return the axis of channels of the large results of convolutions in half, by name.

    So too of what operators make of them that could write halves.
    """
    found: dict[str, int] = {}
    for node in graph.device_nodes():
        axis = _written(node, graph, found, target) if len(node.outputs) == 1 else None
        if axis is not None:
            found[node.outputs[0]] = axis
    return found


def word_axes(graph: MNGraph) -> dict[str, int]:
    """Return the word axis of each value that :data:`STORE_HALVES` made halves, by name.

    The graph may have switches and transfers between them.
    """
    found: dict[str, int] = {}
    for node in graph.device_nodes():
        name = node.outputs[0]
        if graph.values[name].dtype is not MNDtype.HALF:
            continue
        axis = _after(node, graph, found)
        if axis is not None:
            found[name] = axis
    return found


def _written(node: MNNode, graph: MNGraph, found: Mapping[str, int], target: Target) -> int | None:
    """Return the word axis of a node's result if the node can write halves; else None."""
    out = graph.values[node.outputs[0]]
    if out.dtype is not MNDtype.FLOAT:
        return None
    if node.op in CONVOLUTIONS:
        share = prod(out.shape) // prod(target.level_range.values()) // WORDS_PER_LONG
        small = share * _SMALL_SHARE < target.words("lm0")
        if small or precision_of(node, target).words <= WORDS_PER_LONG:
            return None
    return _after(node, graph, found)


def _in_parts(node: MNNode, graph: MNGraph, target: Target) -> bool:
    """Whether the weights of one block of a result exceed LM1: sums of parts are singles."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    return -(-roles.k // kind.block) * roles.taps * kind.rows >= target.words("lm1")


def _after(node: MNNode, graph: MNGraph, found: Mapping[str, int]) -> int | None:
    """Return the word axis of a node's result; None if the node does not keep one."""
    if in_halves(node):
        return CHANNELS
    if node.op in CONVOLUTIONS:
        return roles_of(node, graph).c[2]
    if node.op == NARROW:
        return int(str(dict(node.attributes)[AXIS]))
    layer = LAYERS.get(node.op)
    if isinstance(layer, Elementwise):
        if not layer.halves:
            return None
        shape = graph.values[node.outputs[0]].shape
        axes = {found[n] for n in node.inputs if n in found and graph.values[n].shape == shape}
        return axes.pop() if len(axes) == 1 else None
    source = node.inputs[0] if node.inputs else ""
    if source not in found:
        return None
    axis = found[source]
    shapes = graph.values[source].shape, graph.values[node.outputs[0]].shape
    if node.op == CROP:
        return axis if shapes[0][axis] == shapes[1][axis] else None
    if node.op in VIEWS:
        return _viewed(node, axis, *shapes)
    if node.op == TILES:
        if not whole_words(node, graph, MNDtype.HALF):
            return None
        return next((one.result for one in other_axes(node, graph) if one.source == axis), None)
    if isinstance(layer, Copy) and node.op in _COPIES:
        return axis if _copied(node, graph, found, axis) else None
    if isinstance(layer, Window):
        whole = layer.halves and shapes[0][axis] == shapes[1][axis]
        return axis if whole and axis == 1 else None
    return axis if node.op in _MOVES else None


def _copied(node: MNNode, graph: MNGraph, found: Mapping[str, int], axis: int) -> bool:
    """Whether a copy keeps the long words of its inputs, which lie along ``axis``."""
    if any(found.get(name) != axis for name in node.inputs):
        return False
    return keeps_words(node, graph, axis)


def keeps_words(node: MNNode, graph: MNGraph, axis: int) -> bool:
    """Whether a copy keeps long words of halves along ``axis`` whole."""
    words, facts = MNDtype.HALF.words_per_long, dict(node.attributes)
    if facts.get("constant_value", 0) not in (0, (0,), (0.0,), ()):
        return False
    if node.op == PICK:
        return int(str(facts.get("axis", 0))) % len(graph.values[node.inputs[0]].shape) != axis
    sizes = [graph.values[name].shape[axis] for name in (*node.inputs, *node.outputs)]
    return len(set(sizes)) == 1 or (node.op == "Concat" and all(n % words == 0 for n in sizes))


def _viewed(
    node: MNNode, axis: int, source: tuple[int, ...], result: tuple[int, ...]
) -> int | None:
    """Return the axis of a view's result that is ``axis`` of its source; None if there is none."""
    if node.op == "Transpose":
        return order_of(node, len(source)).index(axis)
    return same_words_axis(source, axis, result)


def same_words_axis(shape: tuple[int, ...], axis: int, other: tuple[int, ...]) -> int | None:
    """Return the axis of ``other`` along which neighbours of ``axis`` in ``shape`` stay neighbours.

    None if there is none, or if it would cut a long word of halves.
    """
    words, weight = MNDtype.HALF.words_per_long, prod(shape[axis + 1 :])
    for number, size in enumerate(other):
        if size > 1 and prod(other[number + 1 :]) == weight:
            whole = size % words == 0 and shape[axis] % words == 0
            return number if whole or size == shape[axis] else None
    return None


def _reads(
    node: MNNode, name: str, graph: MNGraph, found: Mapping[str, int], target: Target
) -> bool:
    """Whether a reader takes the value as halves."""
    if in_halves(node):
        return node.inputs[0] == name and found[name] == CHANNELS
    if node.op in CONVOLUTIONS:
        roles = roles_of(node, graph)
        return (
            node.inputs[0] == name
            and name not in node.inputs[1:]
            and roles.a[2] == found[name]
            and takes_halves(node, graph, target)
        )
    if node.op == WEIGHT_GRADIENT:
        # Pixels and gradients have their channels on the same axis.
        return found[name] == 1 and takes_halves(node, graph, target)
    return node.outputs[0] in found


def _fed(node: MNNode, found: Mapping[str, int], constants: Collection[str]) -> bool:
    """Whether all that a node reads is halves, if it is no convolution."""
    return _rounds(node) or all(n in found or n in constants for n in node.inputs)


def _rounds(node: MNNode) -> bool:
    """Whether a node makes halves of what need not be halves."""
    return node.op in CONVOLUTIONS or in_halves(node)


def _constants(
    graph: MNGraph,
    found: Mapping[str, int],
    readers: Mapping[str, list[MNNode]],
    may_round: Callable[[str], bool],
) -> set[str]:
    """Return the constants that only operators on halves read, and that they can read as halves.

    Such a constant has one element, or one for each element of the word axis: a bias. The data of
    other constants, which may be large, is not read: ``may_round`` comes last.
    """
    return {
        name
        for name in graph.constants
        if graph.values[name].dtype is MNDtype.FLOAT
        and all(
            node.outputs[0] in found
            and not _rounds(node)
            and _fits_words(graph.values[name].shape, node.outputs[0], graph, found)
            for node in readers.get(name, ())
        )
        and may_round(name)
    }


def _fits_words(
    shape: tuple[int, ...], result: str, graph: MNGraph, found: Mapping[str, int]
) -> bool:
    """Whether an operand has one element along all axes of the result but its word axis."""
    behind = len(graph.values[result].shape) - found[result]
    return all(size == 1 for number, size in enumerate(reversed(shape), 1) if number != behind)


def _half(
    name: str, axis: int, maker: MNNode, wanting: list[MNNode], graph: MNGraph, target: Target
) -> Edit:
    """Make a value halves, with MNCoreWiden in front of the readers that want singles.

    A convolution that must sum parts writes singles. MNCoreNarrow rounds them for the others.
    """
    value, single = graph.values[name], f"{name}.singles"
    edit = Edit(values={name: replace(value, dtype=MNDtype.HALF)})
    edit.inputs = {(reader.name, name): single for reader in wanting}
    narrow = maker.op in CONVOLUTIONS and _in_parts(maker, graph, target)
    if not wanting and not narrow:
        return edit
    edit.values[single] = replace(value, name=single)
    op, source, result = (NARROW, single, name) if narrow else (WIDEN, name, single)
    if narrow:
        edit.outputs[maker.name, name] = single
    made = MNNode(f"{maker.name}.{op}", op, (source,), (result,), ((AXIS, axis),))
    edit.behind[maker.name].append(made.near(maker))
    return edit


STORE_HALVES = FlowRewrite(
    "store_halves", "what convolutions in half write is rounded to half", _stored
)
