"""Small changes of a captured program, in place, around faults of torch's exporter."""

from __future__ import annotations

from typing import Any

import torch

_ATEN = torch.ops.aten
#: Second names of operators. The exporter converts operands of two dtypes only under the first.
_SAME = {
    "divide": "div",
    "true_divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
}


#: Operators that the exporter writes wrongly if their result has no elements.
_NEVER_EMPTY = frozenset(
    {
        _ATEN.group_norm.default,
        _ATEN.im2col.default,
        _ATEN.native_group_norm.default,
        _ATEN.pixel_shuffle.default,
        _ATEN.pixel_unshuffle.default,
    }
)


def _same_operators() -> dict[Any, Any]:
    found = {}
    for second, first in _SAME.items():
        own, other = getattr(_ATEN, second), getattr(_ATEN, first)
        for overload in set(own.overloads()) & set(other.overloads()):
            found[getattr(own, overload)] = getattr(other, overload)
    return found


_FIRST_NAMES = _same_operators()


def with_simpler_calls(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Give operators their first names, and make some results without elements constants."""
    graph = program.graph_module.graph
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        node.target = _FIRST_NAMES.get(node.target, node.target)
        value = node.meta.get("val")
        if node.target in _NEVER_EMPTY and isinstance(value, torch.Tensor) and _known_empty(value):
            node.target = _ATEN.full.default
            node.args, node.kwargs = (list(value.shape), 0), {"dtype": value.dtype}
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return program


def _known_empty(value: torch.Tensor) -> bool:
    known = all(isinstance(size, int) for size in value.shape)
    return known and value.layout == torch.strided and not value.is_complex() and not value.numel()
