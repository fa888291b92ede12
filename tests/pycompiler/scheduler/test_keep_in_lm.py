"""What `spill_opt` does with values that lose their place in LM, and with parts of values."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import compiled, model_of, random_inputs, run

from pycompiler.graph.graph import MNGraph
from pycompiler.graph.text import parse_graph
from pycompiler.layers.dram_transfer import DOWNLOAD, UPLOAD
from pycompiler.layers.local_copy import COPY

Nodes = list[tuple[str, list[str], str]]


def scheduled(
    nodes: Nodes, shapes: dict[str, tuple[int, ...]], outputs: list[str], **more: object
) -> MNGraph:
    """Return the scheduled graph; the results must be those of a scheduler that keeps nothing."""
    model = model_of(nodes, shapes, outputs, **more)
    options = {"time_slice": "off", "fuse_elementwise": False}
    result, _ = compiled(model, "mini", scheduler="spill_opt", **options)
    plain, _ = compiled(model, "mini", scheduler="always_from_dram", **options)
    inputs = random_inputs(shapes, 3)
    found, wanted = run(result, inputs), run(plain, inputs)
    assert all(np.array_equal(found[name], wanted[name], equal_nan=True) for name in outputs)
    return parse_graph(result.dumps["layout.spill_opt.txt"])


@pytest.mark.parametrize(
    ("sizes", "nodes", "outputs", "copied"),
    [
        # Values lie where nothing need be copied.
        (
            {"x": 200, "y": 200, "z": 60},
            [
                ("Exp", ["y"], "y0"),
                ("Neg", ["z"], "z1"),
                ("Add", ["x", "x"], "x2"),
                ("Neg", ["y0"], "y3"),
                ("Add", ["y", "y0"], "y4"),
                ("Neg", ["z1"], "z5"),
                ("Exp", ["x"], "x6"),
                ("Mul", ["x2", "x2"], "x7"),
                ("Neg", ["z5"], "z8"),
                ("Mul", ["y4", "y3"], "y9"),
            ],
            ["x7", "y9", "z8"],
            0,
        ),
        (
            {"x": 200, "y": 100, "z": 250},
            [
                ("Add", ["y", "y"], "y0"),
                ("Add", ["y0", "y"], "y1"),
                ("Mul", ["y0", "y"], "y2"),
                ("Exp", ["y"], "y3"),
                ("Neg", ["z"], "z4"),
                ("Mul", ["x", "x"], "x5"),
                ("Mul", ["z4", "z4"], "z6"),
                ("Add", ["z4", "z4"], "z7"),
                ("Add", ["z4", "z6"], "z8"),
                ("Mul", ["y0", "y0"], "y9"),
                ("Exp", ["x5"], "x10"),
            ],
            ["x10", "y9", "z8"],
            0,
        ),
        # A result moves to the other LM when its own is full.
        (
            {"x": 60, "y": 150, "z": 200},
            [
                ("Exp", ["x"], "x0"),
                ("Neg", ["y"], "y1"),
                ("Exp", ["z"], "z2"),
                ("Neg", ["y"], "y3"),
                ("Add", ["z2", "z"], "z4"),
                ("Exp", ["y3"], "y5"),
                ("Add", ["z4", "z"], "z6"),
                ("Mul", ["y3", "y"], "y7"),
                ("Mul", ["x0", "x"], "x8"),
                ("Neg", ["z6"], "z9"),
                ("Mul", ["y3", "y"], "y10"),
                ("Neg", ["x8"], "x11"),
            ],
            ["y1", "y5", "y7", "z9", "y10", "x11"],
            1,
        ),
    ],
)
def test_a_value_moves_to_the_other_lm(
    sizes: dict[str, int], nodes: Nodes, outputs: list[str], copied: int
) -> None:
    """Test that nothing passes through DRAM but inputs and outputs."""
    shapes = {name: (size, 8, 8) for name, size in sizes.items()}  # `size` long words of each PE
    graph = scheduled(nodes, shapes, outputs)
    assert sum(node.op == UPLOAD for node in graph.nodes) == len(outputs)
    assert sum(node.op == DOWNLOAD for node in graph.nodes) == len(shapes)
    read = {name for node in graph.nodes for name in node.inputs}
    copies = [node for node in graph.nodes if node.op == COPY]
    assert len(copies) == copied
    assert all(node.outputs[0] in read for node in copies)


def test_a_value_moves_again_before_it_goes_to_dram() -> None:
    """Another copy between the LMs takes less time than a way to DRAM and back."""
    nodes: Nodes = [
        ("Exp", ["x"], "x0"),
        ("Neg", ["y"], "y1"),
        ("Mul", ["z", "z"], "z2"),
        ("Exp", ["x0"], "x3"),
        ("Mul", ["x", "x0"], "x4"),
        ("Neg", ["z"], "z5"),
        ("Add", ["x", "x4"], "x6"),
        ("Neg", ["x0"], "x7"),
        ("Add", ["y1", "y1"], "y8"),
        ("Neg", ["z5"], "z9"),
        ("Neg", ["x4"], "x10"),
        ("Exp", ["x7"], "x11"),
        ("Exp", ["x7"], "x12"),
        ("Neg", ["y8"], "y13"),
    ]
    shapes = {"x": (230, 8, 8), "y": (90, 8, 8), "z": (180, 8, 8)}
    graph = scheduled(nodes, shapes, ["z2", "x3", "x6", "z9", "x10", "x11", "x12", "y13"])
    moved = [node for node in graph.nodes if node.op == COPY and node.inputs[0].startswith("y1.")]
    assert len(moved) > 1
