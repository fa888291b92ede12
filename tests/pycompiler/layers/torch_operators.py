"""The compiler's operators as torch functions, in families that are exported together.

A family draws shapes, axes and factors. It returns functions of a dict of tensors, their inputs,
and the allowed error of each result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from hypothesis import strategies as st

from pycompiler.tolerance import ELEMENTWISE, FUNCTION, SUM, SUMS, bound

Tensors = dict[str, torch.Tensor]
Shape = tuple[int, ...]
F = torch.nn.functional
MOST = 360  # elements: an axis that two shapes split differently must fit one PE

#: Largest |result - reference|, by the reference in double precision and the mode.
Limit = Callable[[torch.Tensor, str], torch.Tensor]


def exact(wanted: torch.Tensor, mode: str) -> torch.Tensor:
    return torch.zeros(())


def relative(kind: str, operations: int = 1) -> Limit:
    return lambda wanted, mode: bound("Float", kind, operations) * wanted.abs() + 2.0**-126


def summed(terms: int, scale: float, *, product: bool = False) -> Limit:
    """Return the limit of sums (and functions of sums) of ``terms`` terms up to ``scale``."""

    def limit(wanted: torch.Tensor, mode: str) -> torch.Tensor:
        dtype = "Half" if product and mode == "mixed" else "Float"
        return torch.tensor(terms * scale * SUMS[dtype, SUM])

    return limit


@dataclass
class Family:
    """Functions that read the same inputs."""

    inputs: Tensors
    functions: dict[str, Callable[[Tensors], torch.Tensor]] = field(default_factory=dict)
    limits: dict[str, Limit] = field(default_factory=dict)

    def add(self, name: str, limit: Limit, function: Callable[[Tensors], torch.Tensor]) -> None:
        self.functions[name], self.limits[name] = function, limit

    def call(self, given: Tensors) -> Tensors:
        """Call all functions."""
        return {name: function(given) for name, function in self.functions.items()}


def numbers(shape: Shape, seed: int) -> torch.Tensor:
    made = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=made) * 2


def whole(shape: Shape, seed: int, dtype: torch.dtype) -> torch.Tensor:
    """Integers over the whole range, and small ones."""
    made = torch.Generator().manual_seed(seed)
    info = torch.iinfo(dtype)
    far = torch.randint(info.min, info.max, shape, generator=made, dtype=dtype)
    near = torch.randint(-3, 4, shape, generator=made, dtype=dtype)
    return torch.where(torch.rand(shape, generator=made) < 0.5, near, far)


@st.composite
def shapes(draw: st.DrawFn, least: int = 0, most: int = 6, elements: int = MOST) -> Shape:
    """Draw a shape of any rank with few elements."""
    shape: list[int] = []
    for _ in range(draw(st.integers(least, most))):
        size = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 17]))
        shape.append(size if prod(shape) * size <= elements else 1)
    return tuple(shape)


def part_of(draw: st.DrawFn, shape: Shape) -> Shape:
    """A shape that broadcasts to ``shape``."""
    kept = [size if draw(st.integers(0, 2)) else 1 for size in shape]
    return tuple(kept[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :])


def functions(draw: st.DrawFn, seed: int) -> Family:
    """One argument."""
    x = numbers(draw(shapes()), seed)
    made = Family({"x": x, "p": x.abs() + 0.125})
    unary = relative(ELEMENTWISE)
    curve = relative(FUNCTION, 4)
    for name, function in {
        "Neg": torch.neg,
        "Abs": torch.abs,
        "Relu": torch.relu,
        "Floor": torch.floor,
        "Ceil": torch.ceil,
        "Round": torch.round,
        "Sign": torch.sign,
    }.items():
        made.add(name, exact, lambda d, f=function: f(d["x"]))  # type: ignore[misc]
    for name, function in {
        "LeakyRelu": lambda x: F.leaky_relu(x, 0.25),
        "Clip": lambda x: x.clamp(-1.0, 1.5),
    }.items():
        made.add(name, unary, lambda d, f=function: f(d["x"]))  # type: ignore[misc]
    for name, function in {
        "Exp": torch.exp,
        "Tanh": torch.tanh,
        "Sigmoid": torch.sigmoid,
        "Erf": torch.erf,
        "Silu": F.silu,
        "Elu": F.elu,
        "Softplus": F.softplus,
    }.items():
        made.add(name, curve, lambda d, f=function: f(d["x"]))  # type: ignore[misc]
    # torch's own GELU has cancellation for negative arguments
    made.add("Gelu", lambda w, m: curve(w, m) + 2.0**-22, lambda d: F.gelu(d["x"]))
    made.add(
        "Gelu, tanh",
        lambda w, m: curve(w, m) + 2.0**-20,
        lambda d: F.gelu(d["x"], approximate="tanh"),
    )
    for name, function in {
        "Sqrt": torch.sqrt,
        "Rsqrt": torch.rsqrt,
        "Reciprocal": torch.reciprocal,
        "Log": torch.log,
    }.items():
        made.add(name, curve, lambda d, f=function: f(d["p"]))  # type: ignore[misc]
    made.add("Cast", exact, lambda d: d["x"].int())
    made.add("Cast, back", exact, lambda d: (d["x"] > 0).float())
    made.add("Not", exact, lambda d: torch.logical_not(d["x"] > 0.5))
    made.add("Identity", exact, lambda d: d["x"].clone())
    return made


def pairs(draw: st.DrawFn, seed: int) -> Family:
    """Two arguments that broadcast."""
    shape = draw(shapes())
    one, other = part_of(draw, shape), part_of(draw, shape)
    x, y = numbers(one, seed), numbers(other, seed + 1)
    made = Family({"x": x, "y": y, "q": y.abs() + 0.25, "p": x.abs() + 0.25})
    add = relative(ELEMENTWISE)
    made.add("Add", add, lambda d: d["x"] + d["y"])
    made.add("Sub", add, lambda d: d["x"] - d["y"])
    made.add("Mul", add, lambda d: d["x"] * d["y"])
    made.add("Div", relative(FUNCTION), lambda d: d["x"] / d["q"])
    made.add("Pow", relative(FUNCTION), lambda d: d["p"] ** d["y"])
    made.add("Min", exact, lambda d: torch.minimum(d["x"], d["y"]))
    made.add("Max", exact, lambda d: torch.maximum(d["x"], d["y"]))
    made.add("Where", exact, lambda d: torch.where(d["x"] > 0, d["x"], d["y"]))
    made.add("Equal", exact, lambda d: d["x"].round() == d["y"].round())
    made.add("Not equal", exact, lambda d: d["x"].round() != d["y"].round())
    made.add("Less", exact, lambda d: d["x"] < d["y"])
    made.add("LessOrEqual", exact, lambda d: d["x"] <= d["y"])
    made.add("Greater", exact, lambda d: d["x"] > d["y"])
    made.add("GreaterOrEqual", exact, lambda d: d["x"] >= d["y"])
    made.add("And", exact, lambda d: (d["x"] > 0) & (d["y"] > 0))
    made.add("Or", exact, lambda d: (d["x"] > 0) | (d["y"] > 0))
    made.add("Xor", exact, lambda d: (d["x"] > 0) ^ (d["y"] > 0))
    return made


def integers(draw: st.DrawFn, seed: int) -> Family:
    """int32 and int64 over their whole range."""
    shape = draw(shapes(elements=160))
    one, other = part_of(draw, shape), part_of(draw, shape)
    made = Family({})
    for name, dtype in (("32", torch.int32), ("64", torch.int64)):
        made.inputs |= {f"a{name}": whole(one, seed, dtype), f"b{name}": whole(other, seed, dtype)}
        for op, function in {
            "Add": torch.add,
            "Sub": torch.sub,
            "Mul": torch.mul,
            "Equal": torch.eq,
            "Less": torch.lt,
            "GreaterOrEqual": torch.ge,
        }.items():

            def call(d: Tensors, f: Any = function, n: str = name) -> torch.Tensor:
                found: torch.Tensor = f(d[f"a{n}"], d[f"b{n}"])
                return found

            made.add(f"{op}, int{name}", exact, call)
    made.add("Cast, int64 to int32", exact, lambda d: d["a64"].int())
    made.add("Cast, int32 to float", exact, lambda d: d["a32"].float())
    return made


def reductions(draw: st.DrawFn, seed: int) -> Family:
    """Over any axes, kept or not."""
    shape = draw(shapes(1, 6))
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    keep = draw(st.booleans())
    axis = axes[0] - (len(shape) if draw(st.booleans()) else 0)
    x = numbers(shape, seed)
    made = Family({"x": x})
    total = summed(prod(shape[a] for a in axes), 8.0)
    made.add("ReduceSum", total, lambda d: d["x"].sum(axes, keep))
    made.add("ReduceMean", summed(2, 8.0), lambda d: d["x"].mean(axes, keep))
    made.add("ReduceMax", exact, lambda d: d["x"].amax(axes, keep))
    made.add("ReduceMin", exact, lambda d: d["x"].amin(axes, keep))
    made.add("ArgMax", exact, lambda d: d["x"].argmax(axis, keep))
    made.add("ArgMin", exact, lambda d: d["x"].argmin(axis, keep))
    made.add("ReduceSum, all", summed(x.numel(), 8.0), lambda d: d["x"].sum())
    return made


def normalisers(draw: st.DrawFn, seed: int) -> Family:
    """Softmax and the norms."""
    shape = draw(shapes(2, 6))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    last = shape[-draw(st.integers(1, 2)) :]
    x = numbers(shape, seed)
    made = Family({"x": x})
    # Sums over an axis of terms up to 1, combined with functions.
    few = summed(shape[axis] + 8, 1.0)
    made.add("Softmax", few, lambda d: torch.softmax(d["x"], axis))
    made.add("LogSoftmax", summed(shape[axis] + 8, 8.0), lambda d: torch.log_softmax(d["x"], axis))
    weight, bias = numbers(last, seed + 1), numbers(last, seed + 2)
    # Deviations are divided by numbers that may be as small as the square root of epsilon.
    wide = summed(prod(last) + 8, 8.0 / 0.1)
    made.add("LayerNorm", wide, lambda d: F.layer_norm(d["x"], last, weight, bias, 0.01))
    made.add("RMSNorm", wide, lambda d: F.rms_norm(d["x"], last, weight, 0.01))
    mean, scale = numbers(shape[1:2], seed + 3), numbers(shape[1:2], seed + 4)
    spread = numbers(shape[1:2], seed + 5).abs() + 0.25
    made.add(
        "BatchNorm",
        summed(8, 200.0),
        lambda d: F.batch_norm(d["x"], mean, spread, scale, mean, False, 0.1, 0.01),
    )
    return made


def products(draw: st.DrawFn, seed: int) -> Family:
    """Batched, all transpositions, with and without bias."""
    size = st.sampled_from([1, 2, 3, 5, 8, 17])
    m, n, k = draw(size), draw(size), draw(size)
    batch = tuple(draw(st.sampled_from([1, 2, 3])) for _ in range(draw(st.integers(0, 4))))
    one, other = part_of(draw, batch), part_of(draw, batch)
    made = Family(
        {
            "a": numbers((*one, m, k), seed),
            "at": numbers((*one, k, m), seed + 1),
            "b": numbers((*other, k, n), seed + 2),
            "bt": numbers((*other, n, k), seed + 3),
            "v": numbers((k,), seed + 4),
        }
    )
    limit = summed(k + 1, 81.0, product=True)
    weight, bias = numbers((n, k), seed + 5), numbers((n,), seed + 6)
    made.add("MatMul", limit, lambda d: d["a"] @ d["b"])
    made.add("MatMul, left transposed", limit, lambda d: d["at"].mT @ d["b"])
    made.add("MatMul, right transposed", limit, lambda d: d["a"] @ d["bt"].mT)
    made.add("MatMul, both transposed", limit, lambda d: d["at"].mT @ d["bt"].mT)
    made.add("MatMul, vector", limit, lambda d: d["a"] @ d["v"])
    made.add("Linear", limit, lambda d: F.linear(d["a"], weight, bias))
    made.add("Linear, no bias", limit, lambda d: F.linear(d["a"], weight))
    flat = {"f": numbers((m, k), seed + 7), "g": numbers((k, n), seed + 8)}
    made.inputs |= flat
    made.add("Gemm", limit, lambda d: torch.addmm(bias, d["f"], d["g"]))
    return made


def movements(draw: st.DrawFn, seed: int) -> Family:
    """Operators that only move elements."""
    shape = draw(shapes(1, 6, 240))
    rank = len(shape)
    axis = draw(st.integers(0, rank - 1))
    order = draw(st.permutations(range(rank)))
    start = draw(st.integers(0, shape[axis] - 1))
    stop = draw(st.integers(start + 1, shape[axis]))
    step = draw(st.integers(1, 2))
    left = draw(st.integers(0, 2))
    wide = draw(st.integers(1, 3))
    x = numbers(shape, seed)
    made = Family({"x": x})
    index = (slice(None),) * axis
    other = _other_shape(draw, shape)
    made.add("Reshape", exact, lambda d: d["x"].reshape(other))
    made.add("Flatten", exact, lambda d: d["x"].flatten())
    made.add("Transpose", exact, lambda d: d["x"].permute(order))
    made.add("Slice", exact, lambda d: d["x"][(*index, slice(start, stop, step))])
    made.add("Concat", exact, lambda d: torch.cat([d["x"], -d["x"]], axis))
    made.add("Split", exact, lambda d: d["x"].split(max(1, shape[axis] // 2), axis)[-1])
    made.add("Unsqueeze", exact, lambda d: d["x"].unsqueeze(axis))
    made.add("Squeeze", exact, lambda d: d["x"][(*index, 0)])
    if rank < 6:
        made.add(
            "Expand", exact, lambda d: d["x"].unsqueeze(axis).expand(*_wider(shape, axis, wide))
        )
    made.add("Pad", exact, lambda d: F.pad(d["x"], (left, 1), value=-1.5))
    made.add("Flip", exact, lambda d: d["x"].flip(axis))
    return made


def _wider(shape: Shape, axis: int, wide: int) -> Shape:
    return (*shape[:axis], wide, *shape[axis:])


def _other_shape(draw: st.DrawFn, shape: Shape) -> Shape:
    """A shape with as many elements."""
    count, out = prod(shape), []
    while count > 1 and len(out) < 5:
        out.append(draw(st.sampled_from([f for f in range(1, count + 1) if count % f == 0])))
        count //= out[-1]
    return (*out, count)


def picks(draw: st.DrawFn, seed: int) -> Family:
    """By index tensors; the losses."""
    rows, columns = draw(st.integers(2, 12)), draw(st.integers(1, 9))
    shape = draw(shapes(0, 3, 24))
    made = torch.Generator().manual_seed(seed)
    axis = draw(st.integers(0, 1))
    table = numbers((rows, columns), seed)
    family = Family(
        {
            "t": table,
            "i": torch.randint(0, rows, shape, generator=made),
            "e": torch.randint(0, table.shape[axis], (rows, columns), generator=made),
            "c": torch.randint(0, columns, (rows,), generator=made),
        }
    )
    family.add("Gather", exact, lambda d: F.embedding(d["i"], d["t"]))
    family.add("Gather, index", exact, lambda d: d["t"][d["i"]])
    family.add("GatherElements", exact, lambda d: d["t"].gather(axis, d["e"]))
    family.add("OneHot", exact, lambda d: F.one_hot(d["c"], columns))
    loss = summed(rows + columns + 8, 12.0)
    family.add("Cross entropy", loss, lambda d: F.cross_entropy(d["t"], d["c"]))
    family.add("NLL", loss, lambda d: F.nll_loss(d["t"], d["c"], reduction="sum"))
    return family


FAMILIES: Mapping[str, Callable[[st.DrawFn, int], Family]] = {
    f.__name__: f
    for f in (
        functions,
        pairs,
        integers,
        reductions,
        normalisers,
        products,
        movements,
        picks,
    )
}
