"""Training with the same model on every board and a part of the batch on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..errors import error
from ..torch_backend import emu2
from .ranks import Ranks


class DataParallel:
    """A training step over all ranks: the gradients are those of the whole batch.

    ``loss`` is called with the module and this rank's part of the batch and returns the mean over
    its examples. It is compiled for ``device``. The parameters and buffers of rank 0 are copied to
    all ranks at the start. ``options`` are those of the back end ``emu2`` of `torch.compile`.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        loss: Callable[..., torch.Tensor],
        optimizer: torch.optim.Optimizer,
        ranks: Ranks,
        device: str = "emu2",
        options: Mapping[str, Any] | None = None,
    ):
        self.module, self.optimizer, self.ranks = module, optimizer, ranks
        for tensor in (*module.parameters(), *module.buffers()):
            ranks.copy(tensor.data, 0, "the first parameters")
        self._loss = torch.compile(
            lambda *batch: loss(module, *batch),
            backend=emu2,
            options={"device": device, **(options or {})},
        )

    def step(self, *batch: torch.Tensor) -> float:
        """Train on the whole batch, of which this rank takes its part; return the mean loss.

        Every rank gives the same tensors, with the examples along their first axis. P0811, P0812 if
        there are fewer examples than ranks.
        """
        count = len(batch[0])
        if count < self.ranks.size:
            raise error("P0812", count=count, parts=self.ranks.size, what="ranks")
        own = [torch.tensor_split(part, self.ranks.size)[self.ranks.rank] for part in batch]
        self.optimizer.zero_grad()
        loss = self._loss(*own)
        # A mean over a part counts for as many examples as it has.
        weight = len(own[0]) / count
        torch.autograd.backward(loss * weight)
        for parameter in self.module.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self.ranks.sum(parameter.grad, "the sum of gradients")
        self.optimizer.step()
        total = loss.detach() * weight
        self.ranks.sum(total, "the mean loss")
        return float(total)
