"""Gemms between views that join axes and take them apart become products without the views."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from net import Net

from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.session import HostSession


def gemm(shape: tuple[int, ...], end: tuple[int, ...], **facts: int | float) -> Net:
    """Return a view to a matrix, a Gemm, and a view to ``end`` behind it."""
    net = Net(random.Random(1), *shape)
    terms, columns = int(np.prod(shape)) // int(np.prod(end[:-1])), end[-1]
    flat = net.view(net.put("Relu", "x"), -1, terms)
    sizes = (columns, terms) if facts.get("transB") else (terms, columns)
    bias = [net.weights(columns)] if facts.pop("row", 1) else []
    net.view(net.put("Gemm", flat, net.weights(*sizes), *bias, **facts), *end)
    return net


#: The axes before the view, those behind it, the Gemm's facts, and whether the views go.
CASES = {
    "rows": ((3, 5, 8), (3, 5, 6), {"transB": 1}, True),
    "heads": ((5, 3, 2, 4), (5, 3, 6), {}, True),
    "no row": ((3, 5, 8), (3, 5, 6), {"row": 0}, True),
    "four axes": ((2, 3, 5, 8), (2, 3, 5, 7), {"transB": 1}, True),
    "a factor": ((3, 5, 8), (3, 5, 6), {"alpha": 0.5}, False),
    "other axes": ((3, 5, 8), (5, 3, 6), {}, False),
}


@pytest.mark.parametrize("name", CASES)
def test_products_of_rows(name: str) -> None:
    """The host computes the same of both models."""
    shape, end, facts, goes = CASES[name]
    net = gemm(shape, end, **facts)
    model = net.model([net.nodes[-1].output[0]])
    found = optimise(model)
    onnx.checker.check_model(found)
    ops = [node.op_type for node in found.graph.node]
    assert ("Gemm" in ops) != goes
    assert ops.count("Reshape") == (2 if not goes else int(len(shape) != len(end)))
    inputs = {"x": net.draw.standard_normal(shape).astype(np.float32)}
    wanted = HostSession(model, "model").run(inputs)
    for key, array in HostSession(found, "found").run(inputs).items():
        assert np.abs(array - wanted[key]).max() <= 1e-5 * np.abs(wanted[key]).max()
