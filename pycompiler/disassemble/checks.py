"""Checks of one node: are its results written, finite, and near those of the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import ValueInfoProto, helper

from ..errors import PycompilerError, error
from ..graph.dtypes import MNDtype, onnx_elem_type
from ..graph.graph import MNGraph, MNNode
from ..layers.dram_transfer import DOWNLOAD, UPLOAD
from ..layers.local_copy import COPY
from ..layers.operators import LAYERS
from ..layers.switch.layer import SWITCH
from ..pfvm.session import Array, HostSession
from ..tolerance import FLUSH, NETWORKS, PRODUCT, SUM, WIDE_NETWORKS

#: Operators that move a value: the result has the bits of the argument.
_MOVES = frozenset({DOWNLOAD, UPLOAD, COPY, SWITCH})
#: The attribute of products that only the device has.
_PRECISION = "precision"
_OPSET, _IR_VERSION = 20, 10

Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Failed:
    """What a check has found at a node."""

    node: str
    problem: str

    @property
    def diagnostic(self) -> PycompilerError:
        """The diagnostic. P0612."""
        return error("P0612", node=self.node, problem=self.problem)


class Checks:
    """Checks nodes of a graph."""

    def __init__(self, graph: MNGraph):
        self._graph = graph
        self._sessions: dict[str, HostSession | None] = {}
        #: Nodes that the host has no operator for.
        self.not_compared: set[str] = set()

    def failed(
        self,
        node: MNNode,
        arguments: Arrays,
        results: Arrays,
        undefined: Mapping[str, NDArray[np.bool_]],
    ) -> list[Failed]:
        """Return what is wrong with the results of a node.

        ``undefined`` says of arguments and results which elements nothing has written.
        """
        found = []
        if not any(undefined[name].any() for name in arguments):
            for name in results:
                if undefined[name].any():
                    found.append(_problem(node, name, undefined[name], "that nothing has written"))
        if found or not all(_finite(array) for array in arguments.values()):
            return found
        for name, array in results.items():
            if not _finite(array):
                what = "that are infinite, and no argument is"
                found.append(_problem(node, name, ~np.isfinite(array), what))
        return found or list(self._differences(node, arguments, results))

    def _differences(self, node: MNNode, arguments: Arrays, results: Arrays) -> list[Failed]:
        wanted = self._on_host(node, arguments)
        if wanted is None:
            self.not_compared.add(node.name)
            return []
        found = []
        for name, array in results.items():
            reference = wanted[name]
            if array.dtype.kind != "f":
                wrong = array != reference
            else:
                allowed = self._allowed(node, name, arguments, reference)
                with np.errstate(invalid="ignore"):
                    wrong = np.abs(array.astype(np.float64) - reference) > allowed
                wrong &= np.isfinite(reference)
            if wrong.any():
                first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
                values = f"{array[first]} on the device, {reference[first]} on the host"
                found.append(_problem(node, name, wrong, f"that differ from the host's ({values})"))
        return found

    def _on_host(self, node: MNNode, arguments: Arrays) -> dict[str, Array] | None:
        """Return what the host makes of the arguments; None if it has no such operator."""
        if node.op in _MOVES:
            (given,), (made,) = node.inputs, node.outputs
            alike = self._graph.values[given].dtype is self._graph.values[made].dtype
            return {made: arguments[given]} if alike else None
        if node.name not in self._sessions:
            self._sessions[node.name] = self._session(node)
        session = self._sessions[node.name]
        if session is None or not arguments:
            return None
        try:
            return session.run(arguments)
        except PycompilerError:
            self._sessions[node.name] = None
            return None

    def _session(self, node: MNNode) -> HostSession | None:
        """Return the node as a model of the host; None if the host refuses it."""
        names = [name for name in dict.fromkeys(node.inputs) if name]
        made = [name for name in node.outputs if name]
        operation = helper.make_node(node.op, node.inputs, node.outputs)
        for key, value in node.attributes:
            if value != () and key != _PRECISION:
                operation.attribute.append(helper.make_attribute(key, value))
        graph = helper.make_graph(
            [operation], "node", [self._port(n) for n in names], [self._port(n) for n in made]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
        model.ir_version = _IR_VERSION
        try:
            return HostSession(model, node.name)
        except PycompilerError:
            return None

    def _port(self, name: str) -> ValueInfoProto:
        type = self._graph.values[name].type
        return helper.make_tensor_value_info(name, onnx_elem_type(type.elem), type.shape)

    def _allowed(self, node: MNNode, name: str, arguments: Arrays, reference: Array) -> float:
        """Return the largest difference that the bounds of the device allow."""
        largest = _largest(reference)
        if LAYERS[node.op].error in (SUM, PRODUCT):
            # Terms may cancel, so the bound is that of the sum of their magnitudes.
            sizes = {key: np.abs(a) if a.dtype.kind == "f" else a for key, a in arguments.items()}
            whole = self._on_host(node, sizes)
            largest = max(largest, _largest(whole[name]) if whole else 0.0)
        if self._graph.values[name].dtype is MNDtype.DOUBLE:
            return WIDE_NETWORKS * largest
        halves = dict(node.attributes).get(_PRECISION) == "half" or any(
            self._graph.values[own].dtype is MNDtype.HALF for own in (*arguments, name)
        )
        return NETWORKS["mixed" if halves else "float"] * largest + FLUSH["Float"]


def _finite(array: Array) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _largest(array: Array) -> float:
    sizes = np.abs(array[np.isfinite(array)].astype(np.float64))
    return float(sizes.max(initial=0.0))


def _problem(node: MNNode, name: str, where: NDArray[np.bool_], what: str) -> Failed:
    first = [int(number) for number in np.argwhere(where)[0]]
    count = int(np.count_nonzero(where))
    elements = "element" if count == 1 else "elements"
    return Failed(node.name, f"`{name}` has {count} {elements} {what}, first {first}")
