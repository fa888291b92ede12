"""Equal parts of a graph, such as the layers of a transformer and their ways back.

Parts that follow each other are a chain. They are equal if they have the same operators and types,
and if each reads of its neighbours and of the rest of the graph what the others read. A chain may
read the parts of another one, forwards or backwards: the ways back of layers begin with the last
one. Such chains belong together, and parts of theirs are of one layer. A graph with one layer, or
with two if there are ways back, is planned in a fraction of the time; the others get what it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..graph.graph import MNGraph, MNNode
from ..graph.layout import Layouts

#: The layers that stay at most: one that stands for those behind it, and the last.
KEPT = 2
#: The fewest nodes that others stand for: plans of small graphs are cheap, and trials better them.
LEAST = 256
#: So many distances between nodes of one kind are tried as the size of a part, frequent ones first.
_SIZES = 16
#: For each value of a node the number of the node, and of its output.
_Makers = Mapping[str, tuple[int, int]]


@dataclass(eq=False)
class _Chain:
    """Equal parts of ``size`` nodes; the last one may be a beginning only.

    The first part is of layer ``first``; ``step`` is 1, or -1 if the parts go back. ``group`` are
    the chains that it belongs together with.
    """

    nodes: range
    size: int
    first: int = 0
    step: int = 1

    def __post_init__(self) -> None:
        self.group = [self]

    def layer(self, node: int) -> int:
        """Return the layer of a node."""
        return self.first + self.step * ((node - self.nodes.start) // self.size)

    def kept(self) -> tuple[int, int]:
        """Return the layer that stands for those behind it, and the next one that stays."""
        last = [one.first + one.step * (len(one.nodes) // one.size - 1) for one in self.group]
        ends = [sorted((one.first, end)) for one, end in zip(self.group, last, strict=True)]
        return max(low for low, _ in ends), min(high for _, high in ends)

    def drops(self, node: int, *, alone: bool) -> bool:
        """Whether another layer stands for that of a node; if it is ``alone``, for the last too."""
        low, high = self.kept()
        return low < self.layer(node) < high + alone

    def like(self, node: int, layer: int) -> int:
        """Return the node of another layer that is what ``node`` is in its own."""
        return node + (layer - self.layer(node)) * self.step * self.size


#: A chain that another one reads, the direction of the other one, and the layer of its first part.
_Link = tuple[_Chain, int, int]


class Short(NamedTuple):
    """A graph without the nodes that others stand for.

    ``stands`` maps each value that is absent to the one that stands for it. ``times`` says of each
    node for how many it stands, with itself.
    """

    graph: MNGraph
    stands: Mapping[str, str]
    times: Mapping[str, int]


def repeats(graph: MNGraph, times: Mapping[str, int]) -> dict[str, int]:
    """Return how often the whole graph has each node of a short one, or what was made of it.

    ``times`` are those of a :class:`Short`. A node that it does not know, such as a switch, is
    there as often as what reads its results.
    """
    readers, found = graph.readers(), dict[str, int]()
    for node in reversed(graph.nodes):
        behind = (found.get(one.name, 1) for out in node.outputs for one in readers.get(out, ()))
        own = times.get(node.origin or node.name)
        found[node.name] = max(behind, default=1) if own is None else own
    return found


def shortened(graph: MNGraph, wanted: Layouts) -> Short | None:
    """Return the graph without the nodes that others stand for; None if they are few.

    Parts differ if layouts are ``wanted`` for values of one of them only.
    """
    makers = {
        name: (number, place)
        for number, node in enumerate(graph.nodes)
        for place, name in enumerate(node.outputs)
        if name
    }
    owners = _owners(graph, wanted, makers)
    dropped, moved = _left_out(graph, makers, owners, alone=False)
    if len(dropped) < LEAST:
        return None
    dropped, moved = max(
        (dropped, moved), _left_out(graph, makers, owners, alone=True), key=lambda one: len(one[0])
    )
    stands: dict[str, str] = {}
    times = Counter(node.name for number, node in enumerate(graph.nodes) if number not in dropped)
    for number in dropped:
        chain = owners[number]
        node, first = graph.nodes[number], graph.nodes[chain.like(number, chain.kept()[0])]
        times[first.name] += 1
        own = zip((*node.outputs, *node.inputs), (*first.outputs, *first.inputs), strict=True)
        stands |= {n: other for n, other in own if n in node.outputs or n not in makers}
    nodes = []
    for number, node in enumerate(graph.nodes):
        if number not in dropped:
            inputs = tuple(moved.get((number, name), name) for name in node.inputs)
            nodes.append(replace(node, inputs=inputs))
            for name in (*inputs, *node.outputs):
                stands.pop(name, None)
    return Short(_with_only(nodes, graph), stands, times)


def _with_only(nodes: Sequence[MNNode], graph: MNGraph) -> MNGraph:
    """Return the graph with these nodes, and what they read and make."""
    named = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    return replace(
        graph,
        nodes=tuple(nodes),
        inputs=tuple(name for name in graph.inputs if name in named),
        outputs=tuple((key, name) for key, name in graph.outputs if name in named),
        constants={name: data for name, data in graph.constants.items() if name in named},
        values={name: value for name, value in graph.values.items() if name in named},
    )


def _left_out(
    graph: MNGraph, makers: _Makers, owners: Mapping[int, _Chain], *, alone: bool
) -> tuple[set[int], dict[tuple[int, str], str]]:
    """Return the nodes that others stand for, and what those that stay read in place of theirs.

    The latter by the node that reads, and what it read. Chains stay whole if more than the next
    layer reads what they make.
    """
    dropped = {number for number, chain in owners.items() if chain.drops(number, alone=alone)}
    while True:
        moved, whole = dict[tuple[int, str], str](), set[int]()
        for number, node in enumerate(graph.nodes):
            for name in node.inputs if number not in dropped else ():
                made, place = makers.get(name, (-1, 0))
                if made in dropped:
                    like = _in_its_place(made, number, owners, alone=alone)
                    if like is None:
                        whole |= {at for one in owners[made].group for at in one.nodes}
                    else:
                        moved[number, name] = graph.nodes[like].outputs[place]
        if not whole:
            return dropped, moved
        dropped -= whole


def _in_its_place(
    made: int, reader: int, owners: Mapping[int, _Chain], *, alone: bool
) -> int | None:
    """Return the node whose results a node that stays reads in place of those of node ``made``.

    The next layers that stay are neighbours then; what is behind the last layer is behind the one
    that stays ``alone``. None if the reader is no neighbour.
    """
    chain, own = owners[made], owners.get(reader)
    low, high = chain.kept()
    inside = own is not None and own.group is chain.group and own.layer(reader) <= high
    if alone:
        return chain.like(made, low) if not inside and chain.layer(made) == high else None
    if own is None or own.group is not chain.group:
        return None
    for here, there, beside in ((high, low, high - 1), (low, high, low + 1)):
        if own.layer(reader) == here and chain.layer(made) == beside:
            return chain.like(made, there)
    return None


def _owners(graph: MNGraph, wanted: Layouts, makers: _Makers) -> dict[int, _Chain]:
    """Return the chain of each node that is in one; large chains come first."""
    owners: dict[int, _Chain] = {}
    found = sorted(_chains(graph, wanted, makers), key=lambda one: KEPT * one.size - len(one.nodes))
    for chain in found:
        if owners.keys().isdisjoint(chain.nodes):
            owners |= dict.fromkeys(chain.nodes, chain)
    for chain in sorted({*owners.values()}, key=lambda one: one.nodes.start):
        whole = chain.nodes
        _join(chain, _links(chain, graph, makers, owners))
        for number in range(chain.nodes.stop, whole.stop):
            del owners[number]
    return owners


def _join(chain: _Chain, links: Iterator[tuple[int, _Link | None]]) -> None:
    """Say of which layers the parts of a chain are; it ends where that is not clear."""
    found = Counter[_Link]()
    for number, link in links:
        others = {(id(one.group), step) for one, step, _ in found}
        if link is None or others - {(id(link[0].group), link[1])}:
            chain.nodes = range(chain.nodes.start, number + chain.size)
            break
        found[link] += 1
    if found and len(chain.nodes) > KEPT * chain.size:
        (source, chain.step, chain.first), _ = found.most_common(1)[0]
        chain.group = source.group
        chain.group.append(chain)


def _links(
    chain: _Chain, graph: MNGraph, makers: _Makers, owners: Mapping[int, _Chain]
) -> Iterator[tuple[int, _Link | None]]:
    """Yield nodes with the chains before it that a chain reads there.

    And the direction and the layer of its first part, if parts are of the layers that they read.
    None stands for values that are not of neighbouring parts of one chain.
    """
    nodes, start = graph.nodes, chain.nodes.start
    for number in chain.nodes[: -chain.size]:
        for pair in zip(nodes[number].inputs, nodes[number + chain.size].inputs, strict=True):
            at, its = (makers.get(one, (-1, 0))[0] for one in pair)
            if pair[0] == pair[1] or at < 0 or max(at, its) >= start:
                continue
            source = owners.get(at)
            parts, rest = divmod(its - at, source.size if source else 1)
            if source is None or owners.get(its) is not source or rest or abs(parts) != 1:
                yield number, None
                return
            step = parts * source.step
            layer = source.layer(at) - step * ((number - start) // chain.size)
            yield number, (source, step, layer)


def _chains(graph: MNGraph, wanted: Layouts, makers: _Makers) -> Iterator[_Chain]:
    kinds = _kinds(graph, wanted)
    latest: dict[int, int] = {}
    distances = Counter[int]()
    for number, kind in enumerate(kinds):
        if kind in latest:
            distances[number - latest[kind]] += 1
        latest[kind] = number
    for size, _ in distances.most_common(_SIZES):
        begin = 0
        for number in range(len(kinds)):
            other = number + size
            if other < len(kinds) and kinds[number] == kinds[other]:
                pairs = zip(graph.nodes[number].inputs, graph.nodes[other].inputs, strict=True)
                if all(_follows(*pair, makers, size, number, begin) for pair in pairs):
                    continue
            if number - begin >= KEPT * size:
                yield _Chain(range(begin, other), size)
            begin = number + 1


def _follows(name: str, other: str, makers: _Makers, size: int, number: int, begin: int) -> bool:
    """Whether ``other`` may be for a part what ``name`` is for node ``number`` in the part before.

    Parts begin at node ``begin``. The first reads what comes before it where others read parts.
    What was made before all parts may be of another chain.
    """
    (at, place), (its, its_place) = (makers.get(one, (-1, 0)) for one in (name, other))
    if its < 0 or at < 0:
        return at == its
    if place != its_place:
        return False
    return its - at == size or (at < begin and (its < begin or number < begin + size))


def _kinds(graph: MNGraph, wanted: Layouts) -> list[int]:
    """Return for each node the number of its kind."""
    given, results = {*graph.inputs, *graph.constants}, {name for _, name in graph.outputs}
    facts = {
        name: (v.type, v.dtype, v.location, name in given, name in results, wanted.get(name))
        for name, v in graph.values.items()
    }
    kinds: dict[object, int] = {}
    out = []
    for node in graph.nodes:
        names = [*node.inputs, *node.outputs]
        places, values = tuple(map(names.index, names)), tuple(map(facts.get, names))
        own = node.op, node.attributes, node.side, node.inplace, node.plan, places, values
        out.append(kinds.setdefault(own, len(kinds)))
    return out
