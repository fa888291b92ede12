"""How much slower a sanitized run is: the N-body example and a layer, on the whole chip.

The factor is of the time of all threads. `make bench` prints it and fails above the target.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import emu2
from pycompiler.machine import load_target
from pycompiler.options import parse_options
from pycompiler.pipeline import compile_onnx
from pycompiler.report.report import Report
from pycompiler.request import Request
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TARGET = 5.0
BODIES = 1024
WIDTH = 1024

Run = Callable[[bool], float]


def nbody() -> Run:
    """Return a function that runs the N-body example on a new machine."""
    sys.path.insert(0, str(EXAMPLES))
    example, chip = importlib.import_module("nbody"), importlib.import_module("chip")
    whole = chip.Chip("mncore2")
    text = example.build(whole, BODIES, 2.0**-10)
    padded = np.zeros((4, example.Layout(whole, BODIES).padded))
    padded[:3, :BODIES] = np.random.default_rng(1).normal(size=(3, BODIES))
    padded[3, :BODIES] = 1.0

    def run(sanitize: bool) -> float:
        machine, program = emu2.Machine(whole.spec), emu2.assemble(text, whole.spec)
        machine.write("pdm", padded.view(np.uint64).reshape(-1), group=0)
        start = time.process_time()
        report = machine.run(program, sanitize=sanitize)
        seconds = time.process_time() - start
        assert report.findings == []
        return seconds

    return run


def layer() -> Run:
    """Return a function that runs a product with bias and ReLU on a new board."""
    random = np.random.default_rng(1)
    weights = random.normal(size=(WIDTH, WIDTH)).astype(np.float32)
    made = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (256, WIDTH)) for name in ("x", "y")
    ]
    graph = helper.make_graph(
        made, "layer", values[:1], values[1:], [numpy_helper.from_array(weights, "w")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    model = onnx.shape_inference.infer_shapes(model)
    target = load_target("mncore2")
    app = compile_onnx(Request(model, target, parse_options({}), Report("mncore2", {}))).app
    x = random.normal(size=(256, WIDTH)).astype(np.float32)

    def run(sanitize: bool) -> float:
        board = Board(target)
        board.findings = [] if sanitize else None
        function = DeviceFunction(app, board)
        start = time.process_time()
        function.run({"x": x})["y"].values()
        assert not board.findings
        return time.process_time() - start

    return run


@pytest.mark.parametrize("make", [nbody, layer])
def test_a_sanitized_run_is_not_much_slower(benchmark, make: Callable[[], Run]) -> None:
    run = make()
    run(False)
    plain = min(run(False) for _ in range(3))
    sanitized = benchmark.pedantic(lambda: min(run(True) for _ in range(3)), rounds=1)
    factor = sanitized / plain
    print(
        f"\n{make.__name__}: plain {plain:.2f} s, sanitized {sanitized:.2f} s, {factor:.1f} times"
    )
    assert factor <= TARGET, f"{factor:.1f} times, at most {TARGET} are wanted"
