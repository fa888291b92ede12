"""Pools for onnx's reference evaluator, by the taps of each window.

onnx's own classes place indices wrongly, and windows too if `ceil_mode` is set.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper, shape_inference
from onnx.reference.op_run import OpRun

from .declared import static_shape
from .held import Array
from .windows import windows_of

_OPSET = 22  # from here on, shape inference leaves out windows that begin behind the input


class _Pool(OpRun):
    """A pool; ``_found`` takes the elements of each window along a last axis.

    A tap on padding takes the first element of its window; ``inside`` tells them apart.
    """

    op_domain = ""

    def _run(self, x: Array, **_: Any) -> tuple[Array, ...]:
        facts = {a.name: helper.get_attribute_value(a) for a in self.onnx_node.attribute}
        places, inside, counts = np.array(0), np.array(True), np.array(1)
        windows = windows_of(facts, x.shape[2:], self._sizes(x))
        for axis, window in enumerate(windows):
            apart = [1] * (2 * len(windows))
            apart[axis], apart[axis + len(windows)] = window.taps.shape
            places = places * window.size + np.maximum(window.taps, 0).reshape(apart)
            inside = inside & (window.taps >= 0).reshape(apart)
            counts = counts[..., None] * window.counts
        places, inside = (a.reshape(*counts.shape, -1) for a in (places, inside))
        first = np.take_along_axis(places, inside.argmax(-1)[..., None], -1)
        places = np.where(inside, places, first)
        taken = x.reshape(*x.shape[:2], -1)[..., places]
        return self._found(x.shape, taken, inside, counts, places, facts)

    def _sizes(self, x: Array) -> tuple[int, ...]:
        node, info = self.onnx_node, helper.make_tensor_value_info
        given = info(node.input[0], TensorProto.FLOAT, x.shape)
        made = info(node.output[0], TensorProto.FLOAT, None)
        graph = helper.make_graph([node], "pool", [given], [made])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
        found = static_shape(shape_inference.infer_shapes(model).graph.output[0])
        return (found or x.shape)[2:]

    def _found(self, shape: tuple[int, ...], taken: Array, *_: Any) -> tuple[Array, ...]:
        raise NotImplementedError


class AveragePool(_Pool):
    """The mean of each window."""

    def _found(self, _: Any, taken: Array, *given: Any) -> tuple[Array, ...]:
        total, counts = _total(taken, given[0]), given[1]
        whole = taken.dtype.kind in "iu"
        found = abs(total) // counts * np.sign(total) if whole else total / counts
        return (found.astype(taken.dtype),)


class LpPool(_Pool):
    """The root of the sum of the powers of each window."""

    def _found(self, _: Any, taken: Array, *given: Any) -> tuple[Array, ...]:
        power = given[-1].get("p", 2)
        return ((_total(abs(taken) ** power, given[0]) ** (1 / power)).astype(taken.dtype),)


class MaxPool(_Pool):
    """The largest element of each window, and where it lies."""

    def _found(self, shape: tuple[int, ...], taken: Array, *given: Any) -> tuple[Array, ...]:
        *_, places, facts = given
        best = np.broadcast_to(places, taken.shape), taken.argmax(-1)[..., None]
        at = np.unravel_index(np.take_along_axis(*best, -1)[..., 0], shape[2:])
        order = "F" if facts.get("storage_order") else "C"
        place = np.ravel_multi_index(at, shape[2:], order=order)  # type: ignore[call-overload]
        rows = np.arange(prod(shape[:2])).reshape(*shape[:2], *[1] * len(shape[2:]))
        return (taken.max(-1), place + rows * prod(shape[2:]))[: len(self.output)]


def _total(taken: Array, inside: Array) -> Array:
    exact = taken.dtype.kind in "iu" or taken.dtype == np.float64
    found = np.where(inside, taken, np.zeros((), taken.dtype))
    return np.asarray(found.astype(taken.dtype if exact else np.float32).sum(-1))
