"""The address planner: it gives every value an address in LM0, LM1 or DRAM.

Values whose lifetimes overlap get disjoint long words. Values are placed in the order of their
definition, each at the lowest address that is free for its whole lifetime. If that fails in LM, a
search follows. In the end, values in LM move apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import error
from ..graph.graph import Location, MNGraph, MNNode, MNValue, Stage
from ..layers.base import layout_of
from ..layers.dram_transfer import DOWNLOAD, take_turns
from ..layers.dram_transfer_plan import dram_words, plan_transfer
from ..layers.forget import without_forgets
from ..layers.split_concat import CONCAT, SPLIT, slices_of
from ..machine import Target
from ..planners.overrides import Overrides, wanted_addresses
from .address_search import Buffer, OutOfTimeError, place
from .best_fit import Block, Chains
from .given_addresses import with_given
from .in_place import written_in_place
from .spread_addresses import spread

#: For how many nodes the words of a download are kept free before it, if LM has enough words:
#: the download may then begin so early. So long the words of DRAM that only one node needs are kept
#: behind it: others need not wait for it.
AHEAD = (64, 32, 16, 12, 8, 4, 2, 0)
#: How many downloads may get more nodes than the others.
MOST_EARLIER = 64


def plan_addresses(
    graph: MNGraph,
    target: Target,
    overrides: Overrides | None = None,
    renewed: Mapping[str, str] | None = None,
) -> MNGraph:
    """Set the address of every device value, and leave out what has no code.

    ``renewed`` maps the key of an output to the registered value whose new value it is. The new
    value takes over the words of the old one where it can.
    P0302 if the values do not fit DRAM, P0304 if they do not fit LM. P0306 if an override gives an
    address that is impossible.
    """
    given, graph = wanted_addresses(overrides or {}), without_forgets(graph)
    slices = dict(slices_of(node) for node in graph.nodes if node.op in (SPLIT, CONCAT))
    blocks = _blocks(graph, slices, written_in_place(graph, renewed or {}), target)
    values: dict[str, MNValue] = {}
    for location, wanted in with_given(blocks, given, target).items():
        addresses = _addresses(Chains(wanted), graph, location, target)
        values |= {n: replace(graph.values[n], addr=at) for n, at in addresses.items()}
    for whole, parts in slices.items():
        words = plan_transfer(layout_of(graph.values[whole]), target).dram_words
        for number, part in enumerate(parts):
            addr = (values[whole].addr or 0) + number * words
            values[part] = replace(graph.values[part], addr=addr)
    return take_turns(graph.with_values(values, stage=Stage.ADDRESSED), target)


def _blocks(
    graph: MNGraph, slices: Mapping[str, Sequence[str]], on_old: Mapping[str, str], target: Target
) -> dict[Location, list[Block]]:
    """Return the values with their lifetimes. ``on_old`` has those that take over words in DRAM."""
    last = graph.last_use()
    end = len(graph.nodes)
    born = {out: index for index, node in enumerate(graph.nodes) for out in node.outputs}
    for name in (name for node in graph.nodes for name in node.outputs[1:] if name):
        if graph.values[name].location is Location.DRAM:
            last.setdefault(name, min(end, born[name] + AHEAD[0]))
    whole_run = {*graph.inputs, *graph.constants, *(name for _, name in graph.outputs)}
    inside = {part for parts in slices.values() for part in parts}
    found: dict[Location, list[Block]] = {}
    # A block that takes the address of another one comes after it.
    for name in sorted(graph.device_values() - inside, key=lambda name: (name in on_old, name)):
        value = graph.values[name]
        start, stop = born.get(name, 0), last.get(name, end)
        if value.location is Location.DRAM:
            on, words = on_old.get(name), dram_words(layout_of(value), target)
            if name in whole_run:
                start, stop = 0, end
            for part in slices.get(name, ()):
                start = min(start, born.get(part, start))
                stop = max(stop, last.get(part, stop))
        else:
            on, words = _taken_over(graph.nodes[start], name, graph), value.num_lw or 0
        block = Block(name, words, start, stop, on, value=value.copy_of)
        found.setdefault(value.location, []).append(block)
    return found


def _addresses(
    chains: Chains, graph: MNGraph, location: Location, target: Target
) -> dict[str, int]:
    """Return the addresses of the values in a memory. P0302, P0304."""
    capacity, local = target.words(location.memory), location is not Location.DRAM
    offsets, words = _packed(chains, graph, capacity, local)
    # The search cannot work with given addresses.
    if words > capacity and local and _is_free(chains):
        searched = _searched(chains, capacity, target)
        if searched is not None:
            offsets, words = searched, capacity
    if words > capacity:
        raise _too_much(graph, location, chains, offsets, capacity, words)
    if local:
        # Values fill whole vectors, and given addresses are those of vectors too.
        offsets = spread(chains, offsets, capacity, target.cycles)
    return chains.of_blocks(offsets)


def _is_free(chains: Chains) -> bool:
    return all(at is None for at in chains.given)


def _packed(chains: Chains, graph: MNGraph, capacity: int, local: bool) -> tuple[list[int], int]:
    """Pack the chains, and keep the words of downloads free before them, where there is room.

    First all downloads get the same number of nodes. Then they get more, the larger ones first: a
    few nodes for each of them come before many nodes for one.
    """
    loads = [n for n, chain in enumerate(chains.all) if _is_downloaded(chain[0], graph)]

    def ahead(number: int, nodes: int) -> int:
        return max(0, chains.starts[number] - nodes)

    for nodes in AHEAD:
        starts = list(chains.starts)
        for number in loads:
            starts[number] = ahead(number, nodes)
        offsets, words = chains.packed(starts)
        if words <= capacity or not loads:
            break
    if not local or words > capacity:
        return offsets, words
    larger = sorted(
        (n for n in loads if starts[n] != ahead(n, AHEAD[0])), key=lambda n: -chains.all[n][0].words
    )[:MOST_EARLIER]
    for more in (one for one in reversed(AHEAD) if one > nodes):
        for number in list(larger):
            before, starts[number] = starts[number], ahead(number, more)
            tried, needed = chains.packed(starts)
            if needed <= capacity:
                offsets, words = tried, needed
            else:
                starts[number] = before
                larger.remove(number)
    return offsets, words


def _is_downloaded(block: Block, graph: MNGraph) -> bool:
    node = graph.nodes[block.start] if block.start < len(graph.nodes) else None
    return node is not None and node.op == DOWNLOAD and node.outputs[0] == block.name


def _searched(chains: Chains, capacity: int, target: Target) -> list[int] | None:
    """Search for addresses after best fit has failed; None if the search finds none."""
    step = target.cycles
    rows = zip(chains.starts, chains.ends, chains.words, strict=True)
    buffers = [
        Buffer(str(number), start, end, words // step)
        for number, (start, end, words) in enumerate(rows)
    ]
    try:
        offsets = place(buffers, capacity // step)
    except OutOfTimeError:
        return None
    return None if offsets is None else [offsets[one.name] * step for one in buffers]


def _taken_over(node: MNNode, name: str, graph: MNGraph) -> str | None:
    """Return the operand whose long words the result ``name`` of ``node`` takes over."""
    if node.inplace is None or node.outputs[0] != name:
        return None
    operand = node.inputs[node.inplace]
    same = graph.values[operand].location is graph.values[name].location
    return operand if same else None


def _too_much(
    graph: MNGraph,
    location: Location,
    chains: Chains,
    addresses: Sequence[int],
    capacity: int,
    words: int,
) -> Exception:
    if location is Location.DRAM:
        return error("P0302", words=words, memory=location.memory, capacity=capacity)
    highest = max(range(len(addresses)), key=lambda n: addresses[n] + chains.words[n])
    worst = max(chains.all[highest], key=lambda block: block.words)
    node = graph.nodes[min(worst.start, len(graph.nodes) - 1)]
    where = f"{node.op} `{node.name}`"
    return error(
        "P0304",
        place=node.place,
        node=where,
        memory=location.memory,
        words=words,
        capacity=capacity,
        nodes=((node.origin or node.name,),),
    )
