"""Counts the floating-point operations of a function of torch, as its formula has them."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2, prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

#: Operators that do one operation for each element of their result.
_EACH = {
    *("add", "sub", "mul", "div", "rsub", "add_", "sub_", "mul_", "div_", "maximum", "minimum"),
    *("exp", "log", "sqrt", "rsqrt", "cos", "sin", "abs", "neg", "sign", "square", "reciprocal"),
    *("pow", "where", "cumsum", "cumprod", "index_add", "lt", "gt", "le", "ge", "eq"),
}
#: Those that do one for each element of their operand.
_READ = {"sum", "mean", "amax", "amin", "argmin", "argmax", "prod"}


class _Elementwise(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in ("mv", "dot"):
            self.operations += 2 * args[0].numel()
        if name.startswith("_fft"):
            whole = max(args[0], result, key=torch.numel)
            length = prod(whole.shape[axis] for axis in args[1])
            real = 1 if name == "_fft_c2c" else 2
            self.operations += round(5 * whole.numel() * log2(length)) // real
        counted = result if name in _EACH else args[0] if name in _READ else None
        if isinstance(counted, torch.Tensor):
            self.operations += counted.numel()
        return result


def operations(function: Any, tensors: Mapping[str, torch.Tensor]) -> int:
    """Return the operations of one call: two for a multiply-add of a product.

    A transform of n complex numbers counts 5 n log2(n), as is usual, of real ones half of that.
    What the library does inside of other functions, such as factors of matrices, does not count.
    """
    products, rest = FlopCounterMode(display=False), _Elementwise()
    with products, rest:
        function(torch, **tensors)
    return int(products.get_total_flops()) + rest.operations
