"""Helpers of torch that look at a value on the host and decide: averaged models, scaled losses.

No trace can follow such a decision. For averages, a tensor decides instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch.amp import GradScaler
from torch.optim.swa_utils import AveragedModel, get_swa_avg_fn

from ..errors import error
from .training_step import takes_step


@contextlib.contextmanager
def decided_by_tensors() -> Iterator[None]:
    """Let tensors decide in this thread's trace of a step. P0703 for an enabled GradScaler."""
    models, scalers = AveragedModel.update_parameters, GradScaler.scale
    with (
        patch.object(AveragedModel, "update_parameters", _traced(models, _average)),
        patch.object(GradScaler, "scale", _traced(scalers, _scale)),
    ):
        yield


def _traced(plain: Any, work: Any) -> Any:
    """Return ``work`` for the trace of a step, ``plain`` for another thread."""
    return lambda *args, **named: (work if takes_step() else plain)(*args, **named)


def _average(averaged: Any, model: torch.nn.Module) -> None:
    """Update the parameters of an averaged model; its first ones are those of the model."""
    kept, given = (
        [t.detach() for t in (*m.parameters(), *(m.buffers() if averaged.use_buffers else ()))]
        for m in (averaged.module, model)
    )
    count, together = averaged.n_averaged, averaged.multi_avg_fn
    mean = averaged.avg_fn or get_swa_avg_fn()  # type: ignore[no-untyped-call]
    if together and together.__qualname__.startswith("get_swa_multi_avg_fn"):
        together = None  # its weight would be a number
    with torch.no_grad():
        new = [tensor.clone() for tensor in kept]
        for dtype in {tensor.dtype for tensor in new if together}:
            together(*([t for t in some if t.dtype == dtype] for some in (new, given)), count)
        for tensor, one, other in zip(kept, new, given, strict=True):
            one = one if together else mean(one, other, count)
            tensor.copy_(torch.where(count == 0, other, one))
        if not averaged.use_buffers:
            for own, other in zip(averaged.module.buffers(), model.buffers(), strict=True):
                own.copy_(other)
        count.add_(1)


def _scale(scaler: GradScaler, outputs: Any) -> Any:
    if not scaler.is_enabled():
        return outputs
    reason = "the host decides about the steps and the scale"
    remedy = "scale the loss and the gradients in the function, with torch.where for infinities"
    raise error("P0703", name="GradScaler", reason=reason, remedy=remedy)
