"""Equal parts of a graph, such as the layers of a transformer and their ways back.

Parts that follow each other are a chain. They are equal if they have the same operators and types,
and if each reads of its neighbours and of the rest of the graph what the others read. A chain may
read the parts of another one, forwards or backwards: the ways back of layers begin with the last
one. Such chains belong together, and parts of theirs are of one layer. A graph with two layers is
planned in a fraction of the time; the layers between get what the first of the two has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..graph.graph import MNGraph
from ..graph.layout import Layout

#: The layers that stay: one that stands for those behind it, and the last.
KEPT = 2
#: The fewest nodes that others stand for: plans of small graphs are cheap, and trials better them.
LEAST = 256
#: So many distances between nodes of one kind are tried as the size of a part, frequent ones first.
_SIZES = 16
#: For each value of a node the number of the node, and of its output.
_Makers = Mapping[str, tuple[int, int]]


@dataclass(eq=False)
class _Chain:
    """Equal parts: the first of ``count`` begins at node ``begin``, and each has ``size`` nodes.

    The first part is of layer ``first``; ``step`` is 1, or -1 if the parts go back. ``group`` are
    the chains that it belongs together with.
    """

    begin: int
    size: int
    count: int
    first: int = 0
    step: int = 1

    def __post_init__(self) -> None:
        self.group = [self]

    @property
    def nodes(self) -> range:
        """The nodes of all parts."""
        return range(self.begin, self.begin + self.count * self.size)

    def layer(self, node: int) -> int:
        """Return the layer of a node."""
        return self.first + self.step * ((node - self.begin) // self.size)

    def ends(self) -> tuple[int, int]:
        """Return the first and the last layer."""
        layers = self.first, self.first + self.step * (self.count - 1)
        return min(layers), max(layers)

    def kept(self) -> tuple[int, int]:
        """Return the layer that stands for those behind it, and the next one that stays."""
        ends = [one.ends() for one in self.group]
        return max(low for low, _ in ends), min(high for _, high in ends)

    def drops(self, node: int) -> bool:
        """Whether another layer stands for that of a node."""
        low, high = self.kept()
        return low < self.layer(node) < high

    def stand(self, node: int) -> int:
        """Return the node that stands for a node."""
        return self.like(node, self.kept()[0])

    def like(self, node: int, layer: int) -> int:
        """Return the node of another layer that is what ``node`` is in its own."""
        return node + (layer - self.layer(node)) * self.step * self.size


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
    owners = _owners(graph, wanted, makers)
    dropped = {number for number, chain in owners.items() if chain.drops(number)}
    wrong = True
    while wrong:
        kept = [number for number in range(len(graph.nodes)) if number not in dropped]
        moved: dict[tuple[int, str], str] = {}
        wrong = False
        for number in kept:
            for name in graph.nodes[number].inputs:
                made, place = makers.get(name, (-1, 0))
                if made in dropped:
                    like = _in_its_place(made, number, owners)
                    if like is None:
                        dropped -= {n for one in owners[made].group for n in one.nodes}
                        wrong = True
                    else:
                        moved[number, name] = graph.nodes[like].outputs[place]
    stands: dict[str, str] = {}
    for number in dropped:
        node, first = graph.nodes[number], graph.nodes[owners[number].stand(number)]
        stands |= zip(node.outputs, first.outputs, strict=True)
        for name, other in zip(node.inputs, first.inputs, strict=True):
            if name not in makers:
                stands.setdefault(name, other)
    nodes = []
    for number in kept:
        inputs = tuple(moved.get((number, name), name) for name in graph.nodes[number].inputs)
        nodes.append(replace(graph.nodes[number], inputs=inputs))
        for name in inputs:
            if name not in makers:
                stands.pop(name, None)
    return (replace(graph, nodes=tuple(nodes)), stands) if len(dropped) >= LEAST else None


def _in_its_place(made: int, reader: int, owners: Mapping[int, _Chain]) -> int | None:
    """Return the node whose results a node that stays reads in place of those of node ``made``.

    The next layers that stay are neighbours then. None if the reader is no neighbour.
    """
    chain, own = owners[made], owners.get(reader)
    if own is None or own.group is not chain.group:
        return None
    low, high = chain.kept()
    for here, there, beside in ((high, low, high - 1), (low, high, low + 1)):
        if own.layer(reader) == here and chain.layer(made) == beside:
            return chain.like(made, there)
    return None


def _owners(graph: MNGraph, wanted: Mapping[str, Layout], makers: _Makers) -> dict[int, _Chain]:
    """Return the chain of each node that is in one; large chains come first."""
    owners: dict[int, _Chain] = {}
    found = sorted(_chains(graph, wanted, makers), key=lambda one: (KEPT - one.count) * one.size)
    for chain in found:
        if owners.keys().isdisjoint(chain.nodes):
            owners |= dict.fromkeys(chain.nodes, chain)
    for chain in sorted({*owners.values()}, key=lambda one: one.begin):
        if not _joins(chain, graph, makers, owners):
            for number in chain.nodes:
                del owners[number]
    return owners


def _joins(chain: _Chain, graph: MNGraph, makers: _Makers, owners: Mapping[int, _Chain]) -> bool:
    """Say of which layers the parts of a chain are, by the chains that it reads.

    Whether all that it reads of chains before it is of one layer for each part.
    """
    found = Counter[tuple[_Chain, int, int]]()
    for number in chain.nodes[: -chain.size]:
        part, nodes = (number - chain.begin) // chain.size, graph.nodes
        pairs = zip(nodes[number].inputs, nodes[number + chain.size].inputs, strict=True)
        for name, other in pairs:
            at, its = (makers.get(one, (-1, 0))[0] for one in (name, other))
            if name == other or at < 0 or max(at, its) >= chain.begin:
                continue
            source = owners.get(at)
            if source is None or owners.get(its) is not source:
                return False
            parts, rest = divmod(its - at, source.size)
            if rest or abs(parts) != 1:
                return False
            step = parts * source.step
            found[source, step, source.layer(at) - step * part] += 1
    if found:
        (source, chain.step, chain.first), _ = found.most_common(1)[0]
        if any((one.group, step) != (source.group, chain.step) for one, step, _ in found):
            return False
        chain.group = source.group
        chain.group.append(chain)
    return True


def _chains(graph: MNGraph, wanted: Mapping[str, Layout], makers: _Makers) -> Iterator[_Chain]:
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
                yield _Chain(begin, size, (number - begin) // size + 1)
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
