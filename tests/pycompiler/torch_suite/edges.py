"""Calls where forms break: numbers at their limits, element types, modes and shapes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_INF, _NAN = math.inf, math.nan
_INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
_HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Call:
    """A function of tensors, which may write into them."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]


def _limits(dtype: torch.dtype) -> Tensor:
    info = torch.iinfo(dtype)
    few = [info.min + 1, info.min + 2, info.max, info.max - 1, 0, 1, 7, 100]
    return torch.tensor([*few, *([-1, -7, -100] if info.min else [])], dtype=dtype)


def _numbers(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.to(dtype)


#: Functions of a tensor and a divisor.
_DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "true": torch.div,
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": torch.fmod,
}


def _divisions() -> Iterator[Call]:
    for (name, function), dtype in itertools.product(_DIVISIONS.items(), _INTEGERS):
        x = _limits(dtype)
        y = torch.where(x == 0, torch.full_like(x, 3), x).flip(0)
        yield Call(f"{name} {dtype}", function, (x, y))
        yield Call(f"{name} {dtype} by 3", lambda x, f=function: f(x, 3), (x,))
        if dtype.is_signed:
            yield Call(f"{name} {dtype} by -7", lambda x, f=function: f(x, -7), (x,))
        yield Call(f"{name} {dtype} by 1.5", lambda x, f=function: f(x, 1.5), (x,))
    for name, function in _DIVISIONS.items():
        for dtype in (torch.float32, torch.float64, *_HALVES):
            some = (5.0, -5.0, 1.0, 0.3, -0.3, 0.0, -0.0, 7.5)
            x = torch.tensor([*some, _INF, 1000.0], dtype=dtype)
            y = torch.tensor([0.1, 0.1, -0.1, 0.1, 2.0, 3.0, 3.0, -2.5, 2.0, 7.0], dtype=dtype)
            yield Call(f"{name} {dtype}", function, (x, y))
            if dtype not in _HALVES:  # torch takes the number for a single there
                yield Call(f"{name} {dtype} by 0.1", lambda x, f=function: f(x, 0.1), (x[:8],))
    yield Call("number // integers", lambda x: 7 // x, (torch.tensor([2, -3]),))
    yield Call("number % integers", lambda x: 7 % x, (torch.tensor([2, -3]),))
    yield Call("number - integers", lambda x: (1.0 - x) * -1e4, (torch.tensor([[1, 0, 3]]),))


def _positive(x: Tensor) -> Tensor:
    return x.abs() + 0.3


#: Functions of a matrix of doubles, with Python numbers that singles do not hold.
_DOUBLES: dict[str, Callable[[Tensor], Any]] = {
    "mul": lambda x: x * 0.1,
    "batch_norm": lambda x: functional.batch_norm(x, x[0], x[1] ** 2, eps=0.1),
    "hardtanh": lambda x: functional.hardtanh(x, -0.1, 0.3),
    "hardtanh_backward": lambda x: torch.ops.aten.hardtanh_backward(x, x, -0.1, 0.3),
    "hinge_embedding_loss": lambda x: functional.hinge_embedding_loss(x, x.sign(), margin=0.3),
    "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x.reshape(-1)), 7),
    "renorm": lambda x: torch.renorm(x, 1.7, 0, 0.3),
    "dist": lambda x: torch.dist(x, 2 * x, 1.7),
    "add alpha": lambda x: torch.add(x, x, alpha=0.1),
    "sub alpha": lambda x: torch.sub(x, x, alpha=0.1),
    "rsub": lambda x: 0.1 - x,
    "rdiv": lambda x: 0.3 / x,
    "pow": lambda x: _positive(x) ** 0.1,
    "rpow": lambda x: 0.1**x,
    "less": lambda x: x * 0 + 0.1 <= 0.1,
    "where": lambda x: torch.where(x > 0.1, x, 0.1),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.1),
    "full": lambda x: torch.full((3,), 0.1, dtype=torch.float64) + x[0],
    "full_like": lambda x: torch.full_like(x, 0.1),
    "new_full": lambda x: x.new_full((2,), 0.1),
    "fill_": lambda x: x.fill_(0.1),
    "clamp": lambda x: torch.clamp(x, -0.1, 0.3),
    "lerp": lambda x: torch.lerp(x, x + 1, 0.1),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.1),
    "addcdiv": lambda x: torch.addcdiv(x, x, _positive(x), value=0.1),
    "vector_norm": lambda x: torch.linalg.vector_norm(x, 3),
    "norm": lambda x: x.norm(1.5),
    "normalize": lambda x: functional.normalize(x, p=1.3),
    "pad": lambda x: functional.pad(x, (1, 1), value=0.1),
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.1),
    "threshold": lambda x: functional.threshold(x, 0.1, 0.3),
    "huber": lambda x: functional.huber_loss(x, x * 0.9, delta=0.1),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], x[None], beta=0.3, alpha=0.1),
    "addmm": lambda x: torch.addmm(x, x, x, beta=0.3, alpha=0.1),
    "layer_norm": lambda x: functional.layer_norm(x, (3,), eps=0.1),
    "scatter": lambda x: x.scatter(0, torch.tensor([[1, 0, 2]]), 0.1),
    "log2": lambda x: torch.log2(_positive(x)),
    "log10": lambda x: torch.log10(_positive(x)),
    "exp2": torch.exp2,
    "isinf": lambda x: torch.isinf(x * 1e300),
    "expm1": lambda x: torch.expm1(x * 1e-9),
    "erfinv": lambda x: torch.erfinv(torch.tanh(x)),
    "erfc": lambda x: torch.erfc(x * 3),
    "erfcx": torch.special.erfcx,
    "ndtr": lambda x: torch.special.ndtr(x * 9),
    "log_ndtr": lambda x: torch.special.log_ndtr(x * 9),
    "ndtri": lambda x: torch.special.ndtri(torch.sigmoid(x * 9)),
    "lgamma": lambda x: torch.lgamma(x * 9),
    "digamma": lambda x: torch.digamma(x * 9),
    "polygamma": lambda x: torch.polygamma(2, _positive(x)),
    "i0": lambda x: torch.special.i0(x * 9),
    "i1e": lambda x: torch.special.i1e(x * 9),
    "gelu": functional.gelu,
    "adaptive": lambda x: functional.adaptive_avg_pool2d(x[None], (2, 2)),
    "cosine": lambda x: functional.cosine_similarity(x, x * 0.3 + 1),
}

#: Functions of short floats of which the last step computes in singles.
_LAST: dict[str, Callable[[Tensor], Any]] = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(1, keepdim=True),
    "abs": torch.abs,
    "amax": lambda x: x.amax(0),
    "amin": lambda x: x.amin(0),
    "prod": lambda x: x.prod(1),
    "cumsum": lambda x: x.cumsum(1),
    "norm": lambda x: x.norm(),
    "mse_loss": lambda x: functional.mse_loss(x, x * 0.5),
    "l1_loss": lambda x: functional.l1_loss(x, x * 0.5),
    "mean": lambda x: x.mean(),
    "std": lambda x: x.std(),
    "softmax": lambda x: x.softmax(0),
    "cosine": lambda x: functional.cosine_similarity(x, x * 0.3 + 1),
}

#: Functions with a `dtype`, which is that of their operand.
_TYPED: dict[str, Callable[..., Any]] = {
    "softmax": lambda x, kind: torch.softmax(x, -1, dtype=kind),
    "log_softmax": lambda x, kind: torch.log_softmax(x, -1, dtype=kind),
    "sum": lambda x, kind: x.sum(-1, dtype=kind),
    "sum of all": lambda x, kind: x.sum(dtype=kind),
    "mean": lambda x, kind: x.mean(-1, dtype=kind),
    "prod": lambda x, kind: x.prod(dtype=kind),
    "cumsum": lambda x, kind: x.cumsum(-1, dtype=kind),
    "cumprod": lambda x, kind: x.cumprod(-1, dtype=kind),
}


def _types() -> Iterator[Call]:
    for name, one in _DOUBLES.items():
        yield Call(f"{name} of doubles", one, (_numbers(3, 3),))
    for way, dtype in itertools.product(("none", "mean", "sum"), (torch.float32, *_HALVES)):
        x, y = (torch.tensor(n, dtype=dtype) for n in ([30.0, -60, 3, 0.2], [-1.0, 1, 1, -1]))

        def margins(x: Tensor, y: Tensor, way: str = way) -> Tensor:
            return functional.soft_margin_loss(x, y, reduction=way)

        yield Call(f"soft_margin_loss of {dtype}, {way}", margins, (x, y))
    for (name, one), dtype in itertools.product(_LAST.items(), _HALVES):
        yield Call(f"{name} of {dtype}", one, (_numbers(3, 3, dtype=dtype),))
    kinds = (torch.float32, torch.float64)
    for (name, typed), kind in itertools.product(_TYPED.items(), kinds):
        for x in (torch.tensor([[1, 2, 3]]), _numbers(2, 3, dtype=torch.float16)):
            yield Call(f"{name} of {x.dtype} as {kind}", lambda x, f=typed, k=kind: f(x, k), (x,))
    powers = (torch.tensor([0.5, 1.5, 3.0]), torch.tensor([2, 3, 0]))
    for base, power in itertools.product((torch.tensor([2, 3, 4]), _numbers(3).abs()), powers):
        yield Call(f"{base.dtype} ** {power.dtype}", torch.pow, (base, power))
    mask = torch.tensor([True, False])
    for power in (True, False, 2, 0.5):
        yield Call(f"mask ** {power!r}", lambda x, n=power: x**n, (mask,))
        yield Call(f"pow of mask by {power!r}", lambda x, n=power: torch.pow(x, n), (mask,))
    for dtype, eps in itertools.product((torch.uint8, torch.int64, torch.float64), (0.2, 0.6)):
        one = lambda x, e=eps: torch.logit(x, e)  # noqa: E731
        yield Call(f"logit of {dtype}, {eps}", one, (torch.tensor([0, 1]).to(dtype),))
    yield Call("int ** 0.5", lambda x: x**0.5, (torch.tensor([2, 3]),))
    yield Call("angle of integers", torch.angle, (torch.tensor([-3, 2, 0]),))
    yield Call("angle", torch.angle, (torch.tensor([-3.0, 2.0, _NAN]),))
    yield Call("mvlgamma", lambda x: torch.mvlgamma(x, 2), (torch.tensor([7, 9]),))
    for name, one in {"any": torch.any, "all": torch.all}.items():
        yield Call(f"{name} of bytes", one, (torch.tensor([0, 2], dtype=torch.uint8),))
        yield Call(f"{name} of an integer", one, (torch.tensor(2),))
    for dtype, count in itertools.product(_INTEGERS, (0, 1, 7, 40)):
        x = _limits(dtype)
        yield Call(f"{dtype} << {count}", lambda x, n=count: x << n, (x,))
        yield Call(f"{dtype} >> {count}", lambda x, n=count: x >> n, (x,))


def _whole_powers() -> Iterator[Call]:
    """Powers of integers beyond the digits of a double, and beyond their own type."""
    for dtype in _INTEGERS:
        x = _limits(dtype)
        for power in (1, 2, 5, 8, 35, 39, 63, 64):
            yield Call(f"{dtype} ** {power}", lambda x, n=power: x**n, (x,))
        powers = torch.arange(x.numel()) * 5
        for kind in dict.fromkeys((dtype, torch.uint8, torch.int64)):
            yield Call(f"{dtype} ** {kind} each", torch.pow, (x, powers.to(kind)))
        yield Call(f"7 ** {dtype}", lambda x: 7**x, (powers.to(dtype),))
        if dtype.is_signed:
            signs = torch.tensor([1, -1, 1, -1])
            yield Call(f"{dtype} ** below 0", torch.pow, (signs.to(dtype), -powers[:4].to(dtype)))
        for rtol, atol in ((1e-5, 1e-8), (0, 0), (0, 1.0), (0.3, 0)):

            def near(x: Tensor, y: Tensor, r: float = rtol, a: float = atol) -> Tensor:
                return torch.isclose(x, y, r, a)

            yield Call(f"isclose {dtype} {rtol} {atol}", near, (x, x.flip(0)))
            yield Call(f"isclose {dtype} {rtol} {atol} beside", near, (x, x ^ 1))
    mask = torch.tensor([True, False])
    yield Call("isclose of masks", torch.isclose, (mask, ~mask))
    yield Call("mask ** integers", torch.pow, (mask, torch.tensor([-2, -1], dtype=torch.int8)))
    halves = torch.tensor([-0.5, 1.5], dtype=torch.float16)
    yield Call("ldexp by halves", torch.ldexp, (_numbers(2, dtype=torch.float32), halves))


def _signs() -> Iterator[Call]:
    ends = torch.tensor([-0.0, 0.0, -1.0, 1.0, _INF, -_INF])
    y, x = (part.reshape(-1) for part in torch.meshgrid(ends, ends, indexing="ij"))
    yield Call("atan2", torch.atan2, (y, x))
    yield Call("copysign", torch.copysign, (y, x))
    yield Call("signbit", torch.signbit, (x,))
    for name in ("isinf", "isposinf", "isneginf", "isnan", "isfinite"):
        for dtype in (torch.float32, torch.float64, torch.int64, *_HALVES):
            given = ends if dtype.is_floating_point else torch.tensor([1, -1])
            yield Call(f"{name} of {dtype}", getattr(torch, name), (given.to(dtype),))


def _joins() -> Iterator[Call]:
    ways = itertools.product(("sum", "mean", "prod", "amax", "amin"), (True, False))
    for (way, own), dtype in itertools.product(ways, (torch.float32, torch.int64, torch.float64)):
        x, source = (torch.tensor(n, dtype=dtype) for n in ([10, 20, -30], [3, -4, 7]))
        place = torch.tensor([0, 0, 2])
        named = f"{way} of {dtype}{' and its own' if own else ''}"

        def scattered(x: Tensor, at: Tensor, y: Tensor, w: str = way, o: bool = own) -> Any:
            return x.scatter_reduce(0, at, y, w, include_self=o)

        yield Call(f"scatter {named}", scattered, (x, place, source))
        if way != "sum":

            def indexed(x: Tensor, at: Tensor, y: Tensor, w: str = way, o: bool = own) -> Any:
                return x.index_reduce(0, at, y, w, include_self=o)

            yield Call(f"index {named}", indexed, (x, place, source))


def _pictures() -> Iterator[Call]:
    for front, back in ((1, -1), (-1, 1), (-1, -1), (2, -3), (0, -2)):
        for mode in ("constant", "replicate", "reflect", "circular"):
            pad = (front, back)
            one = lambda x, p=pad, m=mode: functional.pad(x, p, mode=m)  # noqa: E731
            yield Call(f"pad {pad} {mode}", one, (torch.arange(1.0, 7.0)[None],))
    for dtype in (torch.float32, torch.float64, torch.uint8):
        x = torch.rand(1, 2, 4, 6, generator=torch.Generator().manual_seed(3)) * 255
        for mode, corners in itertools.product(("nearest", "bilinear", "bicubic"), (False, True)):
            if mode == "nearest" and corners:
                continue
            for how in ({"size": (7, 5)}, {"scale_factor": (1.7, 0.6)}, {"scale_factor": 2.0}):
                facts: Any = {"mode": mode, **how, **({"align_corners": True} if corners else {})}
                one = lambda x, f=facts: functional.interpolate(x, **f)  # noqa: E731
                yield Call(f"resize {dtype} {facts}", one, (x.to(dtype),))
    # Sizes that stay or double by other scales: torch's kernels differ, by mode and by size.
    for high, scale in ((7, 1.1), (3, 2.3), (10, 1.3), (7, (1.1, 2.0)), (200, 1.001)):
        picture = torch.arange(high * 8.0).sin().mul(90).add(100).reshape(1, 1, high, 8)
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
            real = torch.float64 if mode == "bicubic" else torch.float32
            for dtype in (real, torch.uint8):
                one = lambda x, s=scale, m=mode: functional.interpolate(x, scale_factor=s, mode=m)  # noqa: E731
                yield Call(f"resize {dtype} {mode} {high} by {scale}", one, (picture.to(dtype),))
    row = torch.arange(26.0)[None, None]
    for count in (64, 3, 50):
        one = lambda x, n=count: functional.interpolate(x, size=n)  # noqa: E731
        yield Call(f"26 to {count}", one, (row,))


def _pools() -> Iterator[Call]:
    """Pools of every type, with windows of -inf, or of the least integers."""
    places = {"return_indices": True}
    for dtype in (torch.float32, torch.float64, *_HALVES, torch.int64):
        x = (_numbers(1, 2, 5, 6, 7) * 20).to(dtype)
        if x.is_floating_point():
            x[0, 1], x[0, 0, 2:, 2:, 2:] = -_INF, -_INF
        for axes, (kernel, *more) in itertools.product((1, 2, 3), ((2, 2), (3, 2, 1), (3, 3))):
            most = getattr(functional, f"max_pool{axes}d")
            mean = getattr(functional, f"avg_pool{axes}d")
            taken = x if axes == 3 else x[:, :, 3] if axes == 2 else x[:, :, 3, 3]
            facts = f"{axes}d {kernel} {more} of {dtype}"
            one = lambda x, f=most, k=kernel, m=more: f(x, k, *m, ceil_mode=True)  # noqa: E731
            if axes > 1 or x.is_floating_point():
                yield Call(f"max_pool{facts}", one, (taken,))
            one = lambda x, f=most, k=kernel, m=more: f(x, k, *m, **places)  # noqa: E731
            yield Call(f"places of max_pool{facts}", one, (taken,))
            if axes == 2 or dtype in (torch.float32, torch.float64):  # torch has no others
                one = lambda x, f=mean, k=kernel, m=more: f(x, k, *m, ceil_mode=True)  # noqa: E731
                yield Call(f"avg_pool{facts}", one, (taken,))


def _choices() -> Iterator[Call]:
    """Elements that are not chosen may be infinite; bounds may lie beyond the range of integers."""
    x = torch.tensor([[1.0, _NAN, -_INF, _INF], [0.5, 3.0, 2.5, -2.5], [7.0, -1.0, 1.0, 3.0]])
    for dtype in (torch.float32, torch.float64, *_HALVES):
        for offset in (0, 1, -1, 4, -2):
            one = lambda x, n=offset: torch.diagonal(x, n)  # noqa: E731
            yield Call(f"diagonal {offset} of {dtype}", one, (x.to(dtype),))
        yield Call(f"trace of {dtype}", torch.trace, (x.to(dtype),))
    for dtype in (torch.float64, *_HALVES):
        near = lambda x: functional.interpolate(x[None], scale_factor=2.0)  # noqa: E731
        yield Call(f"nearest infinities of {dtype}", near, (x.to(dtype),))
    mask = torch.tensor([[True, False], [True, True]])
    yield Call("diagonal of a mask", torch.diagonal, (mask,))
    yield Call("trace of integers", torch.trace, (torch.tensor([[3, 1], [2, 4]]),))
    for dtype in _INTEGERS:
        for bounds in ({"min": -300, "max": 70000}, {"max": 2**40}, {"min": -1}, {"min": 1.5}):
            one = lambda x, b=bounds: torch.clamp(x, **b)  # noqa: E731
            yield Call(f"clamp {dtype} {bounds}", one, (_limits(dtype),))


def _shapes() -> Iterator[Call]:
    for name, one in {**_LAST, "any": torch.any, "median": torch.median}.items():
        if name not in ("sum of rows", "prod", "cumsum", "cosine", "std"):
            yield Call(f"{name} of a number", one, (torch.tensor(-2.5),))
    for function in (torch.sum, torch.mean, torch.prod, torch.any, torch.all):
        empty = torch.zeros(2, 0)
        yield Call(f"{function.__name__} of no elements", function, (empty,))
        keep = lambda x, f=function: f(x, 1, keepdim=True)  # noqa: E731
        yield Call(f"{function.__name__} of empty rows", keep, (empty,))
    yield Call("stack", lambda x, y: torch.stack([x, y]), (torch.arange(3), _numbers(3)))
    yield Call("ldexp", torch.ldexp, (_numbers(3), torch.tensor([3, 0, -2])))
    yield Call("copy_ of a row", lambda x, y: x.copy_(y), (torch.zeros(4, 3), torch.arange(3)))
    yield Call("pow_", lambda x: x.pow_(2).mul_(0.1), (_numbers(4),))
    yield Call("div_ floor", lambda x: x.div_(3, rounding_mode="floor"), (torch.tensor([7, -7]),))
    row = torch.full((1, 7), 1e6)
    yield Call("layer norm of equal numbers", lambda x: functional.layer_norm(x, (7,)), (row,))
    yield Call("mean of equal numbers", lambda x: x.mean(1), (row,))
    yield Call("variance of equal numbers", lambda x: x.var(1), (row,))


def _sequences() -> Iterator[Call]:
    """Integers between numbers that are none, and the parts of numbers at their limits."""
    steps = ((-0.9, 2.1, 2.0), (-0.5, 2), (0, 2, 0.5), (3, -1, -0.7), (2.5,), (-1.5, 3.0, 1.5))
    for given, dtype in itertools.product(steps, (torch.uint8, torch.int64, torch.float32)):
        one = lambda x, g=given, d=dtype: torch.arange(*g, dtype=d) + x.to(d)  # noqa: E731
        yield Call(f"arange {given} of {dtype}", one, (torch.zeros(1),))
    points = ((2.7, 9.6, 5), (4.9, 3.1, 9), (0, -7, 5), (0.7, 2.5, 1))
    for (first, last, count), dtype in itertools.product(points, (torch.uint8, torch.int64)):
        name, ends = f"{first} to {last} of {dtype}", (torch.tensor(first), torch.tensor(last))
        line = lambda x, y, n=count, d=dtype: torch.linspace(x, y, n, dtype=d)  # noqa: E731
        yield Call(f"linspace {name}", line, ends)
        curve = lambda x, y, n=count, d=dtype: torch.logspace(x, y.abs() / 4, n, 3, dtype=d)  # noqa: E731
        yield Call(f"logspace {name}", curve, ends)
        tens = lambda x, y, n=count, d=dtype: torch.logspace(x / 9, y.abs() / 9, n, dtype=d)  # noqa: E731
        yield Call(f"logspace of tens {name}", tens, ends)
    for dtype in (torch.float32, torch.float64, *_HALVES):
        info = torch.finfo(dtype)
        x = torch.tensor([0.0, -0.0, _INF, -_INF, _NAN, 0.1, -3, info.max, info.tiny], dtype=dtype)
        yield Call(f"frexp of {dtype}", torch.frexp, (x,))


def edge_calls() -> list[Call]:
    """Return all calls."""
    parts = (
        _divisions(),
        _types(),
        _whole_powers(),
        _signs(),
        _joins(),
        _pictures(),
        _pools(),
        _shapes(),
        _choices(),
        _sequences(),
    )
    return list(itertools.chain(*parts))
