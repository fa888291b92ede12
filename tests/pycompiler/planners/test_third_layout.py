"""Layout switches whose way leads through a layout that neither end suggests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pycompiler.graph import MNDtype, parse_layout
from pycompiler.layers.switch.pass_moves import LayoutChange
from pycompiler.layers.switch.pass_search import cheapest_passes, pass_steps
from pycompiler.machine import load_target
from pycompiler.planners.switch_plan import plan_switch

UNITS_FOR_CHANNELS = "((2_MAB:2, 2_MAB:4, 2_L2B:4), (4_L2B:1, 8_L1B:1, 2_MAB:8)"


@pytest.mark.parametrize(
    ("source", "result", "width"),
    [
        # H and W go from units to LM, channels the other way.
        (
            f"{UNITS_FOR_CHANNELS}, (29:28, 2_MAB:1, 2:14), (7:2, 4_PE:1, 2_W:1, 2:1))",
            "((2_L2B:1, 2_L1B:4, 2_L1B:2), (2_L1B:1, 2_MAB:8, 2_MAB:4, 2_MAB:2, 2_MAB:1, 2_PE:2), "
            "(8:112, 2_L2B:4, 2_L2B:2, 2_PE:1, 2_W:1), (112:1))",
            112,
        ),
        # Copies fill LM, so they are made last.
        (
            "((2_L2B:2, 2_L2B:1, 2_L1B:4), (2_L1B:2, 2_L1B:1, 2_MAB:8, 2_MAB:4, 2_MAB:2, 2_MAB:1), "
            "(15:58, 2_L2B:4, 2_PE:2, 2_PE:1), (58:1, 2_W:1))",
            f"{UNITS_FOR_CHANNELS}, (29:58, 2_MAB:1, 2_PE:1), (29:2, 2_W:1, 2:1); B@[2_PE:2])",
            116,
        ),
    ],
)
def test_the_way_may_lead_through_a_layout_that_no_end_suggests(
    source: str, result: str, width: int
) -> None:
    # Both are of the gradient of a max pool, 8 pictures of 64 channels.
    target = load_target("mncore2")
    change = LayoutChange(
        parse_layout(source), parse_layout(result), (8, 64, 116, width), MNDtype.FLOAT
    )
    assert cheapest_passes(change, target) is None
    before = change.source
    for step in plan_switch(change, target):
        one = replace(change, source=before, result=step.layout)
        assert pass_steps(one, step.level, target) == step.steps
        assert step.layout.num_lw(target.cycles) <= target.words("lm0")
        before = step.layout
    assert before == change.result
