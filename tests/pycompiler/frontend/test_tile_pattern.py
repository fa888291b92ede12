"""Pads and Gathers that become MNCoreTiles, and those that must not."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import compiled, model_of, run

from pycompiler.frontend.import_onnx import import_onnx
from pycompiler.frontend.tile_pattern import TILES
from pycompiler.machine import load_target


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
    nodes, constants, value = [], {}, "x"
    expected = np.random.default_rng(0).standard_normal((3, 6, 8)).astype(np.float32)
    x = expected
    if pads is not None:
        constants["pads"] = np.array(pads)
        nodes.append(("Pad", ["x", "pads"], "p"))
        value, expected = "p", np.pad(x, list(zip(pads[:3], pads[3:], strict=True)))
    for number, (axis, places) in enumerate(gathers):
        constants[f"i{number}"] = places
        nodes.append(("Gather", [value, f"i{number}"], f"g{number}"))
        value, expected = f"g{number}", np.take(expected, places, axis=axis)
    model = model_of(nodes, {"x": x.shape}, [value], constants)
    for number, (axis, _) in enumerate(gathers):
        gather = model.graph.node[number + (pads is not None)]
        gather.attribute.add(name="axis", type=2, i=axis)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    for size in expected.shape:
        model.graph.output[0].type.tensor_type.shape.dim.add(dim_value=size)
    graph = import_onnx(model, load_target("mini")).graph
    found = [node for node in graph.nodes if node.op == TILES]
    assert [node.op for node in graph.nodes].count("Pad") == (pads is not None and not found)
    if wanted is not None:
        assert len(graph.nodes) == 1
        assert wanted.items() <= dict(found[0].attributes).items()
        result, report = compiled(model)
        assert report["host_fallback"] == []
        assert np.array_equal(run(result, {"x": x})[value], expected)
    elif len(gathers) == 1:
        assert not found
