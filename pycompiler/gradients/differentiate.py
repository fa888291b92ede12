"""Appends the backward pass to a model.

The pass goes through the nodes from the last to the first. Gradients of a value that several nodes
read are added. Nodes get no backward pass if no wanted value reaches them, or if they do not reach
the loss. An operator without a rule is first written as others (see pfvm.composites).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import onnx
from onnx import helper, numpy_helper

from ..errors import error, place_of
from ..graph.graph import TensorType
from ..machine import Target
from ..pfvm.composites import COMPOSITES, decompose
from ..pfvm.declared import constants
from ..pfvm.names import all_names
from ..pfvm.prepare import prepare, static_types
from ..pfvm.random import is_random
from ..pfvm.session import Array
from ..pfvm.source import source_of
from .back import Back, Rule
from .elementwise import ELEMENTWISE
from .moves import MOVES
from .picks import PICKS
from .recurrent import written_as_steps
from .sums import SUMS
from .windows import WINDOWS

RULES: Mapping[str, Rule] = {**ELEMENTWISE, **MOVES, **PICKS, **SUMS, **WINDOWS}

_FLOATS = ("float", "float16", "bfloat16", "double")
_STANDARD = ("", "ai.onnx")
#: The domain that hides nodes from the pass that writes composite operators out.
_HIDDEN = "pycompiler.kept"
#: The key of a node's metadata, and the role of nodes that make the gradient of a wanted value.
ROLE, WEIGHT_GRADIENT = "pycompiler.role", "weight gradient"


def differentiable(operator: str) -> bool:
    """Whether there is a rule for an operator, or it is written as others, for some dtype."""
    return operator in RULES or operator in COMPOSITES


def differentiate(
    model: onnx.ModelProto,
    loss: str,
    wanted: Sequence[str],
    scale: str = "",
    target: Target | None = None,
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """Return the model with a backward pass, and the names of the gradients of ``wanted``.

    ``loss`` is a value of one element of the main graph. ``wanted`` are values of floats. Those
    that do not reach the loss are missing in the result. ``scale`` names a scalar input: the
    gradient of the loss itself. Without it, that is 1. ``target`` is the machine for which
    operators without a rule are written out. Without it, fewer operators are. The registered
    values of the model must be plain inputs. P0118 for a loss that is no single float, P0119 for
    an operator without a rule.
    """
    work = prepare(model)
    types = static_types(work)
    if loss not in types or types[loss].elem not in _FLOATS or prod(types[loss].shape) != 1:
        found = types.get(loss)
        shown = "missing" if found is None else f"{found.elem} {found.shape}"
        raise error("P0118", name=loss, type=shown)
    active, _ = _active(work.graph, types, loss, wanted)
    steps = written_as_steps(work, types, {next(filter(None, n.output), "") for n in active})
    if steps is not work:
        work = prepare(steps)
        types = static_types(work)
    for _ in range(len(COMPOSITES)):
        plain = _written_out(work, types, loss, wanted, target)
        if plain is work:
            break
        work = prepare(plain)
        types = static_types(work)
    return _Pass(work, types, loss, wanted, scale).run()


def _active(
    graph: onnx.GraphProto, types: Mapping[str, TensorType], loss: str, wanted: Sequence[str]
) -> tuple[list[onnx.NodeProto], set[str]]:
    """Return the nodes between wanted values and the loss, and the values that need gradients."""
    needs = set(wanted)
    reached: list[onnx.NodeProto] = []
    for node in graph.node:
        if any(name in needs for name in node.input):
            floats = [name for name in node.output if _is_float(types, name)]
            if floats and not is_random(node):
                needs.update(floats)
                reached.append(node)
    used = {loss}
    active: list[onnx.NodeProto] = []
    for node in reversed(reached):
        if used.intersection(node.output):
            used.update(node.input)
            active.append(node)
    active.reverse()
    return active, needs


def _written_out(
    model: onnx.ModelProto,
    types: dict[str, TensorType],
    loss: str,
    wanted: Sequence[str],
    target: Target | None,
) -> onnx.ModelProto:
    """Write out the active composite operators that have no rule; the same model if none is."""
    active, _ = _active(model.graph, types, loss, wanted)
    known = constants(model.graph)
    without = {node.output[0] for node in active if not _has_rule(node, types, known)}
    if not without:
        return model
    marked = onnx.ModelProto()
    marked.CopyFrom(model)
    kept: dict[str, str] = {}
    for node in marked.graph.node:
        if node.output[0] not in without:
            kept[node.output[0]] = node.domain
            node.domain = _HIDDEN
    out = decompose(marked, types, target)
    for node in out.graph.node:
        if node.domain == _HIDDEN:
            node.domain = kept[node.output[0]]
    before, after = ([node.op_type for node in m.graph.node] for m in (model, out))
    return model if before == after else out


def _has_rule(
    node: onnx.NodeProto, types: dict[str, TensorType], known: dict[str, onnx.TensorProto]
) -> bool:
    """Whether there is a rule for this form of the node's operator."""
    rule = RULES.get(node.op_type)
    if rule is None or node.domain not in _STANDARD:
        return False
    grads = [name if _is_float(types, name) else "" for name in node.output]
    wanted = [_is_float(types, name) for name in node.input]
    read = _read(node, known)
    wanted = [want and name not in read for want, name in zip(wanted, node.input, strict=True)]
    return rule(Back(node, dict(types), set(), read, grads=grads, wanted=wanted))


def _is_float(types: Mapping[str, TensorType], name: str) -> bool:
    return bool(name) and types[name].elem in _FLOATS


def _read(node: onnx.NodeProto, known: dict[str, onnx.TensorProto]) -> dict[str, Array]:
    return {n: numpy_helper.to_array(known[n]) for n in node.input if n in known}


class _Pass:
    """One backward pass over a model."""

    def __init__(
        self,
        model: onnx.ModelProto,
        types: dict[str, TensorType],
        loss: str,
        wanted: Sequence[str],
        scale: str,
    ):
        self._model, self._types, self._wanted = model, types, wanted
        self._loss, self._scale = loss, scale
        self._taken = all_names(model.graph)
        self._constants = constants(model.graph)
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[onnx.TensorProto] = []
        #: the gradients that arrived at a value
        self._arrived: dict[str, list[str]] = {}

    def run(self) -> tuple[onnx.ModelProto, dict[str, str]]:
        active, needs = _active(self._model.graph, self._types, self._loss, self._wanted)
        self._begin()
        for node in reversed(active):
            self._through(node, needs)
        found = {}
        for name in self._wanted:
            grad = self._total(name)
            if grad:
                found[name] = grad
        self._mark(set(found.values()))
        out = onnx.ModelProto()
        out.CopyFrom(self._model)
        out.graph.node.extend(self._nodes)
        out.graph.initializer.extend(self._tensors)
        return out, found

    def _begin(self) -> None:
        """Set the gradient of the loss itself."""
        known = self._types[self._loss]
        writer = self._writer(helper.make_node("Identity", [self._loss], [self._loss]))
        if self._scale:
            first = writer.reshape(self._scale, known.shape)
        else:
            first = writer.op("Reshape", writer.number(1.0), writer.ints(known.shape))
        self._take(writer)
        self._arrived[self._loss] = [first]

    def _writer(self, node: onnx.NodeProto) -> Back:
        given = frozenset(value.name for value in self._model.graph.input)
        return Back(node, self._types, self._taken, _read(node, self._constants), None, given)

    def _take(self, writer: Back) -> None:
        for node in writer.nodes:
            node.name = node.output[0]  # two nodes of the model may have the same name
        self._nodes += writer.nodes
        self._tensors += writer.constants

    def _through(self, node: onnx.NodeProto, needs: set[str]) -> None:
        """Append the backward pass of a node."""
        grads = [self._total(name) if name else "" for name in node.output]
        if not any(grads):
            return
        back = self._writer(node)
        back.grads, back.wanted = grads, [name in needs for name in node.input]
        rule = RULES.get(node.op_type) if node.domain in _STANDARD else None
        if (not grads[0] and node.op_type != "Split") or rule is None or not rule(back):
            name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            raise error("P0119", place=place_of(source_of(node)), op=name)
        self._take(back)
        for index, value in back.found.items():
            if back.wants(index):
                self._arrived.setdefault(node.input[index], []).append(value)

    def _total(self, name: str) -> str:
        """Append the sum of the gradients of a value; empty if there are none."""
        parts = self._arrived.get(name, [])
        while len(parts) > 1:
            writer = self._writer(helper.make_node("Identity", [name], [name]))
            parts[:2] = [writer.op("Add", *parts[:2])]
            self._take(writer)
        return parts[0] if parts else ""

    def _mark(self, gradients: set[str]) -> None:
        for node in self._nodes:
            if gradients.intersection(node.output):
                node.metadata_props.add(key=ROLE, value=WEIGHT_GRADIENT)
