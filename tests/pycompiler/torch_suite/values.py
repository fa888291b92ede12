"""Compares results of exported functions on ``pfvm:cpu`` with torch's: types, shapes, values.

Many calls are exported together, since an export takes longer than a call. If one is refused, its
half of the calls is exported again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch
from suites.outcome import HOST, REFUSED, WRONG, Outcome

from pycompiler.build import host_function
from pycompiler.errors import InternalError, PycompilerError
from pycompiler.frontend.export import export
from pycompiler.pfvm.optimise import optimise
from pycompiler.pfvm.random_numbers import with_random_numbers

from .edges import Call

#: By element type: the error relative to a result, and to the largest result.
_BOUNDS = {
    torch.float64: (1e-10, 1e-13),
    torch.float32: (2e-5, 1e-6),
    torch.float16: (2.0**-9, 2.0**-10),
    torch.bfloat16: (2.0**-6, 2.0**-7),
}
_TOGETHER = 48


def judge_values(calls: Sequence[Call]) -> list[Outcome]:
    """Return what becomes of each call."""
    found: list[Outcome] = []
    for first in range(0, len(calls), _TOGETHER):
        found += _judged(calls[first : first + _TOGETHER])
    return found


def _judged(calls: Sequence[Call]) -> list[Outcome]:
    try:
        problems = _problems(calls)
    except InternalError:
        raise
    except PycompilerError as problem:
        if len(calls) == 1:
            return [Outcome(calls[0].name, "", REFUSED, problem.code, str(problem))]
        middle = len(calls) // 2
        return _judged(calls[:middle]) + _judged(calls[middle:])
    return [
        Outcome(call.name, "", WRONG if problem else HOST, "", problem)
        for call, problem in zip(calls, problems, strict=True)
    ]


def _problems(calls: Sequence[Call]) -> list[str]:
    inputs = {f"{n}.{k}": t for n, call in enumerate(calls) for k, t in enumerate(call.inputs)}

    def every(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        out: dict[str, torch.Tensor] = {}
        for number, call in enumerate(calls):
            own = [given[f"{number}.{k}"].clone() for k in range(len(call.inputs))]
            out |= {f"{number}:{k}": t for k, t in enumerate(_tensors(call.function(*own)))}
        return out

    with torch.no_grad():
        wanted = every(inputs)
    model = with_random_numbers(optimise(export(every, inputs, training=False)))
    made = host_function(model).run({name: _array(tensor) for name, tensor in inputs.items()})
    problems = [""] * len(calls)
    for name, tensor in wanted.items():
        number = int(name.partition(":")[0])
        found = _tensor(made[name].values())
        if calls[number].name.startswith("fft."):  # how terms cancel is the algorithm's
            found, tensor = found + 0, tensor + 0
        problems[number] = problems[number] or difference(found, tensor)
    return problems


def _tensors(found: Any) -> Sequence[torch.Tensor]:
    return found if isinstance(found, (list, tuple)) else [found]


def _array(tensor: torch.Tensor) -> Any:
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.contiguous().numpy()


def _tensor(array: Any) -> torch.Tensor:
    array = np.array(array)
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def difference(found: torch.Tensor, wanted: torch.Tensor) -> str:
    """Return how a result differs. Signs of zero and places of infinities and NaNs count too."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return f"{found.dtype} {[*found.shape]} for {wanted.dtype} {[*wanted.shape]}"
    if not wanted.is_floating_point():
        bad = found != wanted
    else:
        relative, absolute = _BOUNDS[wanted.dtype]
        a, b = found.double(), wanted.double()
        finite = torch.isfinite(b)
        largest = float(b[finite].abs().max()) if finite.any() else 0.0
        near = (a - b).abs() <= relative * b.abs() + absolute * largest
        bad = ~torch.where(finite, near, (a == b) | (a.isnan() & b.isnan()))
        bad |= (a == 0) & (b == 0) & (a.signbit() != b.signbit())
    if not bad.any():
        return ""
    at = int(bad.reshape(-1).nonzero()[0])
    return f"{found.reshape(-1)[at]} for {wanted.reshape(-1)[at]}, {int(bad.sum())} differ"
