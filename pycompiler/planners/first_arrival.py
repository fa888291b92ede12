"""The planner `first_arrival`: a region has the layout of the first value that reaches it."""

from __future__ import annotations

from ..errors import error
from ..graph.disjoint_sets import DisjointSets
from ..graph.graph import MNGraph, MNNode
from ..graph.layout import Layout, Layouts
from ..graph.plan import Laid, follows, plans_of
from ..layers.operators import LAYERS
from ..layers.switch.layer import SWITCH
from ..machine import Target
from .axis_classes import Classes
from .switch_insertion import is_anchored


class FirstArrival:
    """Lays out regions and anchored nodes in the order of the graph.

    A *region* is a set of values that elementwise operators and reductions connect. Their layouts
    must agree. A region takes over the layout of the first value that reaches it, if it can.
    """

    def __init__(self, graph: MNGraph, target: Target, wanted: Layouts):
        self.graph, self.target = graph, target
        self.plan = Classes(graph, target)
        self.wanted = wanted
        self.layouts = Laid(wanted)
        self.region: dict[str, str] = {}
        self.members: dict[str, list[MNNode]] = {}
        joined = DisjointSets[str]()

        plain = [n for n in graph.device_nodes() if not is_anchored(n) and n.op != SWITCH]
        for node in plain:
            names = [name for name in (*node.inputs, *node.outputs) if name]
            for name in names[1:]:
                joined.join(name, names[0])
        for node in plain:
            for name in (*node.inputs, *node.outputs):
                if name:
                    self.region[name] = joined.root(name)
            self.members.setdefault(joined.root(node.outputs[0]), []).append(node)
        self._values: dict[str, list[str]] = {}
        for name, root in self.region.items():
            self._values.setdefault(root, []).append(name)
        anchored = [n for n in graph.device_nodes() if is_anchored(n)]
        self._anchored = {name for node in anchored for name in node.inputs}

    def run(self, seed: tuple[str, Layout] | None = None) -> Laid:
        """Return the layout of every value on the device; ``seed`` is a value that arrived before.

        Its region takes over its layout.
        """
        if seed is not None and seed[0] in self.region:
            self._lay_region(self.region[seed[0]], seed)
        elif seed is not None:
            self.layouts[seed[0]] = seed[1]
        if not any(is_anchored(n) or n.op == SWITCH for n in self.graph.device_nodes()):
            self.plan.spread()
            return Laid(self.plan.lay_out(sorted(self.graph.device_values())))
        sources = {n.outputs[0]: n.inputs[0] for n in self.graph.nodes if n.op == SWITCH}
        for node in self.graph.device_nodes():
            if node.op == SWITCH:
                self._arrive(node)
            elif is_anchored(node):
                self._anchor(node, sources)
            else:
                self._lay_region(self.region[node.outputs[0]])
        return self.layouts

    def _anchor(self, node: MNNode, sources: dict[str, str]) -> None:
        hints: dict[str, Layout] = {}
        for name in node.inputs:
            origin = sources.get(name, name)
            if origin in self.region:
                self._lay_region(self.region[origin])
            if origin in self.layouts:
                hints[name] = self.layouts[origin]
        found = self._named(node, hints)
        self.layouts.plans[node.name] = node.plan or plans_of(found).get(node.name)
        for name, layout in found.items():
            if name not in self.wanted:
                self.layouts[name] = layout
            # If the value in front of the switch has no layout yet, it gets the wanted one.
            self.layouts.setdefault(sources.get(name, name), layout)

    def _named(self, node: MNNode, hints: Layouts) -> Layouts:
        """Return the layouts that a layer names, for the plan that the node must have.

        P0306 if there are none.
        """
        layer, given = LAYERS[node.op], (node, self.graph, self.target)
        if node.plan is None or node.outputs[0] in self.wanted:
            return layer.layouts(*given, hints)
        for found in layer.candidates(*given, hints):
            for one in (found, *layer.variants(*given, found)):
                if follows(one, node.name, node.plan):
                    return one
        value, _, _ = node.outputs[0].rpartition(".own")
        raise error("P0306", value=value, reason=f"no layouts go with its plan {node.plan}")

    def _arrive(self, node: MNNode) -> None:
        source, result = node.inputs[0], node.outputs[0]
        if source not in self.layouts and result in self.layouts:
            # A variable that only nodes with forced layouts read: it has the first of these.
            self.layouts[source] = self.layouts[result]
        if source not in self.layouts or result in self.layouts:
            return
        if result in self.region:
            self._lay_region(self.region[result], (result, self.layouts[source]))
        elif self._kept(result):
            self.layouts[result] = self.layouts[source]

    def _kept(self, name: str) -> bool:
        """Whether no anchored node reads ``name``: then no layer names its layout."""
        return name not in self._anchored

    def _lay_region(self, region: str, seed: tuple[str, Layout] | None = None) -> None:
        nodes = self.members.get(region)
        if nodes is None:
            return
        if seed is not None:
            self.plan.adopt(self.graph.values[seed[0]], seed[1])
        self.plan.spread(nodes)
        del self.members[region]
        self.layouts |= self.plan.lay_out(n for n in self._values[region] if n not in self.layouts)
