"""The optimizers whose step the compiler knows: their rule, and the state that it needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..errors import error
from .optimizers import MNCoreAdam, MNCoreAdamW, MNCoreSGD

#: The rule of a class. AdamW derives from Adam in both libraries, so it comes first.
_KINDS = (
    ((MNCoreAdamW, torch.optim.AdamW), "adamw"),
    ((MNCoreAdam, torch.optim.Adam), "adam"),
    ((MNCoreSGD, torch.optim.SGD), "sgd"),
)
_STATE = {"adamw": ("exp_avg", "exp_avg_sq"), "adam": ("exp_avg", "exp_avg_sq")}
#: Settings of torch's optimizers that would change the formula.
_OTHER = ("amsgrad", "maximize", "differentiable")


def kind_of(optimizer: torch.optim.Optimizer) -> str:
    """Return the rule of an optimizer. P0703 for one without, or with settings of another."""
    for classes, kind in _KINDS:
        if isinstance(optimizer, classes):
            for group in optimizer.param_groups:
                for name in _OTHER if kind == "adamw" else (*_OTHER, "decoupled_weight_decay"):
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


def state_of(kind: str, group: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the tensors that a step keeps for each parameter of a group."""
    if kind == "sgd":
        return ("momentum_buffer",) if group["momentum"] else ()
    return _STATE[kind]


def torch_state(optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
    """Give an optimizer of torch its state, as zeros where it has none; yield paths and tensors.

    P0703 for an optimizer that the compiler has no step for.
    """
    kind, number = kind_of(optimizer), 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            for name in state_of(kind, group):
                if not isinstance(state.get(name), torch.Tensor):
                    state[name] = torch.zeros_like(parameter, requires_grad=False)
                yield f"{number}.{name}", state[name]
            number += 1
