"""The variables that the planner chooses for, and the candidates that neighbours propose for them.

A variable is a region, an anchored node, or a value that only switches touch. The candidates of a
variable are proposed to the variables on the other side of its switches, with the data and against
it, several times. So a layout that suits a product reaches values far above the product (the
*genes* of these values).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...graph.graph import MNGraph, MNNode, MNValue
from ...graph.layout import Layout, Layouts
from ...graph.plan import Laid, Plan, follows, plans_of
from ...layers.operators import LAYERS
from ...layers.switch.layer import SWITCH
from ...machine import Target
from ..axis_classes import Classes, Region
from ..switch_insertion import is_anchored
from .costs import Costs
from .proposals import packed, unfolded

#: The most candidates of a variable, and how often proposals go through the graph and back.
POOL, SWEEPS = 24, 2
#: The most that a variable has beside these, which cross groups.
ASIDE = 6
#: A graph with fewer variables is small.
SMALL = 100

Candidate = Layouts


@dataclass(eq=False)
class Variable:
    """Values that are laid out together, the nodes whose costs depend on that, the candidates.

    A ``fixed`` variable keeps its first candidate. ``known`` has the keys of all its candidates,
    ``answers`` what is cheapest beside layouts of its values. ``aside`` counts candidates that take
    no places of others.
    """

    values: tuple[str, ...]
    nodes: tuple[MNNode, ...] = ()
    region: Region | None = None
    fixed: bool = False
    pool: list[Candidate] = field(default_factory=list)
    known: set[object] = field(default_factory=set)
    answers: dict[tuple[str, Layout], list[Candidate]] = field(default_factory=dict)
    aside: int = 0

    def room(self, room: int = POOL) -> bool:
        """Whether the pool has fewer than ``room`` candidates, without those aside."""
        return len(self.pool) - self.aside < room

    def add_aside(self, candidate: Candidate) -> None:
        """Add a candidate that takes no place of others, if there are few of these."""
        before = len(self.pool)
        if self.aside < ASIDE and self.add(candidate, len(self.pool) + 1):
            self.aside += len(self.pool) - before

    def add(self, candidate: Candidate, room: int = POOL) -> bool:
        """Add a new candidate if the pool has fewer than ``room``; whether the pool has it now.

        Candidates with another plan than the node must have are not added.
        """
        if self.nodes and not follows(candidate, self.nodes[0].name, self.nodes[0].plan):
            return False
        key = self._key(candidate)
        if key in self.known:
            return True
        if not self.room(room):
            return False
        self.known.add(key)
        self.pool.append(candidate)
        return True

    def place_of(self, candidate: Candidate) -> int:
        """Return the number of a candidate that was added, or of the one with the same layouts."""
        key = self._key(candidate)
        return next(at for at, one in enumerate(self.pool) if self._key(one) == key)

    def _key(self, candidate: Candidate) -> tuple[object, ...]:
        return (*(candidate[name] for name in self.values), self.plan_of(candidate))

    def plan_of(self, candidate: Candidate) -> Plan | None:
        """Return the plan of an anchored node in a candidate."""
        return plans_of(candidate).get(self.nodes[0].name) if self.nodes else None

    def part_of(self, layouts: Candidate) -> Candidate:
        """Return the layouts and the plan of this variable only."""
        plans = {node.name: self.plan_of(layouts) for node in self.nodes[:1]}
        return Laid({name: layouts[name] for name in self.values}, plans)


class Pools:
    """The variables of a graph; ``first`` has a layout for every value, the first candidate.

    ``stands`` maps values to those of another graph that were planned in their place.
    """

    def __init__(
        self,
        graph: MNGraph,
        target: Target,
        wanted: Iterable[str],
        first: Candidate,
        costs: Costs,
        stands: Mapping[str, str],
    ):
        self.graph, self.target = graph, target
        self.classes = Classes(graph, target)
        self.variables: list[Variable] = []
        self.of: dict[str, int] = {}
        self.switches = [node for node in graph.nodes if node.op == SWITCH]
        for name in wanted:
            self._variable([name], fixed=True)
        for region in self.classes.regions():
            self._variable(region.values, *region.nodes).region = region
        for node in graph.device_nodes():
            if is_anchored(node):
                self._variable((*node.inputs, *node.outputs), node)
        # Operands of a region with a single element have no class. Their layout must stay without
        # digits, as the other operands expect.
        plain = {
            name
            for node in graph.device_nodes()
            if node.op != SWITCH and not is_anchored(node)
            for name in (*node.inputs, *node.outputs)
        }
        for name in sorted(graph.device_values()):
            if name not in self.of:
                self._variable([name], fixed=name in plain)
        for variable in self.variables:
            variable.add(variable.part_of(first))
        self._done: set[tuple[str, str, Layout]] = set()
        #: What was tried for regions: variables with seeds.
        self._tried: set[tuple[int, object]] = set()
        self._costs, self._known, self._stands = costs, (known := costs.known), stands
        #: Whether products may cross groups. A small graph is planned once more, apart.
        self.cross_groups = known.apart or known.large or len(self.variables) >= SMALL

    def _variable(self, names: Iterable[str], *nodes: MNNode, fixed: bool = False) -> Variable:
        """Add a variable of the values that no other has."""
        own = tuple(name for name in dict.fromkeys(names) if name and name not in self.of)
        self.of |= dict.fromkeys(own, len(self.variables))
        self.variables.append(Variable(own, nodes, fixed=fixed))
        return self.variables[-1]

    def again(self, best: Sequence[int]) -> tuple[list[int], bool]:
        """Return ``best`` with what earlier searches chose for variables whose values are alike.

        And whether most variables are.
        """
        chosen, out, alike = self._known.choice, list(best), 0
        for number, variable in enumerate(self.variables):
            kept = None if variable.fixed else chosen.get(self._key_of(variable))
            if kept is None:
                continue
            layouts = {name: kept[0][self._stands.get(name, name)] for name in variable.values}
            found = Laid(layouts, {node.name: kept[1] for node in variable.nodes[:1]})
            if variable.add(found, POOL + 1):
                out[number], alike = variable.place_of(found), alike + 1
        return out, 2 * alike > len(self.variables)

    def keep(self, variable: Variable, candidate: Candidate) -> None:
        """Keep what was chosen for a variable, for the next search."""
        layouts = {self._stands.get(name, name): candidate[name] for name in variable.values}
        self._known.choice[self._key_of(variable)] = layouts, variable.plan_of(candidate)

    def _key_of(self, variable: Variable) -> object:
        """Return what variables of two graphs have in common if their values are alike."""
        values = (self.graph.values[name] for name in variable.values)
        return frozenset((self._stands.get(v.name, v.name), v.type, v.dtype) for v in values)

    def all_of(self, node: MNNode, candidate: Candidate) -> Candidate:
        """Return the layouts of all operands of ``node``.

        Operands that are not part of the candidate have the first layout of their own variable.
        """
        more = {}
        for name in (*node.inputs, *node.outputs):
            if name and name not in candidate:
                more[name] = self.variables[self.of[name]].pool[0][name]
        return Laid({**candidate, **more}, plans_of(candidate)) if more else candidate

    def fill(self) -> None:
        """Fill the pools: layers propose candidates, then variables propose to their neighbours."""
        for variable in self.variables:
            if variable.region is not None:
                self._spread(variable, None)
            elif variable.nodes and not variable.fixed:
                self._anchored(variable, {})
        for _ in range(SWEEPS):
            for node in reversed(self.switches):
                self._propose(node.outputs[0], node.inputs[0], against=True)
            for node in self.switches:
                self._propose(node.inputs[0], node.outputs[0], against=False)

    def _propose(self, giver: str, taker: str, *, against: bool) -> None:
        variable = self.variables[self.of[taker]]
        if variable.fixed or not variable.room():
            return
        value = self.graph.values[taker]
        for layout in list(dict.fromkeys(self._layouts(giver))):
            if (giver, taker, layout) in self._done:
                continue
            self._done.add((giver, taker, layout))
            for one in self._proposed(layout, value) if against else [layout]:
                if variable.region is not None:
                    for only in (None, *range(len(value.shape))):
                        self._spread(variable, (value, one, only))
                elif variable.nodes:
                    self._anchored(variable, {taker: one})
                else:
                    variable.add({taker: one})

    def _proposed(self, layout: Layout, value: MNValue) -> list[Layout]:
        """Return what a reader's layout proposes to a value in front of it."""
        outside = value.name in self.graph.inputs or value.name in self.graph.constants
        key, known = (layout, value.shape, value.dtype, outside), self._known.proposals
        if key not in known:
            known[key] = [layout, *unfolded(layout, value, self.target)]
            if outside:
                known[key] += packed(layout, value, self.target)
        return known[key]

    def _layouts(self, name: str) -> Iterator[Layout]:
        return (one[name] for one in self.variables[self.of[name]].pool)

    def _spread(self, variable: Variable, seed: tuple[MNValue, Layout, int | None] | None) -> None:
        """Add a candidate of a region; ``seed`` is a value with its layout, and an axis or None."""
        if not variable.room():
            return
        found = self.region_candidate(variable, seed)
        if found is not None:
            variable.add(found)

    def region_candidate(
        self, variable: Variable, seed: tuple[MNValue, Layout, int | None] | None
    ) -> Candidate | None:
        """Return a candidate of a region; None if it is known or there is none.

        The region takes over the layout of ``seed``, or only the digits of its axis.
        """
        region = variable.region
        assert region is not None
        key = id(variable), seed and (seed[0].name, *seed[1:])
        if key in self._tried:
            return None
        self._tried.add(key)
        self.classes.clear(region)
        if seed is not None:
            value, layout, only = seed
            if not self.classes.adopt(value, layout, None if only is None else (only,)):
                return None
            self.classes.repeat(value, region)
        self.classes.spread(region.nodes)
        digits = self.classes.digits_of(region)
        if digits in variable.known:
            return None
        variable.known.add(digits)
        return self.classes.lay_out(variable.values)

    def seeded(self, variable: Variable, seed: tuple[MNValue, Layout, None]) -> Candidate | None:
        """Return the candidate of a region, new or known, in which a value has a layout."""
        known = (one for one in variable.pool if one[seed[0].name] == seed[1])
        return self.region_candidate(variable, seed) or next(known, None)

    def _anchored(self, variable: Variable, hints: Layouts) -> None:
        if variable.room():
            for candidate in self.anchored_candidates(variable, hints):
                variable.add(candidate)
            if self.cross_groups:
                for candidate in self.anchored_candidates(variable, hints, across=True):
                    variable.add_aside(candidate)

    def anchored_candidates(
        self, variable: Variable, hints: Layouts, *, across: bool = False
    ) -> Iterator[Candidate]:
        """Yield the candidates of an anchored node for layouts that some operands may have.

        With ``across`` those that cross groups.
        """
        node = variable.nodes[0]
        kind, names = self._costs.kind(node)
        # Nodes that differ only in names get the same candidates.
        key = kind, across, *(hints.get(name) for name in names)
        if key not in self._known.candidates:
            layer = LAYERS[node.op]
            make = layer.across_groups if across else layer.candidates
            found = make(node, self.graph, self.target, hints)
            self._known.candidates[key] = [
                (tuple(one[name] for name in names), plans_of(one).get(node.name)) for one in found
            ]
        for layouts, plan in self._known.candidates[key]:
            yield variable.part_of(Laid(dict(zip(names, layouts, strict=True)), {node.name: plan}))
