"""Pools of torch as ONNX operators that run one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import error
from ..graph.dtypes import numpy_dtype
from .eager import DeviceTensor, Eager

Rule = Callable[..., Any]


def _every(values: int | Sequence[int], axes: int) -> list[int]:
    given = [values] if isinstance(values, int) else list(values)
    return given * axes if len(given) == 1 else given


def _reshaped(eager: Eager, x: DeviceTensor, shape: Sequence[int]) -> DeviceTensor:
    return eager.run("Reshape", x, np.array(shape, np.int64))[0]


def _pooled(
    eager: Eager, operator: str, x: DeviceTensor, sizes: Sequence[list[int]], **settings: Any
) -> list[DeviceTensor]:
    """Run a pool; ``sizes`` are the kernel, the strides if they are others, and the pads.

    Pictures without a batch have an axis for it meanwhile.
    """
    taps, strides, pads = sizes
    alone = len(x.type.shape) == len(taps) + 1
    x = _reshaped(eager, x, (1, *x.type.shape)) if alone else x
    settings |= {"kernel_shape": taps, "strides": strides or taps, "pads": pads * 2}
    made = eager.run(operator, x, **settings)
    return [_reshaped(eager, one, one.type.shape[1:]) if alone else one for one in made]


def max_pool(axes: int) -> Rule:
    """Return the rule of a max pool with the places of the greatest elements."""

    def run(
        eager: Eager,
        x: DeviceTensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
    ) -> list[DeviceTensor]:
        sizes = [_every(one, axes) for one in (kernel, stride, padding)]
        more: dict[str, Any] = {"dilations": _every(dilation, axes), "ceil_mode": int(ceil_mode)}
        made = _pooled(eager, "MaxPool", x, sizes, outputs=2, **more)
        # ONNX counts places through the whole tensor, torch within a picture of a channel.
        pictures = x.type.shape[:-axes]
        first = np.arange(prod(pictures), dtype=np.int64) * prod(x.type.shape[-axes:])
        first = first.reshape(*pictures, *(1,) * axes)
        return [made[0], *eager.run("Sub", made[1], first)]

    return run


def average_pool(axes: int) -> Rule:
    """Return the rule of an average pool."""

    def run(
        eager: Eager,
        x: DeviceTensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> DeviceTensor:
        if divisor_override is not None and (ceil_mode or not count_include_pad):
            reason = "a divisor of its own beside windows that are cut off"
            raise error("P0828", what="an average pool", reason=reason)
        sizes = [_every(one, axes) for one in (kernel, stride, padding)]
        more = {"ceil_mode": int(ceil_mode), "count_include_pad": int(count_include_pad)}
        made = _pooled(eager, "AveragePool", x, sizes, **more)[0]
        if divisor_override is not None:
            factor = np.array(prod(sizes[0]) / divisor_override, numpy_dtype(made.type.elem))
            made = eager.run("Mul", made, factor)[0]
        return made

    return run
