"""Wraps torch modules as functions over dicts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from ..errors import PycompilerError, error

#: Exceptions of a module that got a dict in place of a tensor.
_CONFUSED = TypeError, AttributeError, KeyError


def as_function(function: Any, names: Collection[str]) -> Any:
    """Wrap a module as a function over a dict of the inputs ``names``; return others unchanged.

    If the parameters of ``forward`` are called ``names``, it gets the tensors by name. If it is
    known to take one tensor and there is one, it gets that tensor. Otherwise it gets the dict.
    P0114 if it takes none of these.
    """
    if not isinstance(function, torch.nn.Module):
        return function
    call = _call(function, names)
    return lambda tensors: _named(call(tensors))


def _call(module: torch.nn.Module, names: Collection[str]) -> Callable[[dict[str, Any]], Any]:
    try:
        signature = inspect.signature(module.forward)
    except (TypeError, ValueError):  # some compiled modules have no signature
        return module
    if _takes(signature, **dict.fromkeys(map(str, names))):
        return lambda tensors: module(**tensors)
    if not _takes(signature, {}):
        raise _wrap(module, names, f"its forward takes {_parameters(signature)}")
    if len(names) == 1 and _takes_a_tensor(module, signature):
        return lambda tensors: module(*tensors.values())

    def with_dict(tensors: dict[str, Any]) -> Any:
        try:
            return module(tensors)
        except PycompilerError:
            raise
        except _CONFUSED as problem:
            reason = f"its forward got them as a dict: {type(problem).__name__}: {problem}"
            raise _wrap(module, names, reason) from problem

    return with_dict


def _takes(signature: inspect.Signature, *args: object, **kwargs: object) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _takes_a_tensor(module: torch.nn.Module, signature: inspect.Signature) -> bool:
    first = next(iter(signature.parameters.values()))
    annotated = first.annotation in (torch.Tensor, "Tensor", "torch.Tensor")
    return annotated or isinstance(module, torch.nn.Sequential)


def _parameters(signature: inspect.Signature) -> str:
    return ", ".join(f"`{name}`" for name in signature.parameters) or "nothing"


def _wrap(module: torch.nn.Module, names: Collection[str], reason: str) -> PycompilerError:
    given = ", ".join(f'd["{name}"]' for name in names)
    return error(
        "P0114",
        module=type(module).__name__,
        names=", ".join(f"`{name}`" for name in names) or "none",
        reason=" ".join(reason.split())[:200],
        call=f'lambda d: {{"out": module({given})}}',
    )


def _named(result: Any) -> Any:
    """Return the outputs by name; the exporter refuses outputs that are not tensors."""
    if isinstance(result, torch.Tensor):
        return {"out": result}
    if isinstance(result, tuple | list) and not isinstance(result, Mapping):
        fields = getattr(result, "_fields", [f"out{number}" for number in range(len(result))])
        return dict(zip(fields, result, strict=True))
    return result
