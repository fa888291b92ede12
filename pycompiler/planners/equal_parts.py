"""Equal parts of a graph that follow each other, such as the layers of a transformer.

Parts are equal if they have the same operators and types, and if each reads of the part before it
and of the rest of the graph what the others read. A graph with two of them is planned in a
fraction of the time; the parts between the first and the last get what the first one has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..graph.graph import MNGraph
from ..graph.layout import Layout

#: The first part, which stands for those between, and the last.
KEPT = 2
#: The fewest nodes that others stand for: plans of small graphs are cheap, and trials better them.
LEAST = 256
#: So many distances between nodes of one kind are tried as the size of a part, frequent ones first.
_SIZES = 16
#: For each value of a node the number of the node, and of its output.
_Makers = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Chain:
    """Equal parts: the first of ``count`` begins at node ``begin``, and each has ``size`` nodes."""

    begin: int
    size: int
    count: int

    @property
    def end(self) -> int:
        """The node behind the last part."""
        return self.begin + self.count * self.size

    @property
    def dropped(self) -> range:
        """The nodes that others stand for."""
        return range(self.begin + self.size, self.end - self.size)


def shortened(
    graph: MNGraph, wanted: Mapping[str, Layout]
) -> tuple[MNGraph, Mapping[str, str]] | None:
    """Return the graph without the nodes that others stand for; None if they are few.

    And a map from each value that is absent to the one that stands for it. Parts differ if layouts
    are ``wanted`` for values of one of them only.
    """
    makers = {
        name: (number, place)
        for number, node in enumerate(graph.nodes)
        for place, name in enumerate(node.outputs)
        if name
    }
    dropped, stands = set[int](), dict[str, str]()
    for chain in _disjoint(sorted(_chains(graph, wanted, makers), key=lambda c: -len(c.dropped))):
        dropped |= {*chain.dropped}
        for number in chain.dropped:
            node = graph.nodes[number]
            like = graph.nodes[chain.begin + (number - chain.begin) % chain.size]
            stands |= zip(node.outputs, like.outputs, strict=True)
            for name, other in zip(node.inputs, like.inputs, strict=True):
                if name not in makers:
                    stands.setdefault(name, other)
    kept = [node for number, node in enumerate(graph.nodes) if number not in dropped]
    for name in {name for node in kept for name in node.inputs if name not in makers}:
        stands.pop(name, None)
    nodes = (replace(n, inputs=tuple(stands.get(one, one) for one in n.inputs)) for n in kept)
    return (replace(graph, nodes=tuple(nodes)), stands) if len(dropped) >= LEAST else None


def _disjoint(chains: list[Chain]) -> Iterator[Chain]:
    taken: set[int] = set()
    for chain in chains:
        if taken.isdisjoint(own := range(chain.begin, chain.end)):
            taken |= {*own}
            yield chain


def _chains(graph: MNGraph, wanted: Mapping[str, Layout], makers: _Makers) -> Iterator[Chain]:
    kinds = _kinds(graph, wanted)
    latest: dict[int, int] = {}
    distances = Counter[int]()
    for number, kind in enumerate(kinds):
        if kind in latest:
            distances[number - latest[kind]] += 1
        latest[kind] = number
    readers = {name: at for at, node in enumerate(graph.nodes) for name in node.inputs}
    for size, _ in distances.most_common(_SIZES):
        begin = 0
        for number in range(len(kinds)):
            other = number + size
            if other < len(kinds) and kinds[number] == kinds[other]:
                pairs = zip(graph.nodes[number].inputs, graph.nodes[other].inputs, strict=True)
                if all(_follows(*pair, makers, size, number, begin) for pair in pairs):
                    continue
            chain = Chain(begin, size, (number - begin) // size + 1)
            made = (name for at in chain.dropped for name in graph.nodes[at].outputs)
            if chain.count > KEPT and all(readers.get(n, 0) < chain.end for n in made):
                yield chain
            begin = number + 1


def _follows(name: str, other: str, makers: _Makers, size: int, number: int, begin: int) -> bool:
    """Whether ``other`` is for a part what ``name`` is for node ``number`` in the part before it.

    Parts begin at node ``begin``. The first reads what comes before it where others read parts.
    """
    at, place = makers.get(name, (-1, 0))
    its, its_place = makers.get(other, (-1, 0))
    if at < begin and name == other:
        return True
    if its < 0 or at < 0:
        return at == its
    if place != its_place:
        return False
    return its - at == size or (number < begin + size and at < begin <= its)


def _kinds(graph: MNGraph, wanted: Mapping[str, Layout]) -> list[int]:
    """Return for each node the number of its kind."""
    given, results = {*graph.inputs, *graph.constants}, {name for _, name in graph.outputs}
    kinds: dict[object, int] = {}

    def facts(name: str) -> object:
        value = graph.values.get(name)
        if value is None:
            return None
        same = name in given, name in results, wanted.get(name)
        return value.type, value.dtype, value.location, *same

    out = []
    for node in graph.nodes:
        names = [*node.inputs, *node.outputs]
        own = (
            *(node.op, node.attributes, node.side, node.inplace, node.plan),
            tuple(map(names.index, names)),
            tuple(map(facts, names)),
        )
        out.append(kinds.setdefault(own, len(kinds)))
    return out
