"""Recurrent layers in the host's slow runtime, in the forms that onnxruntime lacks too."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
import torch
from compiling import with_seeds
from onnx import helper
from operator_recurrent import GATES, layer_of

from pycompiler.pfvm.session import evaluator


@pytest.mark.parametrize("kind", GATES)
def test_every_form(kind: str) -> None:
    with_seeds(lambda seed: check(kind, seed), 30, 1000)


def check(kind: str, seed: int) -> None:
    sample = layer_of(kind)(random.Random(seed))
    names = ["x", "w", "r", "b", "lengths", "h", "c", "p"]
    given = {name: a for name, a in sample.operands.items() if a is not None}
    wide = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in given.items()}
    reads = [name if name in wide else "" for name in names]
    results = [f"y{number}" for number in range(sample.outputs)]
    node = helper.make_node(kind, reads, results, **sample.attributes)
    kinds = {name: helper.np_dtype_to_tensor_dtype(a.dtype) for name, a in wide.items()}
    inputs = [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in wide.items()]
    outputs = [helper.make_tensor_value_info(n, onnx.TensorProto.DOUBLE, None) for n in results]
    graph = helper.make_graph([node], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    found = evaluator(model)
    assert found is not None
    made = found.run(None, wide)
    wanted = sample.function(**{n: torch.from_numpy(a) for n, a in wide.items()})
    for own, other in zip(made, wanted, strict=True):
        assert np.allclose(own, other.numpy(), rtol=1e-9, atol=1e-12), (seed, sample.attributes)


def test_no_steps_leave_the_state() -> None:
    shapes = {"x": (0, 2, 3), "w": (1, 20, 3), "r": (1, 20, 5), "h": (1, 2, 5)}
    given = {name: np.ones(shape) for name, shape in shapes.items()}
    kind, info = onnx.TensorProto.DOUBLE, helper.make_tensor_value_info
    node = helper.make_node("LSTM", ["x", "w", "r", "", "", "h"], ["y", "last"], hidden_size=5)
    results = [info("y", kind, (0, 1, 2, 5)), info("last", kind, (1, 2, 5))]
    inputs = [info(name, kind, shape) for name, shape in shapes.items()]
    graph = helper.make_graph([node], "g", inputs, results)
    found = evaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    assert found is not None
    made = found.run(None, given)
    assert made[0].shape == (0, 1, 2, 5)
    assert (made[1] == given["h"]).all()
