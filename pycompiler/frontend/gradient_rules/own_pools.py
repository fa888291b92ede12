"""Whether the indices that a gradient reads are those that its pool made, as the trace says."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot

_ATEN = torch.ops.aten
_POOLS = (_ATEN.max_pool2d_with_indices.default, _ATEN.max_pool3d_with_indices.default)
_COPIES = (_ATEN.detach.default, _ATEN.alias.default)


def made_by_pool(indices: torch.Tensor, x: torch.Tensor, facts: tuple[Any, ...]) -> bool:
    """Whether a pool of ``x`` with these kernel, strides, pads, gaps and ceil mode made them."""
    made, source = _node_of(indices), _node_of(x)
    if made is None or source is None or made.target is not operator.getitem:
        return False
    pool: Any = made.args[0]
    if pool.target not in _POOLS or made.args[1] != 1 or _plain(pool.args[0]) is not source:
        return False
    axes = 2 if pool.target is _POOLS[0] else 3
    left_out: tuple[Any, ...] = ([], [0] * axes, [1] * axes, False)
    return [*pool.args[1:], *left_out[len(pool.args) - 2 :]] == list(facts)


def _node_of(tensor: torch.Tensor) -> torch.fx.Node | None:
    mode = get_proxy_mode()
    if mode is None:
        return None
    slot: Any = get_proxy_slot(tensor, mode.tracer, None)
    return None if slot is None else _plain(slot.proxy.node)


def _plain(node: torch.fx.Node) -> torch.fx.Node:
    while node.target in _COPIES:
        node = node.all_input_nodes[0]
    return node
