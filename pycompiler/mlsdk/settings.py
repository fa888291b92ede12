"""Settings of optimizers: rates follow the host, others are constants of functions that step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from ..errors import error
from ..frontend.training_step import takes_step
from .optimizers import RATE, MNCoreOptimizer
from .registry import ContextRegistry


class Settings:
    """The settings of the optimizers that a function steps, as they were when it was traced.

    Those of ``fed`` get their rates with each call.
    """

    def __init__(self, registry: ContextRegistry, fed: Iterable[Optimizer] = ()):
        self._registry = registry
        self._traced = {optimizer: (_settings(optimizer), True) for optimizer in fed}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the settings of optimizers that step in the body. P0703 if the body changes one."""

        def note(optimizer: Optimizer, *_: object) -> None:
            if takes_step():
                free = isinstance(optimizer, MNCoreOptimizer)
                self._traced.setdefault(optimizer, (_settings(optimizer), free))

        with register_optimizer_step_pre_hook(note):
            yield
        for optimizer, (before, _) in self._traced.items():
            if change := _change(before, optimizer):
                for group, old in zip(optimizer.param_groups, before, strict=False):
                    group.update(old)
                raise changed_inside(change)

    def renew(self) -> None:
        """Bring rates that the host changed to the device. P0703 if another setting changed."""
        for own in self._registry.rated:
            own.push_rates()
        for optimizer, (before, free) in self._traced.items():
            if change := _change(before, optimizer, RATE if free else ""):
                reason = "the function was compiled with another value"
                remedy = "compile it again; only rates of MNCoreOptimizers may change"
                raise error("P0703", name=change, reason=reason, remedy=remedy)


def changed_inside(change: str) -> Exception:
    """Return P0703 for a function that changes a setting of its optimizer."""
    reason = "the function would change it once, while it is traced"
    return error("P0703", name=change, reason=reason, remedy="change it between calls")


def _settings(optimizer: Optimizer) -> list[dict[str, Any]]:
    return [{n: group[n] for n in optimizer.defaults} for group in optimizer.param_groups]


def _change(before: list[dict[str, Any]], optimizer: Optimizer, free: str = "") -> str:
    """Return a setting other than ``free`` that changed, as a text, empty if there is none."""
    now = _settings(optimizer)
    pairs = zip(before, now, strict=False)
    found = [f"{n} = {new[n]}" for old, new in pairs for n in old if n != free and old[n] != new[n]]
    return found[0] if found else "" if len(before) == len(now) else "a new group of parameters"
