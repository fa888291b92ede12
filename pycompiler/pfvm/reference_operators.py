"""Operators of onnx's reference evaluator that it computes wrongly, corrected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv_transpose import ConvTranspose as _ConvTranspose
from onnx.reference.ops.op_gemm import Gemm_7 as _Gemm
from onnx.reference.ops.op_loop import Loop as _Loop

from ..graph.dtypes import onnx_name
from ..graph.graph import TensorType
from .composites.recurrent import Recurrent
from .held import Array
from .reference_pools import AveragePool, LpPool, MaxPool


class Loop(_Loop):
    """A Loop that joins what its turns give along a new axis.

    onnx's own class joins along the first axis of matrices, and gives numbers a second axis. The
    elements are in the right order, so a new shape is all that is needed.
    """

    op_domain = ""
    _run_body: Any

    def _run(self, *args: Any, **context: Any) -> tuple[Any, ...]:
        turns: list[list[tuple[int, ...]]] = []
        run_body = self._run_body

        def counted(*given: Any, **facts: Any) -> Any:
            results = run_body(*given, **facts)
            turns.append([result.shape for result in results[len(results) - self.K :]])
            return results

        self._run_body = counted
        try:
            found: tuple[Any, ...] = super()._run(*args, **context)  # type: ignore[no-untyped-call]
        finally:
            self._run_body = run_body
        if not turns:
            return found
        joined = zip(found[self.N : self.N + self.K], turns[-1], strict=True)
        shaped = (array.reshape(len(turns), *shape) for array, shape in joined)
        return (*found[: self.N], *shaped, *found[self.N + self.K :])


class ConvTranspose(_ConvTranspose):
    """A transposed convolution; onnx's own class mixes up groups, and pads no results."""

    op_domain = ""

    def _run(self, x: Any, w: Any, b: Any = None, **facts: Any) -> Any:  # type: ignore[override]
        axes, names = x.ndim - 2, ("pads", "output_padding", "output_shape", "auto_pad")
        pads, more, wanted, mode = (facts.pop(name, None) for name in names)
        own: Any = super()._run
        count, facts["group"] = facts["group"], 1
        pairs = zip(np.split(x, count, 1), np.split(w, count), strict=True)
        found = np.concatenate([own(*pair, **facts)[0] for pair in pairs], 1)
        for axis, step in enumerate(facts["strides"] or [1] * axes):
            known = found.shape[axis + 2]
            size = known + (more[axis] if more else 0)
            before, after = (pads[axis], pads[axes + axis]) if pads else (0, 0)
            if wanted or (mode or "").startswith("SAME"):
                goal = wanted[axis] if wanted else min(size, x.shape[axis + 2] * step)
                total = max(0, size - goal)
                before = total // 2 if mode == "SAME_UPPER" else total - total // 2
                after = size - goal - before
            place = np.arange(before, size - after)
            found = found.take(place.clip(0, known - 1), axis + 2)
            np.moveaxis(found, axis + 2, -1)[..., (place < 0) | (place >= known)] = 0
        return (found if b is None else found + b.reshape(-1, *[1] * axes),)


class Erf(OpRun):
    """The error function; onnx's own class computes it in singles."""

    op_domain = ""

    def _run(self, x: Any) -> tuple[Any, ...]:
        found = [math.erf(float(one)) for one in x.reshape(-1)]
        return (np.asarray(found, np.float64).astype(x.dtype).reshape(x.shape),)


class GatherElements(OpRun):
    """Picks along an axis; onnx's own class mistakes axes that are counted from the end."""

    op_domain = ""

    def _run(self, x: Any, index: Any, axis: int | None = None) -> tuple[Any, ...]:
        axis = (axis or 0) % x.ndim
        rows = (slice(None if at == axis else n) for at, n in enumerate(index.shape))
        return (np.take_along_axis(x[tuple(rows)], index, axis),)


class Gemm(_Gemm):
    """A product and a sum; onnx's own class multiplies integers by reals."""

    op_domain = ""

    def _run(self, x: Any, *more: Any, **facts: Any) -> Any:  # type: ignore[override]
        for name in ("alpha", "beta"):
            if x.dtype.kind in "iu" and float(facts[name]).is_integer():
                facts[name] = x.dtype.type(facts[name])
        return super()._run(x, *more, **facts)  # type: ignore[no-untyped-call]


class LogSoftmax(OpRun):
    """The logarithm of Softmax; onnx's own class takes that of a result that may be 0."""

    op_domain = ""

    def _run(self, x: Any, axis: int | None = None) -> tuple[Any, ...]:
        axis = -1 if axis is None else axis
        if not x.size:
            return (x,)
        wide = x if x.dtype == np.float64 else x.astype(np.float32)
        moved = wide - wide.max(axis=axis, keepdims=True)
        found = moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))
        return (found.astype(x.dtype),)


class Pad(OpRun):
    """Padding; onnx's own class refuses negative numbers, which crop."""

    op_domain = ""

    def _run(
        self, x: Any, pads: Any, value: Any = None, axes: Any = None, mode: Any = None
    ) -> tuple[Any, ...]:
        ends = np.zeros((x.ndim, 2), np.int64)
        ends[slice(None) if axes is None else axes] = np.reshape(pads, (2, -1)).T
        facts: Any = {"mode": mode or "constant"}
        if facts["mode"] == "constant":
            facts["constant_values"] = 0 if value is None else value
        made = np.pad(x, ends.clip(0), **facts)
        sizes = zip(ends.clip(None, 0), made.shape, strict=True)
        return (made[tuple(slice(-front, size + back) for (front, back), size in sizes)],)


class Pow(OpRun):
    """Powers; those of integers are exact, but for bits beyond their type."""

    op_domain = ""

    def _run(self, x: Any, y: Any) -> tuple[Any, ...]:
        if x.dtype.kind not in "iu" or y.dtype.kind not in "iu":
            return (np.power(x, y).astype(x.dtype),)
        base, power = x.astype(np.int64), y.astype(np.int64)
        found = np.power(base, np.where(power < 0, power & 1, power))
        return (np.where((power < 0) & (np.abs(base) != 1), 0, found).astype(x.dtype),)


class _Layer(OpRun):
    """A recurrent layer, as the steps that the compiler writes.

    onnx's own classes ignore lengths of sequences, `clip`, `input_forget` and activations, and have
    not all directions. onnxruntime has neither batches in front nor doubles.
    """

    op_domain = ""

    def _run(self, *inputs: Array | None, **_: Any) -> tuple[Array, ...]:
        node = self.onnx_node
        given = {n: a for n, a in zip(node.input, inputs, strict=False) if a is not None}
        info = onnx.helper.make_tensor_value_info
        kinds = {n: onnx.helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in given.items()}
        types = {n: TensorType(onnx_name(kind), given[n].shape) for n, kind in kinds.items()}
        layer = Recurrent(node, types, {*node.input, *node.output}, {})
        layer.write()
        ports = [info(n, kind, given[n].shape) for n, kind in kinds.items()]
        ends = [info(n, kinds[node.input[0]], None) for n in node.output if n]
        graph = onnx.helper.make_graph(layer.nodes, "layer", ports, ends, layer.constants)
        opsets = [onnx.helper.make_opsetid("", self.run_params["opsets"][""])]
        model = onnx.helper.make_model(graph, opset_imports=opsets)
        made = iter(ReferenceEvaluator(model).run(None, given))
        return tuple(next(made) if n else np.zeros(0) for n in node.output)


class LSTM(_Layer):
    """The layer LSTM."""


class GRU(_Layer):
    """The layer GRU."""


class RNN(_Layer):
    """The layer RNN."""


REFERENCE: list[Any] = [
    *(AveragePool, ConvTranspose, Erf, GRU, GatherElements, Gemm, LSTM, LogSoftmax, Loop, LpPool),
    *(MaxPool, Pad, Pow, RNN),
]
