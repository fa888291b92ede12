"""Compiles and runs one node test of ONNX, and says what became of it."""

from __future__ import annotations

import re
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from pycompiler.build import build
from pycompiler.errors import InternalError, PycompilerError
from pycompiler.pfvm.names import graphs
from pycompiler.pfvm.random import is_random
from pycompiler.report.codegen_dir import REPORT
from pycompiler.runtime.device import Board, find_device

DEVICE, HOST, REFUSED = "device", "host", "refused"
#: Right except where an operand or a result is a NaN or an infinity (docs/operators.md).
CONTRACT = "contract"
#: Not what the test says, but what onnxruntime gives for the model of the test as a whole.
ONNXRUNTIME = "onnxruntime"
WRONG, INTERNAL, TIME = "wrong", "internal", "time"
#: What must not happen.
FAULTS = (WRONG, INTERNAL, TIME)
#: The tests that may be as in onnxruntime: ONNX says that the last elements of both tensors meet.
#: onnxruntime and torch take the size of the result for that, the test the size before it is
#: rounded. onnxruntime's own list of tests leaves these two out.
DIFFERENT = frozenset(
    f"test_resize_downsample_scales_{mode}_align_corners" for mode in ("linear", "cubic")
)


@dataclass(frozen=True)
class Outcome:
    """What became of a test: ``kind`` is one of the words above.

    ``code`` is that of the diagnostic of a refused test. ``reason`` says why it is not on the
    device.
    """

    name: str
    operator: str
    kind: str
    code: str = ""
    reason: str = ""
    seconds: float = 0.0


def operator_of(model: onnx.ModelProto, name: str) -> str:
    """Return the operator that a test is about; a test of an expanded function names it."""
    nodes = model.graph.node
    if len(nodes) == 1 and not name.endswith("_expanded"):
        return str(nodes[0].op_type)
    return str(nodes[0].op_type) if len(nodes) == 1 else "functions and small graphs"


def judge(case: Any, device: str = "emu2:mini") -> Outcome:
    """Compile the model of a test, run it on its inputs, compare the results."""
    operator = operator_of(case.model, case.name)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind, reason = _run(case, device, Path(folder) / "out")
            return Outcome(case.name, operator, kind, "", reason)
        except InternalError as problem:
            return Outcome(case.name, operator, INTERNAL, problem.code, _line(problem))
        except PycompilerError as problem:
            return Outcome(case.name, operator, REFUSED, problem.code, _line(problem))
        except TimeoutError as problem:
            return Outcome(case.name, operator, TIME, "", _line(problem))
        except Exception as problem:
            reason = f"{type(problem).__name__}: {_line(problem)}"
            return Outcome(case.name, operator, INTERNAL, "", reason)


def _line(problem: BaseException) -> str:
    return " ".join(str(problem).split())[:200]


def _run(case: Any, device: str, folder: Path) -> tuple[str, str]:
    import json

    found = find_device(device)
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    function = build(lambda: model, device, Board(found.target), {}, folder)
    facts = json.loads((folder / REPORT).read_bytes())
    fallback = facts["host_fallback"]
    where = HOST if fallback else DEVICE
    reason = "; ".join(dict.fromkeys(f"{row['op']}: {row['reason']}" for row in fallback))
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
        problem, outside = _differ(arrays, expected, given, case.rtol, case.atol, random)
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
    return not _differ(arrays, session.run(None, feed), given, case.rtol, case.atol, False)[0]


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    return np.asarray(value)


def _differ(
    arrays: list[Any], expected: Any, given: Any, rtol: float, atol: float, random: bool
) -> tuple[str, bool]:
    """Return how results differ, and whether only by NaNs and infinities."""
    special = any(_special(np.asarray(value)).any() for value in given)
    if len(arrays) != len(expected):
        return f"{len(arrays)} results of {len(expected)}", False
    for number, (found, wanted) in enumerate(zip(arrays, expected, strict=True)):
        wanted = np.asarray(wanted)
        if found.dtype != wanted.dtype or found.shape != wanted.shape:
            shown = f"{found.dtype} {found.shape} for {wanted.dtype} {wanted.shape}"
            return f"output {number} is {shown}", False
        if random:
            continue
        if found.dtype.kind in "biu":
            bad = found != wanted
            outside = np.zeros(found.shape, bool)
        else:
            a, b = found.astype(np.complex128), wanted.astype(np.complex128)
            if found.dtype.kind != "c":
                a, b = found.astype(np.float64), wanted.astype(np.float64)
            largest = float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0))
            room = atol + _ROUNDING.get(str(found.dtype), 0.0) * largest
            bad = ~np.isclose(a, b, rtol=rtol, atol=room, equal_nan=True)
            outside = _special(wanted)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            text = f"output {number} at {at}: {found[at]} for {wanted[at]}, {bad.sum()} differ"
            return text, bool(special or not (bad & ~outside).any())
    return "", False


def _special(array: Any) -> Any:
    if array.dtype.kind in "biuSUOM":
        return np.zeros(array.shape, bool)
    return ~np.isfinite(array.astype(np.complex128))


#: What a few roundings of the largest result may come to, by element type: sums round their terms.
_ROUNDING = {"float32": 2.0**-18, "float16": 2.0**-9, "bfloat16": 2.0**-6}
_NUMBERS = re.compile(r"`[^`]*`")


def general(reason: str) -> str:
    """Return a reason without the names of values."""
    return _NUMBERS.sub("..", reason)
