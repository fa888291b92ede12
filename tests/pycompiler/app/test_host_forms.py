"""Nodes of the graph whose ONNX nodes call functions, on the host: drawn ones of drawn models."""

from __future__ import annotations

import random

import numpy as np
import onnx
import onnxruntime
import pytest
from compiling import LONG, compiled
from compiling import run as run_compiled
from onnx import TensorProto, helper, numpy_helper

from pycompiler.graph import MNGraph, MNNode
from pycompiler.layers.operators import LAYERS
from pycompiler.planners import side

#: Operators of the graph that no ONNX node has, as the models below bring them about.
WANTED = {"MNCoreTiles", "MNCoreGroupedConv", "MNCoreDepthwise", "MNCorePick", "MNCoreCrop"}
SEEDS = range(40) if LONG else (4, 5, 9, 13, 22)


def drawn(rng: random.Random) -> onnx.ModelProto:
    """Return a chain of convolutions, pools, picks and crops."""
    nodes, data = [], {}
    shape = (rng.choice([1, 2]), rng.choice([4, 8, 64]), rng.randint(9, 14), rng.randint(9, 14))
    given, value = shape, "x"
    generator = np.random.default_rng(rng.randrange(1 << 30))

    def constant(array: np.ndarray) -> str:
        name = f"c{len(data)}"
        data[name] = numpy_helper.from_array(array, name)
        return name

    for number in range(rng.randint(2, 3)):
        out, kind = f"v{number}", rng.choice(["conv", "conv", "pool", "pick", "crop"])
        channels, high, wide = shape[1:]
        if min(high, wide) < 6:
            kind = "pick"
        if kind == "conv":
            group = rng.choice([1, 2, channels])
            reach, pad = rng.choice([(1, 0), (3, 0), (3, 1)])
            kernel = (channels, channels // group, reach, reach)
            weights = generator.standard_normal(kernel, np.float32)
            reads = [value, constant(weights), constant(np.ones(channels, np.float32))]
            facts = {"group": group, "pads": [pad] * 4, "kernel_shape": [reach] * 2}
            nodes.append(helper.make_node("Conv", reads[: rng.choice([2, 3])], [out], out, **facts))
            less = reach - 1 - 2 * pad
            shape = (*shape[:2], high - less, wide - less)
        elif kind == "pool":
            facts = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
            nodes.append(helper.make_node("MaxPool", [value], [out], out, **facts))
            shape = (*shape[:2], (high - 1) // 2 + 1, (wide - 1) // 2 + 1)
        elif kind == "pick":
            places = np.array([rng.randrange(channels) for _ in range(channels)])
            nodes.append(helper.make_node("Gather", [value, constant(places)], [out], out, axis=1))
        else:
            bounds = [constant(np.array([n])) for n in (0, wide - 1, 3)]
            nodes.append(helper.make_node("Slice", [value, *bounds], [out], out))
            shape = (*shape[:3], wide - 1)
        value = out
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, size)]
        for name, size in (("x", given), (value, shape))
    ]
    graph = helper.make_graph(nodes, "g", *ends, list(data.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model


def test_drawn_nodes_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    decide, seen = side._reason, set()
    for seed in SEEDS:
        rng = random.Random(seed)
        model, share = drawn(rng), 1.0 if seed % 2 else 0.5

        def reason(node: MNNode, graph: MNGraph) -> str | None:
            found = decide(node, graph)
            if found is None and rng.random() < share:  # noqa: B023
                seen.add(node.op)
                return "drawn"
            return found

        monkeypatch.setattr(side, "_reason", reason)
        made, _ = compiled(model)
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        x = np.random.default_rng(seed).standard_normal(shape, np.float32)
        (found,) = run_compiled(made, {"x": x}).values()
        session = onnxruntime.InferenceSession(model.SerializeToString())
        (wanted,) = session.run(None, {"x": x})
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=f"seed {seed}")
    assert WANTED - seen == set()
    assert set(LAYERS) >= WANTED
