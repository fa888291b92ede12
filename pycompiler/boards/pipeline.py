"""A model in stages, one per board: micro-batches stream through them, gradients stream back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from ..errors import error
from ..torch_backend import emu2
from .ranks import Ranks

_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32)
_MOST_AXES = 8


class Pipeline:
    """The stage of a rank; stage 0 takes the inputs, the last one makes the result.

    ``loss`` is called with the last stage's result and the targets and returns the mean over the
    examples; only the last rank needs it. Stages are compiled for ``device``. ``options`` are those
    of the back end ``emu2`` of `torch.compile`.
    """

    def __init__(
        self,
        stage: torch.nn.Module,
        ranks: Ranks,
        loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        device: str = "emu2",
        options: Mapping[str, Any] | None = None,
    ):
        self.stage, self.ranks, self.optimizer = stage, ranks, optimizer
        self._first, self._last = ranks.rank == 0, ranks.rank == ranks.size - 1
        facts = {"device": device, **(options or {})}

        def ended(x: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
            assert loss is not None, "the last rank needs a loss"
            return loss(stage(x), wanted)

        def run(x: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = stage(x)
            return made

        self._run = torch.compile(run, backend=emu2, options=facts)
        self._end = torch.compile(ended, backend=emu2, options=facts)

    def forward(self, inputs: torch.Tensor, micro_batches: int = 1) -> torch.Tensor | None:
        """Return the result of the whole model on the last rank, None on the others.

        Every rank gives the same inputs; only the first uses more than their number. P0811, P0812.
        """
        made = []
        with torch.no_grad():
            for part in self._parts(inputs, micro_batches):
                found = self._run(part if self._first else self._receive(-1, "an activation"))
                if self._last:
                    made.append(found)
                else:
                    self._send(found, 1, "an activation")
        return torch.cat(made) if self._last else None

    def step(self, inputs: torch.Tensor, targets: torch.Tensor, micro_batches: int = 1) -> float:
        """Train on a batch in ``micro_batches`` parts; return the mean loss.

        Every rank gives the same tensors; the first uses the inputs, the last the targets. First
        all parts go forward, then their gradients come back in the same order. P0811, P0812.
        """
        if self.optimizer is not None:
            self.optimizer.zero_grad()
        parts = self._parts(inputs, micro_batches)
        wanted = torch.tensor_split(targets, micro_batches)
        sent: list[tuple[torch.Tensor, torch.Tensor]] = []
        total = torch.zeros(())
        for part, goal in zip(parts, wanted, strict=True):
            x = part if self._first else self._receive(-1, "an activation")
            if not self._first:
                x.requires_grad_(x.is_floating_point())
            if self._last:
                result = self._end(x, goal) * (len(goal) / len(targets))
                total += result.detach()
            else:
                result = self._run(x)
                self._send(result.detach(), 1, "an activation")
            sent.append((x, result))
        for x, result in sent:
            if self._last:
                torch.autograd.backward(result)
            else:
                torch.autograd.backward(result, self._receive(1, "a gradient"))
            if not self._first:
                assert x.grad is not None, "no gradient comes back through a stage"
                self._send(x.grad, -1, "a gradient")
        if self.optimizer is not None:
            self.optimizer.step()
        self.ranks.copy(total, self.ranks.size - 1, "the mean loss")
        return float(total)

    def _parts(self, inputs: torch.Tensor, count: int) -> tuple[torch.Tensor, ...]:
        if not 1 <= count <= len(inputs):
            raise error("P0812", count=len(inputs), parts=count, what="micro-batches")
        return torch.tensor_split(inputs, count)

    def _send(self, tensor: torch.Tensor, by: int, what: str) -> None:
        """Send a tensor to a neighbour, after its dtype and shape."""
        if tensor.dtype not in _DTYPES or tensor.ndim > _MOST_AXES:
            shown = f"{tensor.dtype} with {tensor.ndim} axes"
            raise error("P0704", name=what, value=shown, legal=f"of {_DTYPES}, up to 8 axes")
        head = torch.zeros(2 + _MOST_AXES, dtype=torch.int64)
        head[0], head[1] = _DTYPES.index(tensor.dtype), tensor.ndim
        head[2 : 2 + tensor.ndim] = torch.tensor(tensor.shape, dtype=torch.int64)
        with self.ranks.talking(what):
            dist.send(head, self.ranks.rank + by)
            dist.send(tensor.contiguous(), self.ranks.rank + by)

    def _receive(self, by: int, what: str) -> torch.Tensor:
        head = torch.zeros(2 + _MOST_AXES, dtype=torch.int64)
        with self.ranks.talking(what):
            dist.recv(head, self.ranks.rank + by)
            shape = head[2 : 2 + int(head[1])].tolist()
            tensor = torch.empty(shape, dtype=_DTYPES[int(head[0])])
            dist.recv(tensor, self.ranks.rank + by)
        return tensor
