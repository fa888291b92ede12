"""Where a compile is: the node that the work on the stack is about, whatever pass it belongs to.

Passes walk over nodes in loops of many kinds. Their local variables say which node it is, so no
pass has to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any

import onnx

from ..graph.graph import MNGraph, MNNode

#: The most nodes of a foreign graph that are counted.
_MOST = 100_000


def frames_of(traceback: TracebackType | None) -> list[FrameType]:
    """Return the frames of a traceback, the innermost first."""
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return frames[::-1]


def stack_of(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def node_at(frames: Iterable[FrameType]) -> str:
    """Return the node that ``frames`` (the innermost first) work on; empty if they name none.

    It reads `node 3 of 120 (name)`, or `node name` if its graph is not on the stack.
    """
    name, seen = "", None
    for frame in frames:
        # The dict is a copy, so the thread that runs the frame may go on.
        local = dict(frame.f_locals)
        if seen is None:
            seen = _node(local)
            name = str(getattr(seen, "name", "") or "")
        if seen is not None and (place := _place(seen, local)):
            return f"{place} ({name})" if name else place
    return f"node {name}" if name else ""


def _node(local: Mapping[str, Any]) -> Any:
    """Return a node of the compiler's graph among local variables, or what is called `node`."""
    for value in local.values():
        if isinstance(value, MNNode):
            return value
    node = local.get("node")
    return node if isinstance(getattr(node, "name", None), str) else None


def _place(node: Any, local: Mapping[str, Any]) -> str:
    """Return the number of a node in a graph among the local variables; empty without one."""
    for value in (getattr(node, "graph", None), *local.values()):
        nodes: Any = None
        if isinstance(value, MNGraph):
            nodes = value.nodes
        elif isinstance(value, onnx.ModelProto):
            nodes = value.graph.node
        elif isinstance(value, onnx.GraphProto):
            nodes = value.node
        elif type(value).__name__ == "Graph":  # of torch.fx and onnx_ir
            nodes = getattr(value, "nodes", value)
        if nodes is None:
            continue
        names = [getattr(one, "name", None) for one, _ in zip(nodes, range(_MOST), strict=False)]
        # A node that is being made has no name yet.
        name = getattr(node, "name", None)
        if name in names:
            return f"node {1 + names.index(name)} of {len(names)}"
    return ""
