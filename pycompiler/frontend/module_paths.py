"""Names that a model's modules give: paths of parameters, and the module that made a node.

A function is traced without its modules (see :mod:`.export`). So the modules that it is, or closes
over, are found here, and tell torch's tracer when they run.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import onnx
import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from ..pfvm.names import fresh, reserved
from .tensor_names import Memory, memory_of, tensors_of

#: How deep functions in functions are looked into.
_DEPTH = 4
_SCOPES = "pkg.torch.onnx.name_scopes"
_OWN_KEY = "emu2."


class ModulePaths:
    """The modules of a function by path.

    Paths begin with the name of a variable if the function has several modules.
    """

    def __init__(self, function: object):
        roots = _modules_of(function)
        self._roots = {name if len(roots) > 1 else "": root for name, root in roots.items()}
        self._paths = {
            id(module): ".".join(filter(None, (name, path)))
            for name, root in self._roots.items()
            for path, module in root.named_modules()
        }

    def parameters(self, taken: Collection[str]) -> dict[Memory, str]:
        """Return the names of parameters and buffers by their memory; none of them is in ``taken``.

        ``taken`` are names of other tensors: constants of one name would become one constant.
        """
        found: dict[Memory, str] = {}
        used = set(taken)
        for name, root in self._roots.items():
            for path, tensor in tensors_of(root):
                # Some kinds of tensors, such as those without a size yet, have no memory.
                with contextlib.suppress(RuntimeError, NotImplementedError, ValueError):
                    wanted = fresh(".".join(filter(None, (name, path))), used)
                    used.add(found.setdefault(memory_of(tensor), wanted))
        return found

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Tell torch's tracer which module runs, so that its nodes know it."""

        def enter(module: torch.nn.Module, given: object) -> None:
            stack, path = _stack(), self._paths.get(id(module))
            if stack is not None and path is not None:
                kind = f"{type(module).__module__}.{type(module).__qualname__}"
                stack.setdefault(_OWN_KEY + path, (path, kind))

        def leave(module: torch.nn.Module, given: object, result: object) -> None:
            stack, path = _stack(), self._paths.get(id(module))
            if stack is not None and path is not None:
                stack.pop(_OWN_KEY + path, None)

        hooks = (
            register_module_forward_pre_hook(enter),
            register_module_forward_hook(leave, always_call=True),
        )
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def _stack() -> dict[str, tuple[str, str]] | None:
    """Return the modules that run, as torch's tracer knows them; None for other tracers."""
    mode = get_proxy_mode()
    found: dict[str, tuple[str, str]] | None
    found = getattr(getattr(mode, "tracer", None), "module_stack", None)
    return found


def _modules_of(function: object) -> dict[str, torch.nn.Module]:
    """Return the modules that ``function`` is or closes over, by the names of their variables."""
    found: dict[str, torch.nn.Module] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, object, int]] = [("", function, 0)]
    for name, value, depth in waiting:
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.nn.Module):
            found[fresh(name or "module", found)] = value
        elif depth < _DEPTH:
            waiting += [(key, one, depth + 1) for key, one in _reached(value).items()]
    return found


def _reached(value: object) -> Mapping[str, Any]:
    """Return what a function or method reaches by name."""
    if isinstance(value, functools.partial):
        return {"function": value.func, **value.keywords}
    if inspect.ismethod(value):
        owner = value.__self__
        own = {} if isinstance(owner, torch.nn.Module) else getattr(owner, "__dict__", {})
        kept = {name: one for name, one in own.items() if isinstance(one, torch.nn.Module)}
        return {"self": owner, "function": value.__func__, **kept}
    if inspect.isfunction(value) and not f"{value.__module__}.".startswith("torch."):
        try:
            reached = inspect.getclosurevars(value)
        except ValueError:  # a variable that has no value yet
            return {}
        return {**reached.globals, **reached.nonlocals}
    return {}


def name_nodes(model: onnx.ModelProto) -> None:
    """Put the path of its module before the name of each node: `encoder.0/linear`."""
    taken = {node.name for node in model.graph.node}
    for node in model.graph.node:
        scopes = next((item.value for item in node.metadata_props if item.key == _SCOPES), "[]")
        *modules, _ = ast.literal_eval(scopes) or [""]
        if modules and modules[-1]:
            node.name = reserved(f"{modules[-1]}/{node.name.removeprefix('node_')}", taken)
