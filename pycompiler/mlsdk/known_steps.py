"""The optimizers whose step the compiler knows: their rule, and the state that it needs."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.optim import SGD, Adam, AdamW

from ..errors import error
from .optimizers import MNCoreAdam, MNCoreAdamW, MNCoreOptimizer, MNCoreSGD

#: Our classes stand for the rules. AdamW derives from Adam in both libraries, so it comes first.
_KINDS = ((AdamW, MNCoreAdamW), (Adam, MNCoreAdam), (SGD, MNCoreSGD))
#: Settings of torch's optimizers that would change the formula.
_OTHER = ("amsgrad", "maximize", "differentiable")


def kind_of(optimizer: torch.optim.Optimizer) -> type[MNCoreOptimizer]:
    """Return the rule of an optimizer. P0703 for one without, or with settings of another."""
    for theirs, kind in _KINDS:
        if isinstance(optimizer, theirs | kind):
            for group in optimizer.param_groups:
                for name in _OTHER if kind is MNCoreAdamW else (*_OTHER, "decoupled_weight_decay"):
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


def torch_state(optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
    """Give an optimizer of torch its state, as zeros where it has none; yield paths and tensors.

    P0703 for an optimizer that the compiler has no step for.
    """
    kind, number = kind_of(optimizer), 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            for name in kind.kept_state(group):
                if not isinstance(state.get(name), torch.Tensor):
                    state[name] = torch.zeros_like(parameter, requires_grad=False)
                yield f"{number}.{name}", state[name]
            number += 1
