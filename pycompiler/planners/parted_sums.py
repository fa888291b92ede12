"""Weight gradients of which every unit keeps a share become two nodes.

The first one leaves the sums of all units as parts, the second one adds the parts up. Between them
the parts are a value that a scheduler may place. The planners that run before see one node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ..graph.digits import all_ranges, copied_digits, copy_entries, primes
from ..graph.draft import Edit
from ..graph.graph import MNGraph, MNValue, TensorType
from ..graph.layout import UNIT_LEVELS, Layout, Level, SubAxis
from ..graph.plan import PartSums, Resident
from ..graph.rewrite import Facts, FlowRewrite
from ..layers.matmul import PRODUCTS
from ..layers.products.resident import dram_words as group_sums_words
from ..layers.recut.plain import plain_layout
from ..layers.switch.layer import SWITCH, level_of
from ..layers.switch.pass_code import aside_words
from ..layers.tiling.plan import exchanges_l2bs
from ..layers.weight_gradient.joining import JOIN, dram_words
from ..layers.weight_gradient.layouts import partial_layout, reduced_digits, shares_in
from ..machine import Target
from ..pfvm.device_functions import TILES
from ..pfvm.names import reserved
from ..pfvm.windows import WEIGHT_GRADIENT


def _parts(graph: MNGraph, facts: Facts) -> Iterator[Edit]:
    """Add up partial sums: a sum over all units is the sum of those of each unit."""
    target = facts.target
    names, called = set(graph.values), {node.name for node in graph.nodes}
    for node in graph.device_nodes():
        shares = shares_in(node, graph, target) if node.op == WEIGHT_GRADIENT else None
        if shares is None:
            continue
        result, edit = graph.values[node.outputs[0]], Edit()
        partial, over = partial_layout(node, graph, target), reduced_digits(node, graph)
        layout = _parted(partial, over, result, target)
        name = reserved(f"{result.name}.parts", names)
        join = reserved(f"{node.name}.{JOIN}", called)
        shape = (prod(sub.size for sub in over), *result.shape)
        edit.values[name] = _laid_out(name, result, shape, layout, target)
        edit.instead[node.name] = replace(node, outputs=(name,), plan=PartSums())
        outputs = node.outputs
        if words := dram_words(shares, target):
            sums = reserved(f"{result.name}.sums", names)
            edit.values[sums] = _in_dram(sums, words, result, target)
            outputs = (*outputs, sums)
        made = replace(node, name=join, op=JOIN, inputs=(name,), outputs=outputs, attributes=())
        edit.behind[node.name].append(made)
        yield edit


def _in_dram(name: str, words: int, like: MNValue, target: Target) -> MNValue:
    """Return a value that takes ``words`` long words of each DRAM."""
    shape = (words * target.groups * like.dtype.words_per_long,)
    return _laid_out(name, like, shape, plain_layout(shape, like.dtype, target), target)


def _laid_out(
    name: str, like: MNValue, shape: tuple[int, ...], layout: Layout, target: Target
) -> MNValue:
    """Return a value of another shape that has a layout."""
    type, words = TensorType(like.type.elem, shape), layout.num_lw(target.cycles)
    return replace(like, name=name, type=type, layout=layout, num_lw=words)


def _parted(partial: Layout, over: list[SubAxis], value: MNValue, target: Target) -> Layout:
    """Return the layout of all parts: the first axis lies on the units that hold them."""
    ranges = all_ranges(target.level_range, value.dtype)
    digits = {(sub.level, (sub.stride * at, n)) for sub in over for at, n in primes(sub.size)}
    copies = {
        level: [one for one in copied_digits(partial, level, ranges) if (level, one) not in digits]
        for level in UNIT_LEVELS
    }
    return Layout((tuple(over), *partial.axes), tuple(copy_entries(copies, ranges)))


def _in_drams(graph: MNGraph, facts: Facts) -> Iterator[Edit]:
    """Sum over the groups in the DRAMs: a product gets words there, as a second result."""
    names = set(graph.values)
    for node in graph.device_nodes():
        if node.op not in PRODUCTS or not isinstance(node.plan, Resident):
            continue
        if words := group_sums_words(node, graph, facts.target):
            result, edit = graph.values[node.outputs[0]], Edit()
            sums = reserved(f"{result.name}.sums", names)
            edit.values[sums] = _in_dram(sums, words, result, facts.target)
            edit.instead[node.name] = replace(node, outputs=(*node.outputs, sums))
            yield edit


def _crossings(graph: MNGraph, facts: Facts) -> Iterator[Edit]:
    """Let words cross between L2Bs by DRAMs too: a pass gets words there, as a second result."""
    target, names = facts.target, set(graph.values)
    if target.l2bs_per_group == 1:
        return
    for node in graph.device_nodes():
        if (node.op == SWITCH and level_of(node) is Level.L2B) or (
            node.op == TILES and exchanges_l2bs(node, graph)
        ):
            result, edit = graph.values[node.outputs[0]], Edit()
            aside = reserved(f"{result.name}.aside", names)
            edit.values[aside] = _in_dram(aside, aside_words(target), result, target)
            edit.instead[node.name] = replace(node, outputs=(*node.outputs, aside))
            yield edit


PART_SUMS = FlowRewrite("part_sums", "", _parts, needed=True)
SUM_IN_DRAM = FlowRewrite("sum_in_dram", "", _in_drams, needed=True)
CROSS_IN_DRAM = FlowRewrite("cross_in_dram", "", _crossings, needed=True)
