"""Which operators of a graph run on the device, and the pieces that they form.

torch's own partitioner makes the pieces: the largest sets of operators without a way through an
operator that stays in torch.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from ..errors import HostFallbackWarning, InternalError, PycompilerError
from ..frontend.export import export
from ..frontend.host_calls import no_host_calls
from ..frontend.memory import read_owners
from ..frontend.torch_dtypes import TORCH_DTYPES, dtype_name
from ..graph.dtypes import device_dtype
from ..layers.operators import LAYERS
from ..warn import folded_warnings
from .piece import Piece, Value, sample_of
from .settings import Settings
from .views import size_of

_PREFIX = "on_device_"
_ATEN = torch.ops.aten
#: Operators that compute nothing: a piece of these alone stays in torch.
_MOVES = frozenset(
    {
        *(_ATEN.view.default, _ATEN.reshape.default, _ATEN.permute.default, _ATEN.transpose.int),
        *(_ATEN.t.default, _ATEN.unsqueeze.default, _ATEN.squeeze.dim, _ATEN.squeeze.dims),
        *(_ATEN.expand.default, _ATEN.clone.default, _ATEN.alias.default, _ATEN.detach.default),
        *(_ATEN.full.default, _ATEN.slice.Tensor, _ATEN.select.int, operator.getitem),
    }
)
_ELEMS = {dtype: elem for elem, dtype in TORCH_DTYPES.items()}
_UNKNOWN = "its sizes depend on data"


@dataclass
class Parts:
    """A graph whose pieces run on the device.

    ``in_torch`` has an operator and a reason for each node that stays in torch.
    """

    graph: torch.fx.GraphModule
    pieces: list[Piece] = field(default_factory=list)
    in_torch: list[tuple[str, str]] = field(default_factory=list)
    operators: int = 0


def partitioned(graph: torch.fx.GraphModule, settings: Settings) -> Parts:
    """Cut ``graph`` into pieces that compile, and the rest; ``graph`` itself may change.

    Every piece is compiled here, for the shapes of the trace. If one does not compile, the
    operators that torch cannot express in ONNX stay in torch, or else the whole piece. Warnings
    that several pieces give are shown once.
    """
    with folded_warnings():
        return _partitioned(graph, settings)


def _partitioned(graph: torch.fx.GraphModule, settings: Settings) -> Parts:
    read = read_owners(graph.graph)
    kept = {node.name: "its memory is read by strides" for node in read}
    pieces: dict[tuple[str, ...], Piece] = {}
    while True:
        groups = _groups(graph, kept)
        for group in groups:
            names = tuple(node.name for node in group)
            if names in pieces:
                continue
            piece = Piece(_alone(graph, names), settings)
            try:
                with no_host_calls():
                    piece.prepared([_like(node) for node in piece.placeholders])
            except PycompilerError as problem:
                if isinstance(problem, InternalError):
                    # The result is right without this piece, but the fault is ours, so it is named.
                    message = f"{len(names)} operators stay in torch: {problem.message}"
                    warnings.warn(message, HostFallbackWarning, stacklevel=2)
                kept |= _to_blame(piece, names, problem)
                break
            pieces[names] = piece
        else:
            return _assembled(graph, kept, groups, pieces)


def _groups(graph: torch.fx.GraphModule, kept: Mapping[str, str]) -> list[list[torch.fx.Node]]:
    """Return the nodes of each piece, in the order of the graph."""
    maker = CapabilityBasedPartitioner(graph, _Support(kept), allows_single_node_partition=True)
    order = {node: place for place, node in enumerate(graph.graph.nodes)}
    found = []
    for part in maker.propose_partitions():
        nodes = sorted(part.nodes, key=lambda node: order[node])
        if not all(node.target in _MOVES for node in nodes):
            found.append(nodes)
    return found


def _fused(graph: torch.fx.GraphModule, groups: list[tuple[str, ...]]) -> torch.fx.GraphModule:
    """Return a copy of ``graph`` with a submodule for each group of nodes, by name."""
    copied = torch.fx.Graph()
    twins: dict[torch.fx.Node, torch.fx.Node] = {}
    copied.output(copied.graph_copy(graph.graph, twins))
    copied.output_node().meta.update(graph.graph.output_node().meta)
    made = torch.fx.GraphModule(graph, copied)
    named = {old.name: new for old, new in twins.items()}
    parts: list[dict[torch.fx.Node, int | None]] = [
        {named[name]: None for name in names} for names in groups
    ]
    return fuse_by_partitions(made, parts, prefix=_PREFIX, always_return_tuple=True)


def _alone(graph: torch.fx.GraphModule, names: tuple[str, ...]) -> torch.fx.GraphModule:
    inner = _fused(graph, [names]).get_submodule(f"{_PREFIX}0")
    assert isinstance(inner, torch.fx.GraphModule)
    return inner


def _assembled(
    graph: torch.fx.GraphModule,
    kept: Mapping[str, str],
    groups: list[list[torch.fx.Node]],
    pieces: Mapping[tuple[str, ...], Piece],
) -> Parts:
    names = [tuple(node.name for node in group) for group in groups]
    fused = _fused(graph, names)
    parts = Parts(fused)
    for number, group in enumerate(names):
        setattr(fused, f"{_PREFIX}{number}", pieces[group])
        parts.pieces.append(pieces[group])
    fused.recompile()
    inside = {name for group in names for name in group}
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            parts.operators += 1
            if node.name not in inside:
                reason = _reason(node, kept) or "it computes nothing"
                parts.in_torch.append((str(node.target), reason))
    return parts


class _Support(OperatorSupportBase):
    """Tells torch's partitioner which nodes may run on the device."""

    def __init__(self, kept: Mapping[str, str]):
        self._kept = kept

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        return node.op == "call_function" and _reason(node, self._kept) is None


def _reason(node: torch.fx.Node, kept: Mapping[str, str]) -> str | None:
    """Return why a node stays in torch; None if it may run on the device."""
    if node.name in kept:
        return kept[node.name]
    if node.target is operator.getitem:
        return _reason(node.all_input_nodes[0], kept)
    if not isinstance(node.target, torch._ops.OpOverload):
        return "it is no operator of torch"
    if node.target is _ATEN.as_strided.default:
        return "it reads memory by strides"
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return "its random numbers are torch's"
    if node.target._schema.is_mutable:
        return "it changes a tensor in place"
    for own in (node, *node.all_input_nodes):
        for value in _flat(own.meta.get("val")):
            why = _strange(value)
            if why is None and own is node and not isinstance(value, torch.Tensor | None):
                why = "it makes a size, no tensor"
            if why is not None:
                return why
    return None


def _flat(value: object) -> list[object]:
    return list(value) if isinstance(value, tuple | list) else [value]


def _strange(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, torch.SymInt | int):
        return None if size_of(value) is not None else _UNKNOWN
    if not isinstance(value, torch.Tensor):
        return f"it makes a {type(value).__name__}, no tensor"
    if value.device.type != "cpu":
        return f"its tensors are on {value.device.type}"
    elem = _ELEMS.get(value.dtype)
    if elem is None or value.layout is not torch.strided:
        return "a tensor of its is sparse or complex"
    if device_dtype(elem) not in LAYERS["Reshape"].dtypes:  # dtypes that nothing moves
        return f"the device has no {dtype_name(value.dtype)}"
    if any(size_of(size) is None for size in (*value.shape, *value.stride())):
        return _UNKNOWN
    return None


def _like(node: torch.fx.Node) -> Value:
    """Return a value of the type that the trace saw; symbolic sizes have the traced number."""
    value: Any = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        return int(size_of(value))
    return sample_of(tuple(map(size_of, value.shape)), value.dtype)


def _to_blame(piece: Piece, names: tuple[str, ...], problem: PycompilerError) -> dict[str, str]:
    """Return the nodes that keep a piece from compiling, with the reason."""
    reason = f"{problem.code}: {problem.message}"
    found: dict[Any, bool] = {}
    blamed = []
    for node in piece.graph.graph.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        if node.target not in found:
            found[node.target] = not _expressible(piece.graph, node)
        if found[node.target]:
            blamed.append(node.name)
    return dict.fromkeys(blamed or names, reason)


def _expressible(graph: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    """Whether torch's exporter takes an operator alone."""
    group = [node, *(user for user in node.users if user.target is operator.getitem)]
    inner = _alone(graph, tuple(own.name for own in group))
    values = [_like(own) for own in inner.graph.nodes if own.op == "placeholder"]
    try:
        with no_host_calls():
            export(*Piece.traced(inner, values), training=False)
    except PycompilerError:
        return False
    return True
