"""Functions of torch that its exporter cannot take, written out while the compiler traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from ..errors import error
from .ctc import ctc_loss
from .cumulative_averages import batch_norm
from .no_writes import model_place
from .plain_operators.functions import (
    bincount,
    corrcoef,
    cov,
    gaussian_nll_loss,
    lstsq,
    masked_select,
    unique_consecutive,
)
from .plain_operators.replacements import not_expressible
from .plain_operators.spectra import istft, stft
from .training_step import NeedsTrace, in_training_step


def _random(x: torch.Tensor, *bounds: int, **named: Any) -> torch.Tensor:
    """Return ``x.random_``, whose argument `from` is no name for the tracer."""
    low, high = (
        (0, *bounds) if len(bounds) == 1 else bounds or (named.get("from", 0), named.get("to"))
    )
    if high is None:
        raise not_expressible("aten.random_ without a limit", model_place())
    return x.copy_(torch.randint(low, high, x.shape))


def _power(x: Any, exponent: Any, **named: Any) -> Any:
    """Return a power; torch's trace takes that of a mask by a truth value for an integer."""
    masks = isinstance(exponent, bool) and getattr(x, "dtype", None) == torch.bool
    return x | (not exponent) if masks else torch.pow(x, exponent, **named)


def _no_other_memory(*_: Any) -> None:
    """Refuse a tensor that gets the memory of another one: the trace follows values. P0703."""
    reason, remedy = "a function cannot give a tensor other memory", "write `tensor.copy_(value)`"
    raise error("P0703", name="tensor.data = value", reason=reason, remedy=remedy)


def _tolist(x: torch.Tensor) -> Any:
    """Return nested lists; torch would take a real tensor's numbers past the trace."""
    return [_tolist(one) for one in x] if x.ndim else x.item()


def _tensor(data: Any, **named: Any) -> torch.Tensor:
    """Return a tensor of the numbers of others, for the same reason."""
    lists = isinstance(data, list | tuple)
    numbers = tree_map_only(torch.Tensor, _tolist, data) if lists else data
    return torch.tensor(numbers, **named)


def _istft(*given: Any, **named: Any) -> torch.Tensor:
    """Return an inverse transform; in a step it is written out, as torch looks at its windows."""
    plain = named.get("return_complex") or not in_training_step()
    return (torch.istft if plain else istft)(*given, **named)


#: Functions that are methods of tensors too.
_OF_BOTH = (bincount, masked_select, unique_consecutive, stft, cov, corrcoef)
_WRITTEN: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((torch.istft, torch.Tensor.istft), _istft),
    functional.ctc_loss: ctc_loss,
    torch.ctc_loss: ctc_loss,
    torch.Tensor.random_: _random,
    torch.linalg.lstsq: lstsq,
    torch.Tensor.tolist: _tolist,
    torch.tensor: _tensor,
    torch.Tensor.data.__set__: _no_other_memory,  # type: ignore[attr-defined]
    **dict.fromkeys((torch.pow, torch.Tensor.pow, torch.Tensor.__pow__), _power),
    **{getattr(place, one.__name__): one for one in _OF_BOTH for place in (torch, torch.Tensor)},
    functional.batch_norm: batch_norm,
    functional.gaussian_nll_loss: gaussian_nll_loss,
}


class WrittenOut(TorchFunctionMode):
    """Calls our function instead of torch's, for those in the table.

    The argument `generator` is left out if it is None; P0138 for another one: a compiled function
    has random numbers of its own.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        # Only the trace of a step sees through the wrappers of vmap, grad and their like. Their own
        # functions pass: they leave the transform when the exception goes through it.
        inside = torch._C._functorch.peek_interpreter_stack() is not None
        own = "functorch" in (getattr(func, "__module__", None) or "")
        if inside and not own and not in_training_step():
            raise NeedsTrace
        given = kwargs or {}
        if any(isinstance(one, torch.Generator) for one in (*args, given.get("generator"))):
            raise not_expressible("torch.Generator", model_place())
        given = {name: one for name, one in given.items() if name != "generator" or one is not None}
        return _WRITTEN.get(func, func)(*args, **given)
