"""The choice of the schedule and the layouts of a product."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod

from ...code.nest import stages
from ...cost.sequence import slots_of, waiting_steps
from ...graph.digits import agrees, primes
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode
from ...graph.layout import Layouts, Level
from ...graph.plan import Laid, Resident
from ...machine import Target
from ..dram_transfer import download
from ..dram_transfer_plan import plan_transfer
from .layouts import fits, operand_layouts, terms_unit
from .roles import Roles, precision_of, roles_of, whole_units
from .schedules import SCHEDULES, schedule_of
from .spreads import Spread, SpreadRule, kept_units, kept_units_of_few_rows, spread_units
from .unit_sums import groups_meet

#: A matrix is large if it takes this part of LM1; it may take that part beside other operands.
_LARGE, _PART = 4, 0.75


def choose_layouts(node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Laid:
    """Return the layouts of the operands that fit LM and take the fewest cycles.

    ``hints`` are the layouts that inputs have. An input whose layout agrees with its hint need not
    be brought.
    """
    held = _held(node, graph, target, hints)
    found = [held] if fits(node, held, target) else []
    found += _ways(node, graph, target)
    bring = _bring if found else lambda *_: 0
    # If the shares are too large: try other units, or L1Bs that divide the contracted axis.
    found = found or list(_spreads(node, graph, target, hints)) or [held]

    def cycles(one: Laid) -> int:
        computing = target.cycles * _steps(node, graph, one, target)
        return computing + bring(node, graph, one, hints, target)

    return found[0] if len(found) == 1 else min(found, key=cycles)


def _ways(node: MNNode, graph: MNGraph, target: Target) -> Iterator[Laid]:
    """Yield the layouts of all schedules that have some of their own."""
    for schedule in SCHEDULES.values():
        yield from schedule.ways(node, graph, target)


def _held(node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Laid:
    """Return layouts in which every MAB holds the elements it multiplies; keep units of hints."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    kept = next(kept_units(roles, node, hints, graph))
    spread = spread_units(roles, kind, target, kept, SpreadRule())
    return Laid(operand_layouts(node, graph, spread, target), {node.name: Resident()})


def candidate_layouts(
    node: MNNode, graph: MNGraph, target: Target, hints: Layouts
) -> Iterator[Laid]:
    """Yield layouts of all operands that fit LM, each with its plan."""
    yield from _spreads(node, graph, target, hints)
    yield from _ways(node, graph, target)


def _spreads(node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Iterator[Laid]:
    """Yield layouts that fit LM and in which every MAB holds the elements that it multiplies.

    A spread keeps the units of the first operand, or the units wanted for the result, or neither.
    Some spreads give more units to the rows, others give the L1Bs to the contracted axis, and then
    some L2Bs to the columns. If none of them fits, rows and columns share L1Bs and L2Bs in all
    ways.
    """
    roles, kind = roles_of(node, graph), precision_of(node, target)
    kept = list(kept_units(roles, node, hints, graph))
    kept += kept_units_of_few_rows(roles, node, hints, graph, target)
    # Long rows leave little room for the matrix: then n and k must share out its blocks.
    some = range(1, len(primes(target.level_range[Level.L2B.value])) + 1)
    rules = [
        SpreadRule(),
        SpreadRule(rows_first=True),
        SpreadRule(contracted=True),
        SpreadRule(contracted=True, rows_first=True),
        *(SpreadRule(contracted=True, l2bs=count) for count in some),
    ]
    if not roles.windows and roles.n > kind.rows:
        rules += [SpreadRule(l1bs=count) for count in _divided(node, graph, target)]
    if roles.windows:
        # The fewer MABs share the columns, the less of a layer's result the next layer collects.
        blocks = -(-roles.n // kind.rows)
        rules += [SpreadRule(columns=count) for count in (1, 2, 4) if count < blocks]
        rules += _columns_on_l2bs(node, graph, target, roles, blocks)
    for tried in (rules, _shared_units(target)):
        found = list(_by_rules(node, graph, target, (*kept, None), tried))
        yield from found
        if found or roles.windows:
            break


def across_groups(
    node: MNNode, graph: MNGraph, target: Target, hints: Layouts, *, terms: bool
) -> Iterator[Laid]:
    """Yield layouts in which groups share the terms, or the columns as such a product takes them.

    Between two such products nothing crosses groups but the sums of the second. There are none if
    the vectors have more elements than the matrix: then these had better stay where they are.
    """
    vectors, matrix = (prod(graph.values[name].shape) for name in node.inputs[:2])
    if vectors > matrix:
        return
    dtype = graph.values[node.outputs[0]].dtype
    within = [also for also in (True, False) if groups_meet(dtype, also, target)]
    roles, kind = roles_of(node, graph), precision_of(node, target)
    if terms:
        rules = [SpreadRule(contracted=also, grouped=True) for also in within]
    else:
        rules = [SpreadRule(contracted=also, outermost=True) for also in within]
    # Groups share columns evenly, and each MAB has some.
    if terms or roles.n % (target.groups * kind.rows * target.counts["mab"]) == 0:
        kept = kept_units(roles, node, hints, graph)
        yield from _by_rules(node, graph, target, (*kept, None), rules)


def _by_rules(
    node: MNNode,
    graph: MNGraph,
    target: Target,
    kept: Sequence[Spread | None],
    rules: Sequence[SpreadRule],
) -> Iterator[Laid]:
    """Yield the layouts of each spread that fit LM."""
    roles, kind = roles_of(node, graph), precision_of(node, target)
    # Sums over units are sums of singles.
    rounded = graph.values[node.outputs[0]].dtype is MNDtype.HALF
    done: set[Spread] = set()
    for near, rule in product(kept, rules):
        spread = spread_units(roles, kind, target, near, rule)
        # A last slice that is shorter may not fill all units.
        whole = not spread.k or whole_units(node, 0, terms_unit(spread, kind))
        shares = rule.contracted or rule.grouped
        if spread in done or (shares and (rounded or not spread.k or not whole)):
            continue
        done.add(spread)
        found = operand_layouts(node, graph, spread, target)
        if fits(node, found, target):
            yield Laid(found, {node.name: Resident()})


def _columns_on_l2bs(
    node: MNNode, graph: MNGraph, target: Target, roles: Roles, blocks: int
) -> list[SpreadRule]:
    """Return rules by which the columns of a convolution take L2Bs before MABs.

    If all pixels find room within an L2B, each L2B would read the whole matrix for them. A small
    one comes faster than the results of a layer cross L2Bs.
    """
    pixels = roles.m * prod(roles.batch)
    elements = prod(graph.values[node.inputs[1]].shape)
    if pixels > target.counts["l1b"] * target.counts["mab"] or not _large(
        _words(node, graph, elements, target), target
    ):
        return []
    sizes = [digit.size for digit in reversed(primes(target.level_range[Level.L2B.value]))]
    l2bs = {count: prod(sizes[:count]) for count in range(1, len(sizes) + 1)}
    return [
        SpreadRule(columns=-(-blocks // over), l2bs=count)
        for count, over in l2bs.items()
        if over <= blocks
    ]


def _shared_units(target: Target) -> list[SpreadRule]:
    """Return rules by which columns take some digits of L1Bs and of L2Bs, and rows the others."""
    l1bs, l2bs = (
        range(len(primes(target.level_range[level.value])) + 1) for level in (Level.L1B, Level.L2B)
    )
    return [
        SpreadRule(l1bs=inner, l2bs=outer, rows_first=not inner)
        for inner, outer in product(l1bs, l2bs)
    ]


def _divided(node: MNNode, graph: MNGraph, target: Target) -> Iterator[int]:
    """Yield how many digits of L1Bs may share out the columns of a large matrix.

    All of them bring each column once to an L2B; fewer make the matrix just small enough for LM1.
    """
    words = _words(node, graph, prod(graph.values[node.inputs[1]].shape[-2:]), target)
    if not _large(words, target):
        return
    digits = len(primes(target.level_range[Level.L1B.value]))
    for count in range(1, digits):
        if words >> count - 1 > _PART * target.words("lm1") >= words >> count:
            yield count
    yield digits


def _words(node: MNNode, graph: MNGraph, elements: int, target: Target) -> int:
    """Return the long words of elements of the matrix in a PE, if an L1B has all of them."""
    units = target.counts["mab"] * target.counts["pe"]
    return elements // (units * graph.values[node.inputs[1]].dtype.words_per_long)


def _large(words: int, target: Target) -> bool:
    return _LARGE * words >= target.words("lm1")


def _steps(node: MNNode, graph: MNGraph, found: Laid, target: Target) -> int:
    """Return the steps of a product with these layouts and their plan."""
    values = {n: replace(graph.values[n], layout=layout) for n, layout in found.items()}
    return steps(replace(node, plan=found.plans[node.name]), graph.with_values(values), target)


def steps(node: MNNode, graph: MNGraph, target: Target) -> int:
    """Return the steps of a product: those of its busiest slot, for lines of others fill gaps.

    The sums over units come behind all products.
    """
    schedule, known = schedule_of(node), _known(target)
    shape = type(node.plan), schedule.counted(node, graph, target)
    if shape not in known:
        found, behind = schedule.code(node, graph, target)
        busiest = max(slots_of(stages(found, target)).values()) // target.cycles
        known[shape] = busiest + waiting_steps(stages(behind, target), target)
    return known[shape]


@lru_cache(maxsize=16)
def _known(target: Target) -> dict[Hashable, int]:
    """Return the steps that are known by shape: addresses do not matter."""
    return {}


def _bring(node: MNNode, graph: MNGraph, layouts: Layouts, hints: Layouts, target: Target) -> int:
    """Estimate the cycles that bring the operands into their layouts.

    An operand that is on the device in another layout counts as a transfer from DRAM, without the
    time of the DRAM itself.
    """
    total = 0
    for name in dict.fromkeys(node.inputs[:2]):
        value, layout = graph.values[name], layouts[name]
        if name in hints and agrees(hints[name], layout, value.shape, value.dtype, target):
            continue
        slots = slots_of(download(layout, target))
        cycles = slots["l2bm"] + slots["l1bm"]
        total += cycles
        if name not in hints:
            total += max(0, plan_transfer(layout, target).mv_cycles - cycles)
    return total
