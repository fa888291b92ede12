"""The paths of modules in a captured graph, as the model has them."""

from __future__ import annotations

import re

import torch

#: How dynamo writes the variable that holds a module: `L['self'].encoder` is `self.encoder`.
_VARIABLE = re.compile(r"[LG]\['(\w+)'\]")
_STACK = "nn_module_stack"


def name_modules(graph: torch.fx.GraphModule) -> None:
    """Write `encoder.0` for `L['self'].encoder.0`, where torch's exporter looks for paths.

    A path begins with the name of a variable if modules of several variables have nodes.
    """
    stacks = [node.meta[_STACK] for node in graph.graph.nodes if node.meta.get(_STACK)]
    roots = {
        found[0]
        for stack in stacks
        for path, _ in stack.values()
        if (found := _VARIABLE.match(path))
    }
    for node in graph.graph.nodes:
        stack = node.meta.get(_STACK)
        if stack:
            node.meta[_STACK] = {
                key: (_path(path, len(roots) > 1), *rest) for key, (path, *rest) in stack.items()
            }


def _path(path: str, several: bool) -> str:
    return _VARIABLE.sub(r"\1" if several else "", path).removeprefix(".")
