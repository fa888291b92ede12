"""What the back end does with a function: graphs, pieces, and what stays in torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from .backend import emu2
from .partition import Parts


@dataclass(frozen=True)
class GraphFacts:
    """One graph of a function.

    ``kind`` is `forward` or `backward`. ``pieces`` has the cycles of each piece on the device.
    ``in_torch`` counts the operators that stay in torch, by operator and reason; ``on_host`` the
    ONNX operators of the pieces that the device lacks.
    """

    kind: str
    operators: int
    pieces: tuple[int, ...]
    in_torch: Mapping[tuple[str, str], int]
    on_host: Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Explanation:
    """The graphs of a function; printed, a line for each piece and each kind of operator."""

    graphs: list[GraphFacts] = field(default_factory=list)

    def __str__(self) -> str:
        lines = []
        for number, graph in enumerate(self.graphs):
            left = sum(graph.in_torch.values())
            lines.append(
                f"graph {number} ({graph.kind}): {graph.operators} operators, "
                f"{graph.operators - left} on the device in {len(graph.pieces)} pieces"
            )
            lines += [f"  piece: {cycles} cycles" for cycles in graph.pieces]
            for place, rows in (("in torch", graph.in_torch), ("on the host", graph.on_host)):
                lines += [f"  {place}: {n} {op} ({why})" for (op, why), n in rows.items()]
        return "\n".join(lines) or "no graph: torch.compile captured nothing"


def explain(
    function: Callable[..., Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Explanation]:
    """Return a function that calls ``function`` once and tells what ran where.

    It is used as ``explain(function)(*arguments)``. A backward graph is told of if a result asks
    for a gradient.
    """

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        found = Explanation()

        def watch(kind: str, parts: Parts) -> None:
            found.graphs.append(_facts(kind, parts))

        backend = partial(emu2, options=options, watcher=watch)
        torch._dynamo.reset()
        result = torch.compile(function, backend=backend)(*args, **kwargs)
        loss = _first_loss(result)
        if loss is not None:
            torch.autograd.grad(loss.sum(), _leaves(loss), allow_unused=True)
        torch._dynamo.reset()
        return found

    return explained


def _facts(kind: str, parts: Parts) -> GraphFacts:
    reports = [piece.reports[-1].facts for piece in parts.pieces]
    hosted = Counter((row["op"], row["reason"]) for report in reports
                     for row in report["host_fallback"])  # fmt: skip
    cycles = tuple(int(report["cycles"]) for report in reports)
    return GraphFacts(kind, parts.operators, cycles, Counter(parts.in_torch), hosted)


def _first_loss(result: Any) -> torch.Tensor | None:
    """Return the first tensor of a result that has a gradient."""
    flat, _ = torch.utils._pytree.tree_flatten(result)
    tensors = (value for value in flat if isinstance(value, torch.Tensor))
    return next((tensor for tensor in tensors if tensor.requires_grad), None)


def _leaves(loss: torch.Tensor) -> list[torch.Tensor]:
    """Return the leaves behind a result, whose gradients start its backward pass."""
    seen, leaves, stack = set(), [], [loss.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        stack += [found for found, _ in node.next_functions]
    return leaves
