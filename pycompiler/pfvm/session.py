"""The CPU runtime of ONNX models: onnxruntime, one session per model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from ..errors import error
from .names import keys
from .random import taken_for_functions

Array = NDArray[Any]

#: Optimisers of onnxruntime that merge two random results, or drop a Dropout that is switched on.
_WRONG_FOR_RANDOM = ["CommonSubexpressionElimination", "EliminateDropout"]


class HostSession:
    """A model ready to run on the host. Inputs and outputs are named by the caller's keys."""

    def __init__(self, model: bytes, what: str):
        """Load ``model``; ``what`` names it in diagnostics. P0602 if the runtime refuses it."""
        self.what = what
        proto = onnx.load_from_string(model)
        self.input_keys, self.output_keys = keys(proto)
        off = _WRONG_FOR_RANDOM if taken_for_functions(proto.graph) else []
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"], disabled_optimizers=off
            )
        except Exception as problem:  # the runtime's errors have no common base class
            raise error("P0602", what=what, reason=_first_line(problem)) from problem
        self._names = [value.name for value in self._session.get_inputs()]

    def run(
        self, inputs: Mapping[str, Array], replaced: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Run the model on arrays of exactly its types. P0602 if the runtime fails.

        ``replaced`` has the registered values by their ONNX names.
        """
        arrays = dict(replaced or {})
        arrays |= {n: inputs[key] for n, key in zip(self._names, self.input_keys, strict=True)}
        # numpy gives a contiguous scalar an axis.
        feed = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in arrays.items()}
        try:
            results = self._session.run(None, feed)
        except Exception as problem:
            raise error("P0602", what=self.what, reason=_first_line(problem)) from problem
        return {k: np.asarray(r) for k, r in zip(self.output_keys, results, strict=True)}


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]
