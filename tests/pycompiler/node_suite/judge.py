"""Compiles and runs one node test of ONNX, and says what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from suites.compare import compiled, differ
from suites.outcome import CONTRACT, WRONG, Outcome, judged

from pycompiler.pfvm.names import graphs
from pycompiler.pfvm.random import is_random

from .cases import NodeTest

#: Not what the test says, but what onnxruntime gives for the model of the test as a whole.
ONNXRUNTIME = "onnxruntime"
#: The tests that may be as in onnxruntime: ONNX says that the last elements of both tensors meet.
#: onnxruntime and torch take the size of the result for that, the test the size before it is
#: rounded. onnxruntime's own list of tests leaves these two out.
DIFFERENT = frozenset(
    f"test_resize_downsample_scales_{mode}_align_corners" for mode in ("linear", "cubic")
)


def judge(test: NodeTest, device: str) -> Outcome:
    """Compile the model of a test, run it on its inputs, compare the results."""
    return judged(test.name, test.operator, lambda folder: _run(test.case, device, folder))


def _run(case: Any, device: str, folder: Path) -> tuple[str, str]:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    function, where, reason = compiled(lambda: model, device, folder)
    names = [value.name for value in case.model.graph.input]
    random = any(is_random(n) for part in graphs(case.model.graph) for n in part.node)
    contract = False
    for given, expected in case.data_sets:
        inputs = {}
        given, expected = ([_array(value) for value in values] for values in (given, expected))
        for name, value in zip(names, given, strict=False):
            inputs[name] = value
        results = function.run(inputs)
        arrays = [held.values() for held in results.values()]
        problem, outside = differ(arrays, expected, given, case.rtol, case.atol, random)
        if problem and not outside:
            if case.name in DIFFERENT and _as_onnxruntime(case, given, arrays):
                return ONNXRUNTIME, reason
            return WRONG, f"{problem}; {reason}" if reason else problem
        contract |= bool(problem)
    if contract:
        return CONTRACT, "a NaN or an infinity"
    return where, reason


def _as_onnxruntime(case: Any, given: list[Any], arrays: list[Any]) -> bool:
    """Whether onnxruntime alone has the same results."""
    session = onnxruntime.InferenceSession(case.model.SerializeToString())
    feed = {put.name: array for put, array in zip(session.get_inputs(), given, strict=True)}
    return not differ(arrays, session.run(None, feed), given, case.rtol, case.atol, False)[0]


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    return np.asarray(value)
