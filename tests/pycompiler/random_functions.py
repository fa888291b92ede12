"""Random torch functions of three to ten operators, as networks are built of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod

import torch
from torch import Tensor
from torch.nn import functional

SIZES = (1, 2, 3, 5, 6, 7, 9, 10, 12, 13, 16, 20, 24)
#: No value has more elements.
MOST = 3000

Step = Callable[[list[Tensor]], Tensor]


def random_function(
    rng: random.Random,
) -> tuple[Callable[[dict[str, Tensor]], dict[str, Tensor]], dict[str, Tensor]]:
    """Return a function of a dict of tensors, and inputs for it."""
    draw = torch.Generator().manual_seed(rng.randrange(2**32))
    rank = rng.randint(2, 4)
    shape = [rng.choice(SIZES) for _ in range(rank)]
    while prod(shape) > MOST:
        shape[rng.randrange(rank)] = rng.choice(SIZES[:5])
    inputs = {"x": torch.randn(shape, generator=draw)}
    values, steps = [inputs["x"]], list[Step]()
    for _ in range(rng.randint(3, 10)):
        # The latest value is read most often.
        at = rng.choice([len(values) - 1, len(values) - 1, rng.randrange(len(values))])
        step = _step(rng, draw, values, at)
        found = step(values)
        if found.numel() <= MOST and found.ndim <= 5:
            steps.append(step)
            values.append(found)
    kept = sorted({len(values) - 1, rng.randrange(len(values))} - {0}) or [0]

    def function(given: dict[str, Tensor]) -> dict[str, Tensor]:
        values = [given["x"]]
        for step in steps:
            values.append(step(values))
        return {f"y{number}": values[number] * 1.0 for number in kept}

    return function, inputs


def _step(rng: random.Random, draw: torch.Generator, values: list[Tensor], at: int) -> Step:
    """Return an operator on value ``at``, which may read others too."""
    x = values[at]
    wide = x.shape[-1] if x.ndim else 1

    def weights(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw)

    kinds: dict[str, Callable[[], Step]] = {}
    function = rng.choice([torch.relu, torch.tanh, functional.gelu, functional.silu])
    kinds["unary"] = lambda: lambda v: function(v[at])
    others = [n for n, one in enumerate(values) if one.shape == x.shape]
    other = rng.choice(others)
    kinds["add"] = lambda: lambda v: v[at] + v[other]
    if x.ndim:
        columns, half = rng.choice(SIZES), rng.random() < 0.5
        matrix, bias = weights(columns, wide) / wide**0.5, weights(columns) if half else None
        kinds["linear"] = lambda: lambda v: functional.linear(v[at], matrix, bias)
        scale, shift = weights(wide), weights(wide)
        kinds["norm"] = lambda: lambda v: functional.layer_norm(v[at], (wide,), scale, shift)
        axis = rng.randrange(x.ndim)
        kinds["softmax"] = lambda: lambda v: torch.softmax(v[at], axis)
        kinds["mean"] = lambda: lambda v: v[at].mean(axis, keepdim=half)
        factor = weights(*(size if rng.random() < 0.5 else 1 for size in x.shape))
        kinds["scale"] = lambda: lambda v: v[at] * factor
        flat = rng.randint(1, x.ndim)
        kinds["flatten"] = lambda: lambda v: v[at].reshape(*v[at].shape[: flat - 1], -1)
    if x.ndim >= 2:
        order = rng.sample(range(x.ndim), x.ndim)
        kinds["permute"] = lambda: lambda v: v[at].permute(order)
        kinds["scores"] = lambda: lambda v: v[at] @ v[at].mT / wide
        wholes = [n for n in (2, 3, 5) if wide % n == 0 and wide > n]
        if wholes:
            heads = rng.choice(wholes)
            kinds["heads"] = lambda: (
                lambda v: v[at].reshape(*v[at].shape[:-1], heads, -1).transpose(-2, -3)
            )
    return kinds[rng.choice(list(kinds))]()
