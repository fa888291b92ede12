"""Functions of torch that its exporter cannot take, written out while the compiler traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from .ctc import ctc_loss
from .cumulative_averages import batch_norm
from .plain_operators.functions import (
    bincount,
    corrcoef,
    cov,
    gaussian_nll_loss,
    lstsq,
    masked_select,
    unique_consecutive,
)
from .plain_operators.spectra import stft

_REDUCTIONS = ("none", "mean", "sum")  # torch counts them in this order


def _ctc(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str | int = "mean",
    zero_infinity: bool = False,
) -> torch.Tensor:
    if isinstance(reduction, int):
        reduction = _REDUCTIONS[reduction]
    return ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity
    )


_WRITTEN: dict[Any, Callable[..., Any]] = {
    functional.ctc_loss: _ctc,
    torch.ctc_loss: _ctc,
    torch.bincount: bincount,
    torch.Tensor.bincount: bincount,
    torch.masked_select: masked_select,
    torch.Tensor.masked_select: masked_select,
    torch.unique_consecutive: unique_consecutive,
    torch.Tensor.unique_consecutive: unique_consecutive,
    torch.stft: stft,
    torch.Tensor.stft: stft,
    torch.cov: cov,
    torch.Tensor.cov: cov,
    torch.corrcoef: corrcoef,
    torch.Tensor.corrcoef: corrcoef,
    torch.linalg.lstsq: lstsq,
    functional.batch_norm: batch_norm,
    functional.gaussian_nll_loss: gaussian_nll_loss,
}


class WrittenOut(TorchFunctionMode):
    """Calls our function instead of torch's, for those in the table."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return _WRITTEN.get(func, func)(*args, **(kwargs or {}))
