"""Learning rates that a torch scheduler decides and the device uses."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

from ..errors import error
from .optimizers import check_optimizer

if TYPE_CHECKING:
    from .context import Context


class MNCoreLRScheduler:
    """Any scheduler of torch around an MNCoreOptimizer: each step brings its rates to the device.

    ``context`` is where the optimizer's state is registered.
    """

    def __init__(self, torch_scheduler: torch.optim.lr_scheduler.LRScheduler, context: Context):
        """P0704 if the scheduler is not torch's, or not around an MNCoreOptimizer."""
        if not isinstance(torch_scheduler, torch.optim.lr_scheduler.LRScheduler):
            legal = "a scheduler of torch.optim.lr_scheduler"
            raise error("P0704", name="scheduler", value=repr(torch_scheduler), legal=legal)
        check_optimizer(torch_scheduler.optimizer)
        self.scheduler, self.context = torch_scheduler, context
        self._push()

    def step(self, *args: Any) -> None:
        """Let the scheduler step, then bring the learning rates to the device."""
        with warnings.catch_warnings():
            # The optimizer's own steps happen on the device, where torch does not count them.
            warnings.filterwarnings("ignore", ".*lr_scheduler.step.*", UserWarning)
            self.scheduler.step(*args)
        self._push()

    def get_last_lr(self) -> list[float]:
        """Return the learning rate of each group."""
        return [float(rate) for rate in self.scheduler.get_last_lr()]

    def state_dict(self) -> dict[str, Any]:
        """Return the scheduler's state."""
        return dict(self.scheduler.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the scheduler's state; the rates are those of the optimizer's own state."""
        self.scheduler.load_state_dict(state_dict)
        self._push()

    def _push(self) -> None:
        self.scheduler.optimizer.push_rates()  # type: ignore[attr-defined]
