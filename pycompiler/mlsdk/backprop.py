"""Optimizers whose step the compiler adds: what it needs to know of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..errors import error
from ..frontend.tensor_names import get_tensor_name
from ..gradients.updates import Group
from .known_steps import kind_of, state_of
from .registry import ContextRegistry


def wanted_groups(
    optimizers: Sequence[torch.optim.Optimizer] | None, registry: ContextRegistry, *, backprop: bool
) -> list[Group]:
    """Check ``optimizers`` and describe their groups of parameters. P0608, P0703, P0704."""
    given = list(optimizers) if isinstance(optimizers, list | tuple) else optimizers
    if not given:
        if backprop:
            legal = "a list of registered optimizers: the option `backprop` needs them"
            raise error("P0704", name="optimizers", value=repr(optimizers), legal=legal)
        return []
    if not isinstance(given, list) or not all(isinstance(o, torch.optim.Optimizer) for o in given):
        legal = "a list of optimizers or None"
        raise error("P0704", name="optimizers", value=repr(optimizers), legal=legal)
    if not backprop:
        legal = "None without the option `backprop`"
        raise error("P0704", name="optimizers", value="a list", legal=legal)
    known = {id(optimizer): name for name, optimizer in registry.optimizers.items()}
    found: list[Group] = []
    for optimizer in given:
        if id(optimizer) not in known:
            name = type(optimizer).__name__
            raise error("P0608", name=name, problem="it is not registered")
        found += _groups(known[id(optimizer)], optimizer, registry)
    return found


def _groups(
    name: str, optimizer: torch.optim.Optimizer, registry: ContextRegistry
) -> Iterator[Group]:
    kind = kind_of(optimizer)
    for number, group in enumerate(optimizer.param_groups):
        parameters = {}
        for parameter in group["params"]:
            registry.find(parameter)  # P0608
            own = optimizer.state[parameter]
            states = {s: str(get_tensor_name(own[s])) for s in state_of(kind, group)}
            parameters[str(get_tensor_name(parameter))] = states
        yield Group(f"{name}@{number}", kind, _settings(kind, group), parameters)


def _settings(kind: str, group: dict[str, Any]) -> dict[str, float]:
    names = ("momentum", "dampening", "nesterov") if kind == "sgd" else ("eps",)
    found = {name: float(group[name]) for name in ("weight_decay", *names)}
    if kind != "sgd":
        found["beta1"], found["beta2"] = map(float, group["betas"])
    return found
