"""Pads and Gathers that become MNCoreTiles, and those that must not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from compiling import model_of
from tiled_shapes import result_shape

from pycompiler.frontend.tile_pattern import tiles
from pycompiler.graph import MNGraph, MNValue, TensorType
from pycompiler.machine import load_target
from pycompiler.pfvm.lower import lower


def index(count: int, places: int, reach: int) -> np.ndarray:
    return np.arange(count)[:, None] * places + np.arange(reach)


#: pads, the Gathers (axis and index), and the attributes of the node; None if there is no such node
CASES: list[
    tuple[list[int] | None, list[tuple[int, np.ndarray]], dict[str, tuple[int, ...]] | None]
]
CASES = [
    (
        [0, 1, 1, 0, 1, 1],
        [(2, index(4, 2, 4)), (1, index(2, 3, 5))],
        {"axes": (1, 2), "counts": (2, 4), "places": (3, 2), "before": (1, 1), "reach": (5, 4)},
    ),
    (
        [1, 0, 0, 2, 0, 2],
        [(2, index(4, 2, 4))],
        {"axes": (0, 2), "counts": (1, 4), "places": (3, 2), "before": (1, 0), "reach": (6, 4)},
    ),
    (None, [(1, index(3, 2, 2))], {"axes": (1,), "counts": (3,), "places": (2,), "before": (0,)}),
    # An axis of places is not cut again.
    ([0, 0, 0, 0, 0, 2], [(2, index(4, 2, 4)), (3, index(2, 2, 2))], None),
    # The tiles do not hold the whole axis, or reach past their neighbours.
    (None, [(1, index(2, 2, 2))], None),
    (None, [(1, index(4, 1, 3))], None),
    # Rows that are no ranges.
    (None, [(1, index(3, 2, 2)[:, ::-1].copy())], None),
]


@pytest.mark.parametrize(("pads", "gathers", "wanted"), CASES)
def test_pattern(
    pads: list[int] | None,
    gathers: list[tuple[int, np.ndarray]],
    wanted: dict[str, tuple[int, ...]] | None,
) -> None:
    shape, value = (3, 6, 8), "x"
    nodes, data = [], {}
    types = {"x": TensorType("float", shape)}
    if pads is not None:
        data["pads"] = np.array(pads)
        nodes.append(onnx.helper.make_node("Pad", ["x", "pads"], ["p"], name="pad"))
        shape = tuple(size + pads[axis] + pads[axis + 3] for axis, size in enumerate(shape))
        value, types["p"] = "p", TensorType("float", shape)
    for number, (axis, places) in enumerate(gathers):
        data[f"i{number}"], out = places, f"g{number}"
        reads = [value, f"i{number}"]
        nodes.append(onnx.helper.make_node("Gather", reads, [out], name=out, axis=axis))
        shape = (*shape[:axis], *places.shape, *shape[axis + 1 :])
        value, types[out] = out, TensorType("float", shape)
    found, joined = tiles({node.name: node for node in nodes}, types, data, [value])
    if wanted is None:
        assert value not in found
        return
    assert list(found) == [value]
    assert wanted.items() <= dict(found[value].attributes).items()
    assert joined == {node.name for node in nodes[:-1]}
    values = {name: MNValue(name, types[name]) for name in ("x", value)}
    graph = MNGraph("g", "mini", nodes=tuple(found.values()), values=values)
    assert result_shape(found[value], graph) == shape


@pytest.mark.parametrize("beside", ["Relu", "LessOrEqual"])
def test_tiles_beside_a_function(beside: str) -> None:
    """A model with a function of ONNX is written out twice, and its tiles stay tiles."""
    reads = ["c", "zero"][: 1 + (beside == "LessOrEqual")]
    model = model_of(
        [("Conv", ["x", "w"], "c"), (beside, reads, "y")],
        {"x": (8, 16, 34, 34)},
        ["y"],
        {"w": np.ones((16, 16, 3, 3), np.float32), "zero": np.float32(0)},
    )
    written = lower(model, load_target("mncore2"))
    ranks = {tensor.name: len(tensor.dims) for tensor in written.graph.initializer}
    cuts = [node for node in written.graph.node if node.op_type == "Gather"]
    assert cuts
    assert all(ranks[node.input[1]] == 2 for node in cuts)
