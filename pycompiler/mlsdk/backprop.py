"""Optimizers whose step the compiler adds: what it needs to know of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ..errors import error
from ..frontend.tensor_names import get_tensor_name
from ..gradients.updates import Group
from .optimizers import MNCoreAdam, MNCoreAdamW, MNCoreSGD

if TYPE_CHECKING:
    from .registry import ContextRegistry

#: The rule of a class. AdamW derives from Adam in both libraries, so it comes first.
_KINDS = (
    ((MNCoreAdamW, torch.optim.AdamW), "adamw"),
    ((MNCoreAdam, torch.optim.Adam), "adam"),
    ((MNCoreSGD, torch.optim.SGD), "sgd"),
)
_STATE = {"adamw": ("exp_avg", "exp_avg_sq"), "adam": ("exp_avg", "exp_avg_sq")}
#: Settings of torch's optimizers that would change the formula.
_OTHER = ("amsgrad", "maximize", "differentiable")


def _kind(optimizer: torch.optim.Optimizer) -> str:
    """Return the rule of an optimizer. P0703 for one without, or with settings of another."""
    for classes, kind in _KINDS:
        if isinstance(optimizer, classes):
            for group in optimizer.param_groups:
                for name in _OTHER:
                    if group.get(name):
                        raise _refused(f"{type(optimizer).__name__}({name}=True)")
            return kind
    raise _refused(type(optimizer).__name__)


def _refused(name: str) -> Exception:
    return error(
        "P0703",
        name=name,
        reason="the compiler knows the steps of SGD, Adam and AdamW",
        remedy="call backward() and the step() of an MNCoreOptimizer inside the function",
    )


def _state_of(kind: str, group: dict[str, Any]) -> tuple[str, ...]:
    if kind == "sgd":
        return ("momentum_buffer",) if group["momentum"] else ()
    return _STATE[kind]


def torch_state(optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
    """Give an optimizer of torch its state, as zeros where it has none; yield paths and tensors.

    P0703 for an optimizer that the compiler has no step for.
    """
    kind, number = _kind(optimizer), 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            for name in _state_of(kind, group):
                if not isinstance(state.get(name), torch.Tensor):
                    state[name] = torch.zeros_like(parameter, requires_grad=False)
                yield f"{number}.{name}", state[name]
            number += 1


def wanted_groups(
    optimizers: Sequence[torch.optim.Optimizer] | None,
    registry: ContextRegistry,
    *,
    backprop: bool,
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
    kind = _kind(optimizer)
    for number, group in enumerate(optimizer.param_groups):
        parameters = {}
        for parameter in group["params"]:
            registry.find(parameter)  # P0608
            own = optimizer.state[parameter]
            states = {s: str(get_tensor_name(own[s])) for s in _state_of(kind, group)}
            parameters[str(get_tensor_name(parameter))] = states
        yield Group(f"{name}@{number}", kind, _settings(kind, group), parameters)


def _settings(kind: str, group: dict[str, Any]) -> dict[str, float]:
    names = ("momentum", "dampening", "nesterov") if kind == "sgd" else ("eps",)
    found = {name: float(group[name]) for name in ("weight_decay", *names)}
    if kind != "sgd":
        found["beta1"], found["beta2"] = map(float, group["betas"])
    return found
