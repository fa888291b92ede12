"""Networks and kernels of the catalogue that no library has.

Each function returns a module or a function of tensors, and its inputs by the names of its
parameters.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Tensors = dict[str, torch.Tensor]
Network = tuple[Callable[..., object], Tensors]
F = nn.functional


def mlp(batch: int) -> Network:
    """Return an MLP 784-256-128-10 with softmax."""
    layers = (nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    return nn.Sequential(*layers, nn.Softmax(-1)), {"input": torch.randn(batch, 784)}


class _ResidualMLP(nn.Module):
    """Linear layers after LayerNorm; each result is added to the layer's input."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.linear = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for linear, norm in zip(self.linear, self.norm, strict=True):
            x = x + torch.relu(linear(norm(x)))
        return x


def residual_mlp(batch: int, width: int = 48, depth: int = 8) -> tuple[nn.Module, Tensors]:
    """Return a residual MLP."""
    return _ResidualMLP(width, depth), {"x": torch.randn(16 * batch, width)}


class _Bigram(nn.Module):
    """A bigram language model with its loss."""

    def __init__(self, letters: int):
        super().__init__()
        self.table = nn.Embedding(letters, letters)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, ...]:
        logits = self.table(tokens)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def bigram(batch: int) -> Network:
    """Return a bigram model of 65 letters with its loss."""
    return _Bigram(65), {n: torch.randint(0, 65, (2 * batch, 8)) for n in ("tokens", "targets")}


def nbody(batch: int) -> Network:
    """Return the accelerations of 64 bodies that attract each other."""

    def accelerations(x: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
        difference = x[:, None, :, :] - x[:, :, None, :]
        near = (difference * difference).sum(-1) + 0.01
        return (difference * (mass[:, None, :] * near**-1.5)[..., None]).sum(2)

    return accelerations, {"x": torch.randn(batch, 64, 3), "mass": torch.rand(batch, 64)}


def heat(batch: int) -> Network:
    """Return 8 explicit steps of the heat equation on a periodic grid."""

    def steps(u: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            around = [torch.roll(u, shift, axis) for shift in (1, -1) for axis in (1, 2)]
            u = u + 0.2 * (around[0] + around[1] + around[2] + around[3] - 4 * u)
        return u

    return steps, {"u": torch.rand(batch, 64, 64)}


def black_scholes(batch: int) -> Network:
    """Return prices of European call options."""

    def normal(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * (1 + torch.erf(x / 2**0.5))

    def price(spot: torch.Tensor, strike: torch.Tensor, years: torch.Tensor) -> torch.Tensor:
        rate, volatility = 0.02, 0.3
        spread = volatility * torch.sqrt(years)
        up = (torch.log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
        return spot * normal(up) - strike * torch.exp(-rate * years) * normal(up - spread)

    shape = (4096 * batch,)
    return price, {n: torch.rand(shape) + 0.5 for n in ("spot", "strike", "years")}


def power_iteration(batch: int) -> Network:
    """Return the largest eigenvalue of symmetric matrices, by 8 products and norms."""

    def largest(a: torch.Tensor) -> torch.Tensor:
        a = a + a.transpose(1, 2)
        v = torch.ones_like(a[:, :, :1])
        for _ in range(8):
            v = a @ v
            v = v / torch.linalg.vector_norm(v, dim=1, keepdim=True)
        return (v * (a @ v)).sum((1, 2))

    return largest, {"a": torch.rand(batch, 96, 96)}


class _Sine(nn.Module):
    """A linear layer with a sine behind it."""

    def __init__(self, inner: int, outer: int):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.linear(x))


def neural_field(batch: int) -> Network:
    """Return a network from coordinates to colours (SIREN)."""
    model = nn.Sequential(_Sine(2, 64), _Sine(64, 64), _Sine(64, 64), nn.Linear(64, 3))
    return model, {"input": torch.rand(256 * batch, 2) * 2 - 1}


def lenet5(batch: int) -> Network:
    """Return LeNet-5 for pictures of 28 by 28 pixels."""
    layers: tuple[nn.Module, ...] = (
        *(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10)),
    )
    return nn.Sequential(*layers), {"input": torch.randn(batch, 1, 28, 28)}


class _Basic(nn.Module):
    """Two convolutions of 3 by 3, added to their input."""

    def __init__(self, inner: int, outer: int, stride: int):
        super().__init__()
        self.one = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.other = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm_one, self.norm_other = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
        self.short = nn.Identity()
        if stride != 1 or inner != outer:
            short = nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            self.short = nn.Sequential(*short)  # type: ignore[assignment]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm_one(self.one(x)))
        return torch.relu(self.norm_other(self.other(y)) + self.short(x))


def resnet20(batch: int) -> Network:
    """Return ResNet-20 for pictures of 32 by 32 pixels."""
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    width = 16
    for outer in (16, 32, 64):
        for block in range(3):
            layers.append(_Basic(width, outer, 2 if block == 0 and outer > 16 else 1))
            width = outer
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*layers), {"input": torch.randn(batch, 3, 32, 32)}


def _double(inner: int, outer: int) -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(inner, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU()),
        *(nn.Conv2d(outer, outer, 3, padding=1), nn.BatchNorm2d(outer), nn.ReLU()),
    )


class _UNet(nn.Module):
    """Three levels; the way up joins each level with that of the way down."""

    def __init__(self, width: int):
        super().__init__()
        self.down = nn.ModuleList([_double(3, width), _double(width, 2 * width)])
        self.bottom = _double(2 * width, 4 * width)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in (2 * width, width))
        self.joined = nn.ModuleList([_double(4 * width, 2 * width), _double(2 * width, width)])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for level in self.down:
            x = level(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, level in zip(self.up, self.joined, strict=True):
            x = level(torch.cat([kept.pop(), up(x)], 1))
        return self.last(x)  # type: ignore[no-any-return]


def unet(batch: int) -> Network:
    """Return a U-Net of three levels for pictures of 64 by 64 pixels."""
    return _UNet(16), {"x": torch.randn(batch, 3, 64, 64)}


def keypoints(batch: int) -> Network:
    """Return a head that makes heat maps of 17 keypoints from features, enlarged bilinearly."""
    layers: list[nn.Module] = [nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()]
    layers += [nn.ConvTranspose2d(64, 17, 4, 2, 1)]
    layers += [nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)]
    return nn.Sequential(*layers), {"input": torch.randn(batch, 64, 14, 14)}
