"""Optimizers whose step is part of a traced function, and whose state lives on the device.

All state exists from the start, as tensors of zeros, so that it can be registered before the first
step. The learning rate is such a tensor too, one for each group of parameters: a scheduler can
change it without a new compilation.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from ..errors import error
from ..frontend.tensor_names import set_tensor_name
from ..frontend.training_step import takes_step

_Group = dict[str, Any]
#: The key, in a group of parameters, of the tensors that the group shares.
_SHARED = "mncore_state"
_RATE = "learning_rate"
#: The key of torch for the rate that the host wants.
RATE = "lr"


class MNCoreOptimizer(torch.optim.Optimizer):
    """Base class: call ``zero_grad`` and ``step`` inside the function that is compiled.

    A subclass names its state: ``own_state`` are tensors like each parameter, ``shared_state`` are
    scalars of a group. It updates the parameters of a group in ``update_group``.
    """

    own_state: tuple[str, ...] = ()
    shared_state: tuple[str, ...] = ()

    def __init__(self, params: Any, defaults: _Group):
        #: Called with a tensor of the state whose values the host has changed.
        self._watchers: list[weakref.WeakMethod[Callable[[torch.Tensor], None]]] = []
        #: The rates that the state has, as the host gave them.
        self._pushed: list[float] = []
        super().__init__(params, defaults)

    def add_param_group(self, param_group: _Group) -> None:
        """Add parameters with settings of their own, and zeros as their state."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        wide = any(parameter.dtype == torch.float64 for parameter in group["params"])
        kind = torch.float64 if wide else torch.float32
        shared = {name: torch.zeros((), dtype=kind) for name in self.shared_state}
        group[_SHARED] = {_RATE: torch.tensor(float(group[RATE]), dtype=kind), **shared}
        self._pushed.append(float(group[RATE]))
        for parameter in group["params"]:
            self.state[parameter] = {n: torch.zeros_like(parameter) for n in self.kept_state(group)}

    @classmethod
    def kept_state(cls, group: _Group) -> tuple[str, ...]:
        """Return the names of the state that each parameter of ``group`` needs."""
        return cls.own_state

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients. Inside a compiled function they begin empty in every call."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have gradients. P0117 outside of a traced function.

        ``closure`` computes the gradients first; its result is returned.
        """
        if not takes_step():
            raise error("P0117", optimizer=type(self).__name__)
        with torch.enable_grad():
            found = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                moved = [p for p in group["params"] if p.grad is not None]
                if moved:
                    self.update_group(moved, group, group[_SHARED][_RATE])
        return found

    def update_group(
        self, parameters: list[torch.Tensor], group: _Group, rate: torch.Tensor
    ) -> None:
        """Update ``parameters``, which all have gradients, and their state in place."""
        raise NotImplementedError

    def state_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield all state with its path: scalars of groups, then the state of parameters."""
        for number, group in enumerate(self.param_groups):
            for name, tensor in group[_SHARED].items():
                yield f"group{number}.{name}", tensor
        parameters = (p for group in self.param_groups for p in group["params"])
        for number, parameter in enumerate(parameters):
            for name, tensor in self.state[parameter].items():
                yield f"{number}.{name}", tensor

    def watch(self, changed: Callable[[torch.Tensor], None]) -> None:
        """Call the method ``changed`` with each tensor of the state that the host changes."""
        self._watchers.append(weakref.WeakMethod(changed))

    def _changed(self, tensor: torch.Tensor) -> None:
        for watcher in self._watchers:
            changed = watcher()
            if changed is not None:
                changed(tensor)

    def push_rates(self) -> None:
        """Bring the rates that the host changed to the device. P0704 for what is no number."""
        for number, group in enumerate(self.param_groups):
            _check_numbers(-math.inf, lr=group[RATE])
            if (rate := float(group[RATE])) != self._pushed[number]:
                self._pushed[number] = rate
                self._changed(group[_SHARED][_RATE].fill_(rate))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load settings and state, into the same tensors, on the device too. P0704."""
        groups = list(state_dict["param_groups"])
        ours, theirs = (
            [len(g["params"]) for g in groups] for groups in (self.param_groups, groups)
        )
        if ours != theirs:
            legal = f"one of groups of {ours} parameters"
            value = f"one of groups of {theirs} parameters"
            raise error("P0704", name="state_dict", value=value, legal=legal)
        known = dict(self.state_tensors())
        given: dict[str, torch.Tensor] = {}
        for number, group in enumerate(groups):
            given |= {f"group{number}.{n}": t for n, t in group.get(_SHARED, {}).items()}
        order = [number for group in groups for number in group["params"]]
        for place, number in enumerate(order):
            own = state_dict["state"].get(number, {})
            given |= {f"{place}.{name}": tensor for name, tensor in own.items()}
        for path, tensor in known.items():
            if path not in given or given[path].shape != tensor.shape:
                raise error(
                    "P0704",
                    name="state_dict",
                    value=f"one without `{path}` of shape {tuple(tensor.shape)}",
                    legal=f"one that {type(self).__name__}.state_dict() made",
                )
        for group, saved in zip(self.param_groups, groups, strict=True):
            group.update({k: v for k, v in saved.items() if k not in ("params", _SHARED)})
        self._pushed = [float(group[RATE]) for group in self.param_groups]
        with torch.no_grad():
            for path, tensor in known.items():
                tensor.copy_(given[path])
                self._changed(tensor)


class MNCoreSGD(MNCoreOptimizer):
    """Gradient descent with momentum, as ``torch.optim.SGD``.

    The momentum begins as zeros, so the first step scales the gradient by ``1 - dampening`` too.
    """

    def __init__(
        self,
        params: Iterable[torch.Tensor] | Iterable[_Group],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ):
        """P0704 for a negative number, or Nesterov momentum without momentum or with dampening."""
        _check_numbers(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            legal = "False without momentum or with dampening"
            raise error("P0704", name="nesterov", value="True", legal=legal)
        settings = {"lr": lr, "momentum": momentum, "dampening": dampening}
        super().__init__(params, {**settings, "weight_decay": weight_decay, "nesterov": nesterov})

    @classmethod
    def kept_state(cls, group: _Group) -> tuple[str, ...]:
        """Return the momentum, if there is one."""
        return ("momentum_buffer",) if group["momentum"] else ()

    def update_group(
        self, parameters: list[torch.Tensor], group: _Group, rate: torch.Tensor
    ) -> None:
        """Update ``parameters`` and their momentum."""
        for parameter in parameters:
            descend(parameter, _grad(parameter), self.state[parameter], group, rate)


class MNCoreAdam(MNCoreOptimizer):
    """Adam, as ``torch.optim.Adam``.

    ``1 - beta^t`` is kept as a value of its own, because float32 would lose its digits in the
    difference. ``chainer_use_torch`` True is the formula of torch, the only one there is.
    """

    own_state = ("exp_avg", "exp_avg_sq")
    shared_state = ("step", "correction1", "correction2")
    #: Whether the decay is apart from the gradient.
    decoupled = False

    def __init__(
        self,
        params: Iterable[torch.Tensor] | Iterable[_Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        chainer_use_torch: bool = True,
    ):
        """P0704 for a number out of range, P0703 for another formula than torch's."""
        _check_numbers(lr=lr, eps=eps, weight_decay=weight_decay)
        pair = isinstance(betas, tuple | list) and len(betas) == 2
        if not pair or not all(isinstance(beta, float | int) and 0 <= beta < 1 for beta in betas):
            raise error("P0704", name="betas", value=repr(betas), legal="two numbers in [0, 1)")
        if not chainer_use_torch:
            reason, remedy = "only torch's formula is here", "leave it out"
            raise error("P0703", name="chainer_use_torch=False", reason=reason, remedy=remedy)
        settings = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, settings)

    def update_group(
        self, parameters: list[torch.Tensor], group: _Group, rate: torch.Tensor
    ) -> None:
        """Update ``parameters`` and the running means of their gradients."""
        shared = group[_SHARED]
        shared["step"].add_(1)
        for name, beta in zip(("correction1", "correction2"), group["betas"], strict=True):
            shared[name].mul_(beta).add_(1 - beta)
        size, root = rate / shared["correction1"], shared["correction2"].sqrt()
        apart = rate if self.decoupled else None
        for parameter in parameters:
            state = self.state[parameter]
            adapt(parameter, _grad(parameter), state, group, (size, root, apart))


class MNCoreAdamW(MNCoreAdam):
    """Adam with weight decay apart from the gradient, as ``torch.optim.AdamW``."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[torch.Tensor] | Iterable[_Group],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ):
        """P0704 for a number out of range."""
        super().__init__(params, lr, betas, eps, weight_decay)


def descend(
    parameter: torch.Tensor,
    grad: torch.Tensor,
    state: Mapping[str, torch.Tensor],
    group: _Group,
    rate: torch.Tensor,
    first: torch.Tensor | None = None,
) -> None:
    """Take a step of gradient descent. The step that ``first`` tells of is not dampened."""
    grad = _decayed(parameter, grad, group["weight_decay"])
    if group["momentum"]:
        moved, added = state["momentum_buffer"], grad
        if group["dampening"]:
            added = grad * (1 - group["dampening"])
            added = added if first is None else torch.where(first, grad, added)
        moved.mul_(group["momentum"]).add_(added)
        grad = grad.add(moved, alpha=group["momentum"]) if group["nesterov"] else moved
    parameter.sub_(grad * rate)


def adapt(
    parameter: torch.Tensor,
    grad: torch.Tensor,
    state: Mapping[str, torch.Tensor],
    group: _Group,
    sizes: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None],
) -> None:
    """Take a step of Adam.

    ``sizes`` are the rate over the correction of the mean, the root of the correction of the
    square, and the rate if the decay is apart from the gradient.
    """
    (beta1, beta2), decay, (size, root, apart) = group["betas"], group["weight_decay"], sizes
    if apart is None:
        grad = _decayed(parameter, grad, decay)
    elif decay:
        parameter.sub_(parameter * (apart * decay))
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    mean.mul_(beta1).add_(grad, alpha=1 - beta1)
    square.mul_(beta2).add_(grad * grad, alpha=1 - beta2)
    parameter.sub_(mean * size / (square.sqrt() / root + group["eps"]))


def _grad(parameter: torch.Tensor) -> torch.Tensor:
    assert parameter.grad is not None
    return parameter.grad


def _decayed(parameter: torch.Tensor, grad: torch.Tensor, decay: float) -> torch.Tensor:
    return grad.add(parameter, alpha=decay) if decay else grad


def _check_numbers(least: float = 0.0, **numbers: Any) -> None:
    """Raise P0704 for what is no finite number from ``least`` on."""
    for name, number in numbers.items():
        one = isinstance(number, torch.Tensor) and number.numel() == 1
        if not (one or isinstance(number, float | int)) or not least <= number < math.inf:
            raise error("P0704", name=name, value=repr(number), legal="a number from 0 on")


def set_buffer_name_in_optimizer(optimizer: MNCoreOptimizer, prefix: str) -> None:
    """Name the state of an optimizer ``prefix.<path>``. P0704."""
    check_optimizer(optimizer)
    if not isinstance(prefix, str) or not prefix:
        raise error("P0704", name="prefix", value=repr(prefix), legal="a text that is not empty")
    for path, tensor in optimizer.state_tensors():
        set_tensor_name(tensor, f"{prefix}.{path}")


def check_optimizer(optimizer: object) -> None:
    """Raise P0704 unless ``optimizer`` is one of this module."""
    if not isinstance(optimizer, MNCoreOptimizer):
        legal = "an MNCoreOptimizer, such as MNCoreSGD: torch's own keep no state on the device"
        raise error("P0704", name="optimizer", value=type(optimizer).__name__, legal=legal)
