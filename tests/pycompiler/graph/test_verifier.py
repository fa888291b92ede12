"""Every rule of the verifier refuses a graph that breaks this rule and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from compiling import compiled, model_of

from pycompiler.errors import PycompilerError
from pycompiler.graph import Layout, Location, MNDtype, MNGraph, Side, Stage, parse_layout
from pycompiler.graph.plan import Resident
from pycompiler.graph.verify import STRUCTURE, verify, violations
from pycompiler.layers.operators import RULES
from pycompiler.machine import load_target

ALL = (*STRUCTURE, *RULES)


def planned() -> MNGraph:
    """A fully planned graph: r = x * y + y, on mini."""
    model = model_of(
        [("Mul", ["x", "y"], "p"), ("Add", ["p", "y"], "r")], {"x": (6, 40), "y": (40,)}, ["r"]
    )
    return compiled(model, fuse_elementwise=False)[0].graph


def change_value(graph: MNGraph, name: str, **changes: object) -> MNGraph:
    return graph.with_values({name: replace(graph.values[name], **changes)})


def change_node(graph: MNGraph, which: str, **changes: object) -> MNGraph:
    index = next(i for i, node in enumerate(graph.nodes) if node.op == which)
    nodes = list(graph.nodes)
    nodes[index] = replace(nodes[index], **changes)
    return replace(graph, nodes=tuple(nodes))


BREAKS: dict[str, Callable[[MNGraph], MNGraph]] = {
    "defined": lambda g: replace(g, nodes=g.nodes[::-1]),
    "made once": lambda g: replace(g, inputs=(*g.inputs, "r")),
    "recorded": lambda g: replace(g, values={k: v for k, v in g.values.items() if k != "x"}),
    "node names": lambda g: change_node(g, "Add", name=g.nodes[0].name),
    "host reasons": lambda g: change_node(g, "Add", side=Side.HOST),
    "dtypes": lambda g: change_value(g, "x", dtype=MNDtype.UNKNOWN),
    "locations": lambda g: change_value(g, "x", location=Location.HOST),
    "layouts": lambda g: change_value(g, "x", layout=parse_layout("((6:1), (64_PE:1))")),
    "concrete locations": lambda g: change_value(g, "x", location=Location.LM),
    "addresses": lambda g: change_value(g, "x", addr=3),
    "no overlap": lambda g: change_value(g, "y.lm1", location=Location.LM0, addr=0),
    "plans": lambda g: change_node(g, "Add", plan=Resident()),
    "accepted": lambda g: change_node(g, "Add", op="Frobnicate"),
}


def test_every_rule_has_a_case() -> None:
    assert {rule.name for rule in ALL} == set(BREAKS)


def test_a_planned_graph_breaks_no_rule() -> None:
    assert list(violations(planned(), load_target("mini"), ALL)) == []


@pytest.mark.parametrize("rule", BREAKS)
def test_rule(rule: str) -> None:
    broken = BREAKS[rule](planned())
    only = [r for r in ALL if r.name == rule]
    found = list(violations(broken, load_target("mini"), only))
    assert found
    assert all(name == rule for name, _ in found)
    with pytest.raises(PycompilerError) as caught:
        verify(broken, load_target("mini"), only)
    assert caught.value.code == "P0204"
    assert rule in caught.value.message


def test_rules_wait_for_their_stage() -> None:
    early = replace(BREAKS["addresses"](planned()), stage=Stage.LAYOUT)
    assert not any(name == "addresses" for name, _ in violations(early, load_target("mini"), ALL))


def test_all_operands_may_lie_in_one_lm() -> None:
    graph = change_value(planned(), "y.lm1", location=Location.LM0, addr=64)
    assert not [p for name, p in violations(graph, load_target("mini"), ALL) if name == "accepted"]


def test_layouts_of_one_operator_must_agree() -> None:
    graph = planned()
    flat = Layout(((), *graph.values["x"].layout.axes[1:]), graph.values["x"].layout.broadcast)
    copy = next(name for name in graph.values if name.startswith("x.lm"))
    changed = change_value(graph, copy, layout=flat)
    found = [p for name, p in violations(changed, load_target("mini"), RULES) if name == "accepted"]
    assert found


@pytest.mark.parametrize(
    ("layout", "refused"),
    [
        ("((3_MAB:1), (5_MAB:3))", True),  # the fifth MAB of each row holds padding
        ("((3_MAB:1), (5_MAB:4))", False),  # so it does here, but its number is a run of bits
        ("((3_MAB:1), (4_MAB:3))", False),  # no padding
    ],
)
def test_reduced_padding_must_be_a_run_of_bits(layout: str, refused: bool) -> None:
    model = model_of(
        [("ReduceSum", ["x", "axes"], "y")], {"x": (3, 4)}, ["y"], {"axes": np.array([1])}
    )
    graph = compiled(model, "mncore2")[0].graph
    source = next(node.inputs[0] for node in graph.nodes if node.op == "ReduceSum")
    broken = change_value(graph, source, layout=parse_layout(layout))
    found = [text for _, text in violations(broken, load_target("mncore2"), RULES)]
    assert any("distance is no power of two" in text for text in found) == refused
