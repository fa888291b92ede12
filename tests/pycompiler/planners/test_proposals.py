"""Layouts near the one that a reader wants, and the order of the axes in Addr."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
import pytest
from compiling import compiled, random_inputs, run, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from pycompiler.graph import MNDtype, parse_layout
from pycompiler.graph.digits import parts
from pycompiler.graph.graph import MNGraph, MNNode, MNValue, Side, TensorType
from pycompiler.graph.layout import UNIT_LEVELS, Broadcast, Layout, Level, SubAxis
from pycompiler.layers.switch.layer import SWITCH
from pycompiler.layers.switch.pass_moves import LayoutChange
from pycompiler.machine import Target
from pycompiler.pfvm.session import HostSession
from pycompiler.planners.axis_classes import Classes
from pycompiler.planners.lpz.proposals import packed
from pycompiler.planners.switch_plan import plan_switch


def small(text: str, shape: tuple[int, ...]) -> tuple[Layout, MNValue]:
    layout = parse_layout(text)
    return layout, MNValue("x", TensorType("float", shape), MNDtype.FLOAT)


@given(st.integers(1, 4), st.sampled_from([4, 8, 12]), st.sampled_from([2, 6, 8]))
@settings(max_examples=tried(20))
def test_parts_of_addr_fill_the_pes_that_hold_nothing(
    target: Target, channels: int, rows: int, columns: int
) -> None:
    # Channels have all PEs and words of 16; up to four of them leave three of four PEs without any.
    text = f"((4_PE:1, 2:1, 2_W:1), ({rows}:2), ({columns}:{2 * rows}))"
    layout, value = small(text, (channels, rows, columns))
    found = list(packed(layout, value, target))
    assert found
    for one in found:
        assert one.num_lw(target.cycles) < layout.num_lw(target.cycles)
        words = [
            [p for p in parts(at, value.shape)[0] if p.level is Level.W] for at in (one, layout)
        ]
        assert words[0] == words[1]
        passes = plan_switch(LayoutChange(one, layout, value.shape, value.dtype), target)
        assert len(passes) == 1


def test_units_in_use_stay(target: Target) -> None:
    layout, value = small("((4_PE:1, 2:1, 2_W:1), (8:2); B@[MAB])", (16, 8))
    assert list(packed(layout, value, target)) == []


def convolutions(count: int, channels: int) -> onnx.ModelProto:
    """Return a chain of 3x3 convolutions with ReLU on two pictures."""
    rng = np.random.default_rng(channels)
    nodes, weights, last = [], [], "x"
    for number in range(count):
        wide = channels if number == 0 else 16
        matrix = rng.standard_normal((16, wide, 3, 3)).astype(np.float32) / 8
        weights.append(numpy_helper.from_array(matrix, f"w{number}"))
        reads, made = [last, f"w{number}"], [f"c{number}"]
        nodes.append(helper.make_node("Conv", reads, made, f"conv{number}", pads=[1, 1, 1, 1]))
        last = "y" if number == count - 1 else f"r{number}"
        nodes.append(helper.make_node("Relu", made, [last], f"relu{number}"))
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, width, 16, 16))]
        for name, width in (("x", channels), ("y", 16))
    ]
    graph = helper.make_graph(nodes, "g", *ends, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pictures_of_few_channels_arrive_without_padding(channels: int) -> None:
    model = convolutions(1, channels)
    x = random_inputs({"x": (2, channels, 16, 16)}, channels, 1.0)
    wanted = HostSession(model, "model").run(x)["y"]
    result, report = compiled(model, "mini", float_dtype="mixed")
    found = run(result, x)["y"]
    assert np.abs(found - wanted).max() <= 4e-3 * np.abs(wanted).max()
    (download,) = (one for one in report["nodes"] if one["output"] == "x.lm0")
    # Long words of two singles; the channels have four places, but not 16.
    assert download["dram_words"]["read"] <= 2 * 4 * 16 * 16 // 2


def test_regions_take_the_order_of_their_neighbours() -> None:
    """Rows and columns of pixels lie in Addr, and ReLU does not mind which of them is outside."""
    result, _ = compiled(convolutions(3, 16), "mini", float_dtype="mixed")
    assert [node.name for node in result.graph.nodes if node.op == SWITCH] == []


@given(st.permutations([0, 1, 2]), st.tuples(*[st.integers(2, 9)] * 3))
@settings(max_examples=tried(50))
def test_classes_keep_the_order_of_addresses(
    target: Target, order: list[int], shape: tuple[int, int, int]
) -> None:
    values = {name: TensorType("float", shape) for name in "xy"}
    node = MNNode("n", "Relu", ("x",), ("y",), side=Side.DEVICE)
    graph = MNGraph(
        "g",
        target.name,
        nodes=(node,),
        values={n: MNValue(n, t, MNDtype.FLOAT) for n, t in values.items()},
    )
    subs = {
        axis: SubAxis(shape[axis], Level.ADDR, prod(shape[a] for a in order[:place]))
        for place, axis in enumerate(order)
    }
    layout = Layout(
        tuple((subs[axis],) for axis in range(3)),
        tuple(Broadcast(lv) for lv in (Level.W, *reversed(UNIT_LEVELS))),
    )
    classes = Classes(graph, target)
    assert classes.adopt(graph.values["x"], layout)
    assert classes.lay_out(["y"])["y"].axes == layout.axes
