"""Layout switches whose way leads through a layout that neither end suggests."""

from __future__ import annotations

from dataclasses import replace

from pycompiler.graph import MNDtype, parse_layout
from pycompiler.layers.switch.pass_moves import LayoutChange
from pycompiler.layers.switch.pass_search import cheapest_passes, pass_steps
from pycompiler.machine import load_target
from pycompiler.planners.switch_plan import plan_switch


def test_the_way_may_lead_through_a_layout_that_no_end_suggests() -> None:
    """Both ends nearly fill LM, so that digits have no room to change places."""
    target = load_target("mini")
    source = "((2_PE:2), (4:1, 2_W:1, 2_PE:1), (3:4, 2_MAB:1), (14:12); B@[2_L1B:1,2_MAB:2])"
    result = "((2_MAB:1), (2_L1B:1, 2_PE:2, 7:35), (2_W:1, 5:1), (2_PE:1, 7:5); B@[2_MAB:2])"
    change = LayoutChange(parse_layout(source), parse_layout(result), (2, 16, 5, 14), MNDtype.FLOAT)
    assert cheapest_passes(change, target) is None
    before = change.source
    for step in plan_switch(change, target):
        one = replace(change, source=before, result=step.layout)
        assert pass_steps(one, step.level, target) == step.steps
        assert step.layout.num_lw(target.cycles) <= target.words("lm0")
        before = step.layout
    assert before == change.result
