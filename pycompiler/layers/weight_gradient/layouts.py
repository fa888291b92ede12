"""Layouts of the operands of MNCoreWeightGradient.

Pixels and gradients have the layouts that the operands of the convolution have: channels lie across
the words and PEs of a MAB, tiles and pictures on units, pixels in Addr.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import prod

from ...graph.digits import machine_digits
from ...graph.graph import MNGraph, MNNode, TensorType
from ...graph.layout import UNIT_LEVELS, Layout, Layouts, Level, SubAxis, Ways
from ...graph.plan import Laid, SharedSums, WholeSums
from ...machine import Target
from ..base import layout_of, other_layouts
from ..products.choose import candidate_layouts
from ..products.layouts import lay_out, operand_layouts, result_digits, unit_digits
from ..products.roles import PRECISION, precision_of, roles_of
from ..products.spreads import Spread, SpreadRule, spread_units
from .share_pieces import Shares
from .shares import shares_by, shares_of

#: The axes of the result: channels of the pixels, channels of the gradients, then taps.
CHANNELS, COLUMNS, TAPS = 0, 1, 2


def ways(node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Iterator[Laid]:
    """Yield layouts of pixels, gradients and result, near the hints first."""
    forward, around = _forward(node, graph)
    gradient, done = node.inputs[1], list[Layouts]()
    near = {name: layout for name, layout in hints.items() if name in node.inputs}
    found_before = candidate_layouts(forward, around, target, near)
    for found in chain(found_before, _on_l1bs(node, forward, around, target)):
        made = wanted_layouts(node, graph, found[gradient], target)
        if made not in done and _suits(node, graph, made, target):
            done.append(made)
            yield Laid(made, {node.name: WholeSums()})
    exact = [
        wanted_layouts(node, graph, found[gradient], target)
        for columns in _some_l1bs(node, around, target)
        for spread in [_exact(node, graph, target, columns)]
        for found in [operand_layouts(forward, around, spread, target)]
    ]
    # Columns on L1Bs only where nothing else fits: a layout that does not is better than none.
    fitting = (one for one in exact if done or _suits(node, graph, one, target))
    made = next(fitting, exact[0])
    if made not in done:
        yield Laid(made, {node.name: WholeSums()})


def shared(node: MNNode, graph: MNGraph, target: Target, layouts: Layouts) -> Iterator[Laid]:
    """Yield the same layouts with a result of which every unit keeps a share, or with all of it."""
    result, gradient = node.outputs[0], layouts[node.inputs[1]]
    partial = result_layout(node, graph, gradient, target)
    yield Laid({**layouts, result: partial}, {node.name: WholeSums()})
    over = tuple(_on_units(gradient, roles_of(node, graph).c[0]))
    for one in shares_of(partial, over, graph.values[result].dtype, target):
        yield Laid({**layouts, result: one.layout}, {node.name: one.plan})


def partial_layout(node: MNNode, graph: MNGraph, target: Target) -> Layout:
    """Return the layout of the sums before units join them."""
    return result_layout(node, graph, layout_of(graph.values[node.inputs[1]]), target)


def shares_in(node: MNNode, graph: MNGraph, target: Target) -> Shares | None:
    """Return how units share the sums of a node by its plan; None if they do not."""
    if not isinstance(node.plan, SharedSums):
        return None
    partial, over = partial_layout(node, graph, target), tuple(reduced_digits(node, graph))
    dtype = graph.values[node.outputs[0]].dtype
    return shares_by(node.plan, partial, over, dtype, target)


def _on_l1bs(node: MNNode, forward: MNNode, around: MNGraph, target: Target) -> Ways:
    """Yield layouts whose columns lie on L1Bs: then the network joins all MABs at once."""
    roles, kind = roles_of(node, around), precision_of(node, target)
    for digits in _some_l1bs(node, around, target):
        if digits:
            spread = spread_units(roles, kind, target, None, SpreadRule(l1bs=len(digits)))
            yield operand_layouts(forward, around, spread, target)


def _some_l1bs(node: MNNode, around: MNGraph, target: Target) -> Iterator[list[SubAxis]]:
    """Yield digits of L1Bs, none first, as long as each L1B has columns."""
    blocks = -(-roles_of(node, around).n // precision_of(node, target).rows)
    digits = [one for one in machine_digits(target, 1) if one.level is Level.L1B]
    for count in range(len(digits) + 1):
        if prod(one.size for one in digits[:count]) <= blocks:
            yield digits[:count]


def _forward(node: MNNode, graph: MNGraph) -> tuple[MNNode, MNGraph]:
    """Return the convolution whose weights the node has the gradient of, and a graph for it."""
    roles = roles_of(node, graph)
    pixels, gradient = node.inputs
    facts = dict(node.attributes)
    kernel = facts["kernel_shape"]
    assert isinstance(kernel, tuple)
    like = graph.values[node.outputs[0]]
    shape = (roles.n, roles.k, *(max(1, int(taps)) for taps in kernel))
    weights = replace(like, type=TensorType(like.type.elem, shape), layout=None)
    kept = tuple(
        (name, facts[name]) for name in ("strides", "dilations", PRECISION) if name in facts
    )
    inputs = (pixels, weights.name)
    made = replace(node, op="Conv", inputs=inputs, outputs=(gradient,), attributes=kept)
    return made, graph.with_values({weights.name: weights})


def wanted_layouts(node: MNNode, graph: MNGraph, gradient: Layout, target: Target) -> Layouts:
    """Return the layouts of all operands that match the units of the gradients."""
    forward, around = _forward(node, graph)
    roles = roles_of(node, graph)
    batch, columns = roles.c[0], roles.c[2]
    units = tuple(tuple(unit_digits(gradient, axis)) for axis in batch)
    spread = Spread(units, tuple(unit_digits(gradient, columns)), ())
    found = operand_layouts(forward, around, spread, target)
    made = {name: found[name] for name in node.inputs}
    made[node.outputs[0]] = result_layout(node, graph, made[node.inputs[1]], target)
    return made


def result_layout(node: MNNode, graph: MNGraph, gradient: Layout, target: Target) -> Layout:
    """Return the layout of the result beside that of the gradients: their channels stay."""
    roles, kind, result = roles_of(node, graph), precision_of(node, target), node.outputs[0]
    value = graph.values[result]
    units = unit_digits(gradient, 1)
    held = kind.rows * prod(digit.size for digit in units)
    left = SubAxis(-(-roles.n // held), Level.ADDR, 0)
    subs = {COLUMNS: [*result_digits(kind, value.dtype, target), left, *units]}
    for axis, size in enumerate(value.shape):
        if axis != COLUMNS:
            subs[axis] = [SubAxis(size, Level.ADDR, 0)]
    order = [COLUMNS, *(axis for axis in range(len(value.shape)) if axis != COLUMNS)]
    return lay_out(len(value.shape), subs, order, value.dtype, target)


def _exact(node: MNNode, graph: MNGraph, target: Target, columns: list[SubAxis]) -> Spread:
    """Return a spread that gives other units than ``columns`` only to axes that they divide."""
    roles = roles_of(node, graph)
    every = machine_digits(target, 1)
    free = [one for one in every if one.level is not Level.PE and one not in columns]
    batch: list[list[SubAxis]] = [[] for _ in roles.batch]
    for index in reversed(range(len(roles.batch))):
        rest = roles.batch[index]
        if index in roles.windows and not roles.windows[index].trivial:
            continue
        for digit in list(free) if index else list(reversed(free)):
            if rest % digit.size == 0:
                batch[index].append(digit)
                free.remove(digit)
                rest //= digit.size
        if not index:
            batch[index].reverse()
    return Spread(tuple(map(tuple, batch)), tuple(columns), ())


def reduced_digits(node: MNNode, graph: MNGraph) -> list[SubAxis]:
    """Return the digits on units of pictures, tiles and pixels: the result is a sum over them."""
    return _on_units(layout_of(graph.values[node.inputs[1]]), roles_of(node, graph).c[0])


def _on_units(layout: Layout, axes: Sequence[int]) -> list[SubAxis]:
    return [
        sub
        for axis in axes
        for sub in layout.axes[axis]
        if sub.level in UNIT_LEVELS and sub.size > 1
    ]


def _suits(node: MNNode, graph: MNGraph, layouts: Layouts, target: Target) -> bool:
    """Whether operands fit LM, and no picture, tile or pixel is padding."""
    words = {name: layout.num_lw(target.cycles) for name, layout in layouts.items()}
    pixels, gradient = node.inputs
    others = words[gradient] + words[node.outputs[0]]
    fits = words[pixels] <= target.words("lm0") and others <= target.words("lm1")
    return fits and not _padded(node, graph, layouts[gradient])


def _padded(node: MNNode, graph: MNGraph, gradient: Layout) -> bool:
    roles, shape = roles_of(node, graph), graph.values[node.inputs[1]].shape
    return any(gradient.padded_shape[axis] != shape[axis] for axis in roles.c[0])


def refusals(node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
    """Yield the reasons why the layer does not accept the layouts that a node has."""
    gradient = layout_of(graph.values[node.inputs[1]])
    if _padded(node, graph, gradient):
        yield f"`{node.inputs[1]}` with padding on pictures, tiles or pixels"
        return
    wanted = wanted_layouts(node, graph, gradient, target)
    if isinstance(node.plan, SharedSums):
        shares = shares_in(node, graph, target)
        if shares is None:
            yield f"the plan {node.plan}"
            return
        wanted = {**wanted, node.outputs[0]: shares.layout}
    yield from other_layouts(wanted, graph, target)
