"""Plan layouts: insert switches, give every value a layout, turn switches into passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ..errors import error
from ..graph.graph import MNGraph, Stage
from ..graph.layout import Layout, Layouts
from ..graph.plan import Laid, Plans
from ..layers.base import layout_of
from ..layout_spec import LayoutSpec
from ..machine import Target
from .equal_parts import shortened
from .first_arrival import FirstArrival
from .forced_layouts import force, match
from .lpz.families import FAMILIES
from .lpz.genes import genes
from .lpz.known import Known
from .lpz.planner import LayoutPlannerZ
from .lpz.tables import Estimate
from .overrides import ROLES, Overrides, wanted_genes, wanted_layouts, wanted_plans, without_genes
from .switch_insertion import cut_out, insert_switches, keep_apart, resolve_switches


@dataclass(eq=False)
class LayoutFacts:
    """Facts about a run of the planner, for the report.

    ``estimates`` has one entry per planner. ``search`` says how the search of the planner ``lpz``
    ended: ``complete`` if no choice among the candidates is cheaper, ``out of patience`` if too
    many rounds found no cheaper one. ``family`` names the family that gave the layouts, and
    ``family_values`` the values of its region; None if the layouts belong to no family.
    ``unused`` names the entries of files of forced layouts that match no operator.
    """

    estimates: dict[str, Estimate] = field(default_factory=dict)
    search: str = ""
    family: str | None = None
    family_values: tuple[str, ...] = ()
    unused: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class WithSwitches:
    """A graph in which every value on the device has a layout; its switches have no passes yet.

    ``named`` are the values of the graph before it had switches. ``genes`` are those that overrides
    name.
    """

    graph: MNGraph
    named: frozenset[str]
    genes: Mapping[str, tuple[str, str]]

    def rough(self) -> MNGraph:
        """Return the graph with the switches in it."""
        return self._told(self.graph)

    def resolved(self, target: Target) -> MNGraph:
        """Return the graph with passes in place of switches; P0305 if a switch has none."""
        return self._told(resolve_switches(self.graph, target, self.named))

    def _told(self, graph: MNGraph) -> MNGraph:
        told = {n: replace(graph.values[n], gene=gene) for n, gene in self.genes.items()}
        return graph.with_values(told, stage=Stage.LAYOUT)


_Planner = Callable[[MNGraph, Target, Layouts, LayoutFacts, Known], Laid]


def _lpz(
    graph: MNGraph,
    target: Target,
    wanted: Layouts,
    facts: LayoutFacts,
    known: Known,
    family: str | None = None,
) -> Laid:
    stands, taken = None, None
    if family is None and (short := shortened(graph, wanted)) is not None:
        known.large, stands = True, short.stands
        if not known.choice:
            wanted_there = {n: one for n, one in wanted.items() if n in short.graph.values}
            first = LayoutPlannerZ(short.graph, target, wanted_there, known)
            first.run()
            taken = first.taken
    planner = LayoutPlannerZ(graph, target, wanted, known, family, stands)
    found = planner.run()
    facts.estimates = {"first_arrival": planner.before, "lpz": planner.after}
    facts.search = "complete" if planner.exhausted else "out of patience"
    facts.family, facts.family_values = planner.taken or taken or (None, ())
    return found


def _operands(planned: MNGraph, given: Mapping[str, tuple[str, str]]) -> Layouts:
    """Return, for each value in ``given``, the layout of the operand that ``given`` names.

    P0306 if the dtypes differ.
    """
    products = {node.name: node for node in planned.nodes}
    out: dict[str, Layout] = {}
    for name, (product, role) in given.items():
        operand = planned.values[products[product].inputs[ROLES.index(role)]]
        if operand.dtype is not planned.values[name].dtype:
            reason = f"`{operand.name}` is {operand.dtype.value}"
            raise error("P0306", value=name, reason=reason)
        out[name] = layout_of(operand)
    return out


def _with_plans(graph: MNGraph, plans: Plans) -> MNGraph:
    nodes = (replace(node, plan=plans.get(node.name, node.plan)) for node in graph.nodes)
    return replace(graph, nodes=tuple(nodes))


#: The planners by the value of the option ``layout_planner``. A planner returns a layout for every
#: value on the device, and the plans of nodes. `lpz:` and a family is the planner `lpz` that keeps
#: to the family.
PLANNERS: Mapping[str, _Planner] = {
    "lpz": _lpz,
    "first_arrival": lambda graph, target, wanted, *_: FirstArrival(graph, target, wanted).run(),
    **{f"lpz:{name}": partial(_lpz, family=name) for name in FAMILIES},
}


def plan_layouts(
    graph: MNGraph,
    target: Target,
    overrides: Overrides | None = None,
    planner: str = "lpz",
    specs: Sequence[LayoutSpec] = (),
    facts: LayoutFacts | None = None,
    known: Known | None = None,
) -> WithSwitches:
    """Set layout, num_lw and gene of every value on the device.

    ``known`` has what plans of similar graphs for the same machine have found out.

    P0306 for an override that cannot be followed, P0311 for such a forced layout.
    """
    facts, known = facts or LayoutFacts(), known or Known()
    wanted, given = wanted_layouts(overrides or {}), wanted_genes(overrides or {})
    if given:
        # The layouts of the operands come from a first plan without the genes.
        others = without_genes(overrides or {})
        first = plan_layouts(graph, target, others, planner, specs, known=known)
        wanted = {**wanted, **_operands(first.resolved(target), given)}
    graph = _with_plans(graph, wanted_plans(graph, overrides or {}))
    forced = match(graph, specs)
    used = {spec.place for one in forced.values() for spec in one.specs.values()}
    facts.unused = [spec.place for spec in specs if spec.place not in used]
    named = frozenset(graph.values)
    graph = cut_out(keep_apart(insert_switches(graph, forced)), wanted, target)
    fixed = force(graph, forced, target)
    wanted, graph = {**wanted, **fixed}, _with_plans(graph, fixed.plans)
    layouts = PLANNERS[planner](graph, target, wanted, facts, known)
    found, on_device = genes(graph), graph.device_values()
    values = {
        name: replace(
            value,
            layout=layouts[name],
            num_lw=layouts[name].num_lw(target.cycles),
            gene=found.get(name, value.gene),
        )
        for name, value in graph.values.items()
        if name in on_device
    }
    return WithSwitches(_with_plans(graph, layouts.plans).with_values(values), named, given)
