"""Shared by the tests: small ONNX models, compiled and run without torch's exporter; contexts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import onnx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from pycompiler.graph.graph import MNGraph
from pycompiler.graph.rewrite import rewritten
from pycompiler.graph.verify import STRUCTURE
from pycompiler.layers.operators import RULES
from pycompiler.layout_passes import LayoutPlans, given_of
from pycompiler.machine import Target, load_target
from pycompiler.options import parse_options
from pycompiler.pipeline import Compiled, compile_onnx
from pycompiler.planners.dtype import plan_dtypes
from pycompiler.planners.given import Given
from pycompiler.planners.rewrites import SIDED, TYPED, facts_of
from pycompiler.report.report import Report
from pycompiler.request import Request
from pycompiler.runtime.device import Board
from pycompiler.runtime.executable import DeviceFunction

if TYPE_CHECKING:
    from pycompiler.mlsdk import Context

SCRIPTS = Path(__file__).parents[2] / "examples" / "mlsdk"
#: Whether this is `make test-long`.
LONG = bool(os.environ.get("EMU2_LONG"))

Shape = tuple[int, ...]
Node = tuple[str, Sequence[str], str]
Case = TypeVar("Case")


def without_progress(said: str) -> str:
    """Return what a command said, but for how far it is: it says that on a slow computer only."""
    return "".join(line for line in said.splitlines(True) if not line.startswith("compiling: "))


def model_of(
    nodes: Sequence[Node],
    inputs: Mapping[str, Shape],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    elem: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """Return a model of ``(op, inputs, output)`` nodes; shapes of the other values are inferred."""
    made = [
        helper.make_node(op, list(reads), [out], name=f"n{index}_{op}")
        for index, (op, reads, out) in enumerate(nodes)
    ]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info(name, elem, shape) for name, shape in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    known = {v.name: v for v in (*inferred.graph.value_info, *inferred.graph.output)}
    known |= {v.name: v for v in inferred.graph.input}
    for index, name in enumerate(outputs):
        if name in known and known[name].type.HasField("tensor_type"):
            model.graph.output[index].CopyFrom(known[name])
    return model


def compiled(
    model: onnx.ModelProto,
    machine: str = "mini",
    plans: LayoutPlans | None = None,
    **options: Any,
) -> tuple[Compiled, dict[str, Any]]:
    """Return the compiled model and its report; ``plans`` are those of earlier compiles of it."""
    report = Report(machine, options)
    target, checked = load_target(machine), parse_options(options)
    result = compile_onnx(Request(model, target, checked, report, plans=plans or LayoutPlans()))
    return result, report.data


def planning(**options: Any) -> Given:
    """Return what the passes up to time slices read of some options."""
    checked = parse_options(options)
    return given_of(checked, checked.overrides)


def typed(
    graph: MNGraph, target: Target, given: Given, registered: Collection[str] = ()
) -> MNGraph:
    """Return the graph behind the pass `dtype`, with the rewrites before and behind dtypes."""
    facts, rules = facts_of(target, given, registered, {}), (*STRUCTURE, *RULES)
    graph = plan_dtypes(rewritten(graph, SIDED, facts, rules), target, given, registered)
    return rewritten(graph, TYPED, facts, rules)


def run(
    result: Compiled, inputs: Mapping[str, np.ndarray], machine: str = "mini"
) -> dict[str, np.ndarray]:
    """Return the outputs of one call on a new board."""
    function = DeviceFunction(result.app, Board(load_target(machine)))
    return {key: output.values() for key, output in function.run(inputs).items()}


def tried(examples: int, long: int = 0) -> int:
    """Return the number of examples for hypothesis; in `make test-long` ``long``, or ten times."""
    return (long or 10 * examples) if LONG else examples


def with_seeds(check: Callable[[int], None], quick: int, long: int) -> None:
    """Call ``check`` with the seeds from 0 to ``quick``, the same in every run.

    `make test-long` calls it with ``long`` seeds that hypothesis draws.
    """
    if not LONG:
        for number in range(quick):
            check(number)
        return

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=long, phases=[Phase.explicit, Phase.generate])
    def case(seed: int) -> None:
        check(seed)

    case()


def sampled(cases: Sequence[Any], every: int = 2, first: int = 0) -> list[Any]:
    """Return the cases for parametrize: all but each ``every``-th run in `make test-long` only.

    A tuple is several arguments.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if number % every == first else pytest.mark.long,
        )
        for number, case in enumerate(cases)
    ]


def in_turns(
    cases: Mapping[str, Case], turn: int, turns: int, always: Sequence[str] = ()
) -> dict[str, Case]:
    """Return the cases of a table whose number is ``turn`` modulo ``turns``, and those ``always``.

    For tables whose cases are compiled as one function: several tests take turns in `make test`,
    or one test takes a share. In `make test-long`, each has the whole table.
    """
    return {
        name: case
        for number, (name, case) in enumerate(cases.items())
        if LONG or number % turns == turn or name in always
    }


def random_inputs(
    shapes: Mapping[str, Shape], seed: int, scale: float = 4.0
) -> dict[str, np.ndarray]:
    """Return float32 inputs with both signs, some zeros, and a spread of magnitudes."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, shape in shapes.items():
        values = rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape)) * scale
        out[name] = np.where(rng.random(shape) < 0.05, 0.0, values).astype(np.float32)
    return out


def context(device: str = "emu2") -> Context:
    """Return a new context; only who wants one needs torch."""
    from pycompiler.mlsdk import Context, MNDevice

    return Context(MNDevice(device))


def report_of(folder: Path) -> dict[str, Any]:
    """Return the report that a compile wrote."""
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found
