"""Learning rates that a torch scheduler decides and the device uses."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from ..errors import error
from ..frontend.training_step import takes_step
from .optimizers import check_optimizer
from .settings import changed_inside

if TYPE_CHECKING:
    from .context import Context


class MNCoreLRScheduler:
    """Any scheduler of torch around an MNCoreOptimizer, whose state ``context`` has."""

    def __init__(self, torch_scheduler: torch.optim.lr_scheduler.LRScheduler, context: Context):
        """P0704 if the scheduler is not torch's, or not around an MNCoreOptimizer."""
        if not isinstance(torch_scheduler, torch.optim.lr_scheduler.LRScheduler):
            legal = "a scheduler of torch.optim.lr_scheduler"
            raise error("P0704", name="scheduler", value=repr(torch_scheduler), legal=legal)
        check_optimizer(torch_scheduler.optimizer)
        self.scheduler, self.context = torch_scheduler, context

    def step(self, *args: Any) -> None:
        """Let the scheduler step; the next call has the new learning rates. P0703 inside."""
        if takes_step():
            raise changed_inside("the step of a scheduler")
        with warnings.catch_warnings():
            # The optimizer's own steps happen on the device, where torch does not count them.
            warnings.filterwarnings("ignore", ".*lr_scheduler.step.*", UserWarning)
            self.scheduler.step(*args)

    def get_last_lr(self) -> list[float]:
        """Return the learning rate of each group."""
        return [float(rate) for rate in self.scheduler.get_last_lr()]

    def state_dict(self) -> dict[str, Any]:
        """Return the scheduler's state."""
        return dict(self.scheduler.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the scheduler's state; the rates are those of the optimizer's own state."""
        self.scheduler.load_state_dict(state_dict)
