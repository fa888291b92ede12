"""The memory of a piece's results: strides, and results that share memory, as in torch's trace.

The device computes values without an order in memory. A result that is a view of an input, or that
shares its memory with another result, is made in torch: the device computes the memory's owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.node import map_arg

from ..frontend.memory import owner_of

Value = torch.Tensor | int | float | bool


class Views:
    """What of a piece stays in torch: the last views of its results."""

    def __init__(self, graph: torch.fx.GraphModule):
        # Attributes of a module would be submodules; nodes are not.
        self._graph = graph.graph
        self._module = graph
        results: Any = graph.graph.output_node().args[0]
        self._results: tuple[torch.fx.Node, ...] = tuple(results)
        self._inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
        owners = {node: owner_of(node) for node in self._results}
        shared = Counter(owners.values())
        made = [
            owner if shared[owner] > 1 or not _is_smaller(node, owner) else node
            for node, owner in owners.items()
        ]
        self._made = [node for node in dict.fromkeys(made) if node.op != "placeholder"]

    def device_part(self) -> torch.fx.GraphModule:
        """Return the graph that makes the memories, without views of them."""
        copied = torch.fx.Graph()
        twins: dict[torch.fx.Node, torch.fx.Node] = {}
        copied.graph_copy(self._graph, twins)
        copied.output(tuple(twins[node] for node in self._made))
        copied.eliminate_dead_code()
        return torch.fx.GraphModule(self._module, copied)

    def finished(
        self, values: Sequence[Value], found: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Return the results of a call: ``values`` are its inputs, ``found`` the device's."""
        known: dict[torch.fx.Node, Any] = dict(zip(self._inputs, values, strict=True))
        for node, tensor in zip(self._made, found, strict=True):
            known[node] = _laid_out(tensor, node.meta.get("val"))

        def value(node: torch.fx.Node) -> Any:
            if node not in known:
                assert callable(node.target)
                args, kwargs = map_arg(node.args, value), map_arg(node.kwargs, value)
                known[node] = node.target(*args, **kwargs)
            return known[node]

        return tuple(map(value, self._results))


def _is_smaller(view: torch.fx.Node, owner: torch.fx.Node) -> bool:
    """Whether a view has fewer elements than its memory, each once."""
    sizes = [size_of(size) for size in view.meta["val"].shape]
    value, whole = view.meta["val"], owner.meta["val"]
    known = all(isinstance(n, int) for n in (*value.shape, *value.stride()))
    once = not any(size > 1 and not step for size, step in zip(sizes, value.stride(), strict=True))
    if not known or not once or owner.op == "placeholder":
        return False
    return bool(value.numel() < whole.numel())


def _laid_out(tensor: torch.Tensor, like: Any) -> torch.Tensor:
    """Return a tensor with the strides of the trace."""
    if like is None or like.stride() == tensor.stride():
        return tensor
    steps = like.stride()
    if all(isinstance(step, int) for step in (*like.shape, *steps)):
        return torch.empty_strided(like.shape, steps, dtype=tensor.dtype).copy_(tensor)
    order = sorted(range(len(steps)), key=lambda axis: (-size_of(steps[axis]), axis))
    back = sorted(range(len(order)), key=lambda place: order[place])
    return tensor.permute(*order).contiguous().permute(*back)


def size_of(size: Any) -> Any:
    """Return the number that a symbolic size had in the trace; None if it depends on data.

    Asking the size itself would make torch trace the function anew for each number.
    """
    return size.node.hint if isinstance(size, torch.SymInt) else size
