"""The paths of modules and parameters in a captured graph, as the model has them."""

from __future__ import annotations

import re

import torch

#: How dynamo writes the variable that holds a module: `L['self'].encoder` is `self.encoder`.
_VARIABLE = re.compile(r"[LG]\['(\w+)'\]")
_STACK = "nn_module_stack"
#: What of a name of dynamo is a part of the model's path, and where the name of an argument stands.
_PART = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]|\.(\w+)")
_TENSOR = re.compile(rf"{_VARIABLE.pattern}((?:{_PART.pattern})*)")
_NAME = "emu2_name"
#: Names that pieces give to inputs without a name, and to results.
_OWN = re.compile(r"[xy]\d+")


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


def name_inputs(captured: torch.fx.GraphModule, graph: torch.fx.GraphModule) -> None:
    """Note the names of parameters and arguments at the inputs of ``graph``.

    AOT autograd made ``graph`` of what dynamo has ``captured``, and tells which input is which.
    """
    sources = [node.meta.get("grapharg") for node in _inputs(captured)]
    known = {}
    for node in _inputs(graph):
        place = getattr(node.meta.get("desc"), "idx", None)
        if isinstance(place, int) and place < len(sources):
            name = getattr(getattr(sources[place], "source", None), "name", "")
            found = _TENSOR.fullmatch(str(name() if callable(name) else name))
            if found is not None:
                parts = [one or other for one, other in _PART.findall(found[2])]
                known[node] = found[1], ".".join(parts)
    several = len({variable for variable, path in known.values() if path}) > 1
    for node, (variable, path) in known.items():
        node.meta[_NAME] = f"{variable}.{path}" if several and path else path or variable


def input_names(graph: torch.fx.GraphModule) -> list[str]:
    """Return a name for each input of a piece: the model's, or `x` and its place."""
    found: dict[str, None] = {}
    for place, node in enumerate(_inputs(graph)):
        name = node.meta.get(_NAME, "")
        taken = not name or name in found or _OWN.fullmatch(name)
        found[f"x{place}" if taken else name] = None
    return list(found)


def _inputs(graph: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]
