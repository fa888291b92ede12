"""Measures the errors of torch's functions on the device, and writes docs/function_errors.md.

``python tests/pycompiler/function_errors.py`` compiles each function for one vector, and compares
with torch in double precision. The vector has numbers of every exponent and sign of float32, more
of them where functions bend, and the neighbours of zeros, poles and ends of ranges.
"""

from __future__ import annotations

import math
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import double_functions
import numpy as np
import torch
from torch import special
from torch.nn import functional

from pycompiler.mlsdk import Context, MNDevice

Array = np.ndarray[Any, Any]
PAGE = Path(__file__).parents[2] / "docs" / "function_errors.md"
DEVICE = "emu2:mini"
LEAST, MOST = 2.0**-126, float(np.finfo(np.float32).max)
PER_EXPONENT, PER_RANGE = 16, 2000
#: Points whose neighbours are tried: zeros, poles, and ends of ranges.
POINTS = (0.5, 1, 1.4616321, 2, 3, 10, 22, math.pi / 2, math.pi, 2 * math.pi, 1000 * math.pi, 88.7)


@dataclass(frozen=True)
class Function:
    """A function: ``floor`` is the size below which its error counts relative to this size."""

    made_of: Callable[..., torch.Tensor]
    floor: float = 0.0
    operands: int = 1
    #: what is left out, and why
    known: Callable[..., Array] | None = None
    note: str = ""


def _above(limit: float) -> Callable[[Array], Array]:
    return lambda x: x >= limit


def _normal(x: Array, y: Array) -> Array:
    """Leave out quotients that overflow or vanish."""
    with np.errstate(all="ignore"):
        ratio = np.abs(x / y)
    return np.asarray((ratio > LEAST) & (ratio < MOST))


_NEAR_ZEROS = "near its zeros, relative to 1"
_CANCELS = "a difference where it is small, as in torch; relative to 1 there"
FUNCTIONS: dict[str, Function] = {
    **{
        name: Function(getattr(torch, name))
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
            *("reciprocal", "square", "sigmoid", "tanh", "sin", "cos", "tan", "asin", "acos"),
            *("atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv"),
        )
    },
    "lgamma": Function(torch.lgamma, 1.0, note=_NEAR_ZEROS),
    "digamma": Function(torch.digamma, 1.0, note=_NEAR_ZEROS),
    "polygamma(1, x)": Function(
        lambda x: torch.polygamma(1, x), known=_above(0.0), note="for positive x"
    ),
    "sinc": Function(torch.sinc, 1.0, note=_NEAR_ZEROS),
    "logit": Function(torch.logit, 1.0, note=_CANCELS),
    **{
        f"special.{name}": Function(getattr(special, name))
        for name in ("entr", "erfcx", "i0", "i0e", "i1", "i1e", "ndtri", "spherical_bessel_j0")
    },
    "special.ndtr": Function(
        special.ndtr, known=_above(-5.0), note="from -5: below, torch in double precision errs"
    ),
    "special.log_ndtr": Function(special.log_ndtr, 1.0, note="where it is near 0, relative to 1"),
    **{
        f"nn.functional.{name}": Function(getattr(functional, name))
        for name in ("elu", "logsigmoid", "mish", "selu", "softplus", "softsign")
    },
    "nn.functional.gelu": Function(
        functional.gelu, known=_above(-5.0), note="from -5: below, torch in double precision errs"
    ),
    "nn.functional.silu": Function(
        functional.silu, known=_above(-87.0), note="from -87: below, the sigmoid becomes 0"
    ),
    "nn.functional.tanhshrink": Function(functional.tanhshrink, 1.0, note=_CANCELS),
    "atan2": Function(torch.atan2, operands=2, known=_normal, note="quotients in the range"),
    "hypot": Function(torch.hypot, operands=2),
    "logaddexp": Function(torch.logaddexp, 1.0, operands=2, note=_NEAR_ZEROS),
    "logaddexp2": Function(torch.logaddexp2, 1.0, operands=2, note=_NEAR_ZEROS),
    "pow": Function(torch.pow, operands=2),
}


def arguments(seed: int = 7) -> Array:
    """Return the vector of a function of one argument."""
    made = np.random.default_rng(seed)
    exponents = np.repeat(np.arange(1, 255, dtype=np.uint32), PER_EXPONENT)
    fractions = made.integers(0, 1 << 23, exponents.size).astype(np.uint32)
    for place, fraction in enumerate((0, 1, (1 << 23) - 1, 0x3504F3, 0x3504F2)):
        fractions[place::PER_EXPONENT] = fraction
    every = (exponents << np.uint32(23) | fractions).view(np.float32)
    ranges = [made.uniform(-size, size, PER_RANGE) for size in (1, 5, 20, 110)]
    ranges += [sign * (1 + made.uniform(-0.5, 1, PER_RANGE)) for sign in (1, -1)]
    steps = [sign * 2.0**-k for k in range(1, 23) for sign in (1, -1)]
    near = [sign * point + step for point in POINTS for sign in (1, -1) for step in steps]
    return np.concatenate([every, -every, [0.0], *ranges, near]).astype(np.float32)


def pairs(seed: int = 8) -> tuple[Array, Array]:
    """Return arguments of two: any two, two of like size, and small powers of any."""
    made, x = np.random.default_rng(seed), arguments()
    y = made.permutation(x)
    third = len(x) // 3
    with np.errstate(all="ignore"):
        y[:third] = x[:third] * made.uniform(0.01, 3, third).astype(np.float32)
        slope = np.maximum(np.abs(np.log2(np.abs(x[third : 2 * third].astype(float)))), 1e-3)
    y[third : 2 * third] = made.uniform(-120, 120, third) / np.minimum(slope, 1e3)
    y[np.abs(y) < LEAST] = 0
    return x, y


def measure(name: str, device: str = DEVICE) -> tuple[float, list[float], int]:
    """Return the largest error of a function, where it is, and how many arguments counted."""
    function = FUNCTIONS[name]
    values = (arguments(),) if function.operands == 1 else pairs()
    given = {f"x{place}": torch.from_numpy(value) for place, value in enumerate(values)}
    call, context = function.made_of, Context(MNDevice(device))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"strict": True}
        compiled = context.compile(
            lambda d: {"y": call(*d.values())}, given, Path(folder) / "out", options=options
        )
        found = compiled(given)["y"].cpu().numpy().astype(float)
    wanted = call(*(value.double() for value in given.values())).numpy()
    with np.errstate(all="ignore"):
        counted = np.isfinite(wanted) & (np.abs(wanted) < MOST)
        counted &= np.abs(wanted) >= LEAST
        if function.known is not None:
            counted &= function.known(*values)
        errors = np.abs(found - wanted) / np.maximum(np.abs(wanted), function.floor)
    errors = np.where(counted, np.where(np.isnan(errors), np.inf, errors), 0.0)
    worst = int(np.argmax(errors))
    return float(errors[worst]), [float(value[worst]) for value in values], int(counted.sum())


def row(name: str) -> str:
    """Return the row of the page."""
    error, place, count = measure(name)
    exponent = math.ceil(10 * math.log2(error)) / 10 if error else 0.0
    shown = f"2^{exponent:.1f}" if error else "0"
    at = ", ".join(f"{value:.9g}" for value in place)
    return f"| `{name}` | {shown} | {at} | {count} | {FUNCTIONS[name].note} |"


_HEAD = f"""\
<!-- Generated by `python tests/pycompiler/function_errors.py`; do not edit. -->

# Errors of functions

This page has the largest error of each function of torch in `float32` that was measured on
`{DEVICE}`. It is |result - reference| / |reference|, with torch in double precision as the
reference. Each function got {len(arguments())} arguments: {PER_EXPONENT} of every exponent and
sign, more where functions bend, and the neighbours of zeros, poles and ends of ranges. Those count
whose result is a normal number of `float32`. [Operators](operators.md) has the bounds of ONNX's
operators, which the tests check on more numbers.

```sh
python tests/pycompiler/function_errors.py
```

| function of torch | largest error | at | arguments | how it counts |
| --- | --- | --- | ---: | --- |
"""


def wide_row(op: str) -> str:
    """Return the row of an operator of ONNX in doubles."""
    operands, _, _, relative = double_functions.errors(op)
    worst = int(np.argmax(relative))
    exponent = math.ceil(10 * math.log2(float(relative[worst]))) / 10
    at = ", ".join(f"{float(x[worst]):.17g}" for x in operands)
    return f"| `{op}` | 2^{exponent:.1f} | {at} | {len(relative)} |"


_WIDE = """
## In double precision

The same for operators of ONNX in `float64`. The reference has 64 bits of mantissa or more.
Arguments are numbers of every exponent and sign, more where functions bend, and the doubles next to
multiples of quarter turns. The bound of all of them is 2^-48.

| operator | largest error | at | arguments |
| --- | --- | --- | ---: |
"""


def main() -> None:
    """Measure all functions and write the page; with names, print the rows of those."""
    names = sys.argv[1:]
    rows, wide = [], []
    for name in names or (*FUNCTIONS, *double_functions.FUNCTIONS):
        own, make = (rows, row) if name in FUNCTIONS else (wide, wide_row)
        own.append(make(name))
        print(own[-1], flush=True)
    if not names:
        lines = "\n".join(rows) + "\n" + _WIDE + "\n".join(wide) + "\n"
        PAGE.write_text(_HEAD + lines)


if __name__ == "__main__":
    main()
