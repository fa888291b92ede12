"""The option `backprop`: a function that returns its loss becomes a training step.

The step differentiates and updates as a caller's own would, and is traced like one. The rate and
the count of steps are inputs, so the state has no scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import torch

from ..errors import error
from ..frontend.export import check_function, check_tensors
from ..frontend.torch_dtypes import dtype_name
from .known_steps import kind_of
from .optimizers import MNCoreAdam, MNCoreOptimizer, adapt, descend
from .registry import ContextRegistry

#: The input with the gradient of the loss itself: a float, 1 for plain gradients.
SCALE = "mncore_grad_scale_factor"
LOSS = "loss"

_Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class Group:
    """Parameters that an optimizer updates with the same settings.

    ``name`` begins the names of the group's inputs. ``kind`` is the class of ours with its rule;
    ``settings`` is the group of torch's optimizer, and ``state`` has what it keeps of each
    parameter.
    """

    name: str
    kind: type[MNCoreOptimizer]
    settings: dict[str, Any]
    state: Mapping[torch.Tensor, _Tensors]

    @property
    def rate(self) -> str:
        """The input with the learning rate: a float."""
        return f"{self.name}@mncore_learning_rate"

    @property
    def count(self) -> str:
        """The input with the number of steps that were done before: an int64."""
        return f"{self.name}@mncore_global_step"

    def update(self, grads: Mapping[torch.Tensor, torch.Tensor], given: _Tensors) -> None:
        """Update the parameters that have gradients, with the inputs ``given``."""
        rate, count, own, sizes = given[self.rate], given[self.count], self.settings, None
        if issubclass(self.kind, MNCoreAdam):
            mean, square = (_correction(beta, count) for beta in own["betas"])
            sizes = rate / mean, square.sqrt(), rate if self.kind.decoupled else None
        for parameter in [p for p in own["params"] if p in grads]:
            state = self.state[parameter]
            if sizes is None:
                descend(parameter, grads[parameter], state, own, rate, count == 0)
            else:
                adapt(parameter, grads[parameter], state, own, sizes)


def _correction(beta: float, count: torch.Tensor) -> torch.Tensor:
    """Return ``1 - beta^t`` for the step ``t``, which is ``count`` and one more.

    Near 1, the difference would lose its digits. With ``u = t log(beta)`` it is
    ``-tanh(u / 2) (1 + e^u)``.
    """
    if not beta:
        return torch.ones(())
    power = (count + 1).to(torch.float32) * log(beta)
    return torch.tanh(power * -0.5) * (power.exp() + 1)


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
        name, kind = known[id(optimizer)], kind_of(optimizer)
        for number, group in enumerate(optimizer.param_groups):
            for parameter in group["params"]:
                registry.find(parameter)  # P0608
            found.append(Group(f"{name}@{number}", kind, group, optimizer.state))
    return found


def with_training(
    function: Callable[[dict[str, torch.Tensor]], _Tensors],
    groups: Sequence[Group],
    names: Collection[str],
) -> tuple[Callable[[dict[str, torch.Tensor]], _Tensors], dict[str, torch.Tensor]]:
    """Return ``function`` with a backward pass from its loss and the updates of ``groups``.

    The loss is the only result, or the one named `loss`. ``names`` are the inputs of ``function``.
    The second result are samples of the inputs that the step has as well. The step raises P0104 and
    P0118; P0704 for what is no function.
    """
    check_function(function)
    parameters = [p for group in groups for p in group.settings["params"] if p.requires_grad]
    added = {SCALE: torch.ones(())}
    for group in groups:
        added |= {group.rate: torch.zeros(()), group.count: torch.zeros((), dtype=torch.int64)}

    def step(values: dict[str, torch.Tensor]) -> _Tensors:
        results = function({name: values[name] for name in names})
        loss = _loss(results, trains=bool(parameters))
        scale = values[SCALE].to(loss.dtype).reshape(loss.shape)
        made = torch.autograd.grad(loss, parameters, scale, allow_unused=True)
        pairs = zip(parameters, made, strict=True)
        grads = {parameter: grad for parameter, grad in pairs if grad is not None}
        with torch.no_grad():
            # A result may be a view of a parameter: it has the values from before the update.
            kept = {name: value.clone() for name, value in results.items()}
            for group in groups:
                group.update(grads, values)
        return kept

    return step, added


def _loss(results: _Tensors, *, trains: bool) -> torch.Tensor:
    """Return the loss among the results of a function. P0104, P0118."""
    named = check_tensors("function's result", results, "result")
    name = next(iter(named)) if len(named) == 1 else LOSS
    if name not in named:
        found = "missing among the results " + (", ".join(named) or "(none)")
    elif not (loss := named[name]).is_floating_point() or loss.numel() != 1:
        found = f"{dtype_name(loss.dtype)} {tuple(loss.shape)}"
    elif not loss.requires_grad or not trains:
        found = "independent of all parameters"
    else:
        return loss
    raise error("P0118", name=name, type=found)
