"""Gradients on the host runtime against torch's own: infinities, and weights of doubles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from compiling import LONG, context, in_turns
from torch.nn import functional


def test_infinities_stay_in_their_places(tmp_path: Path) -> None:
    """The gradient of a gather, and a sum by index in a step, have no product of 0 and infinity."""

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        x = d["x"].detach().requires_grad_()
        picked, summed = x.gather(0, d["i"]), x.scatter_add(0, d["i"], x[:3] * d["by"])
        (grad,) = torch.autograd.grad(picked, x, d["by"], retain_graph=True)
        (other,) = torch.autograd.grad(summed.sum(), x)
        loss = functional.nll_loss(x.reshape(2, 2), d["i"][1:] // 2, reduction="none")
        (classes,) = torch.autograd.grad(loss, x, d["by"][:2])
        written = torch.scatter(x, 0, d["i"][1:], d["by"][:2]).detach()
        return {
            "grad": grad,
            "summed": summed.detach(),
            "other": other,
            "written": written,
            "classes": classes,
        }

    by = torch.tensor([torch.inf, 1, -2])
    inputs = {"x": torch.tensor([1.5, 2, 3, -4]), "i": torch.tensor([1, 1, 3]), "by": by}
    found = context("pfvm:cpu").compile(run, inputs, tmp_path / "out", quiet=True)(inputs)
    for key, value in run(inputs).items():
        assert torch.equal(found[key].cpu(), value), key


def test_weights_of_doubles(tmp_path: Path) -> None:
    """Gradients whose weights are computed while they are traced, in doubles."""
    resize, grid = (
        functional.interpolate,
        torch.linspace(-1.2, 1.1, 24).double().reshape(1, 3, 4, 2),
    )
    ways: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "bilinear": lambda x: resize(x, (8, 11), mode="bilinear"),
        "bicubic": lambda x: resize(x, (3, 9), mode="bicubic", align_corners=True),
        "scale": lambda x: resize(x, scale_factor=(1.3, 2.7), mode="bilinear"),
        "same size": lambda x: resize(x, scale_factor=1.1, mode="bilinear"),
        "same size, nearest": lambda x: resize(x, scale_factor=1.1),
        "same size, cubic": lambda x: resize(x, scale_factor=1.1, mode="bicubic"),
        "twice the size": lambda x: resize(x, scale_factor=2.1, mode="nearest"),
        "averaged": lambda x: resize(x, (3, 4), mode="bilinear", antialias=True),
        "averaged, wider": lambda x: resize(x, (9, 3), mode="bicubic", antialias=True),
        "grid": lambda x: functional.grid_sample(x, grid, align_corners=False),
        "pool": lambda x: functional.adaptive_avg_pool2d(x, (3, 4)),
    }

    ways = in_turns(ways, 2, 4)

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        x = d["x"].detach().requires_grad_()
        outs = {name: way(x) for name, way in ways.items()}
        back = {n: torch.autograd.grad((y * y * y).sum(), x)[0] for n, y in outs.items()}
        return {**back, **{f"{name}, itself": y.detach() for name, y in outs.items()}}

    inputs = {"x": torch.sin(torch.arange(70.0, dtype=torch.float64)).reshape(1, 2, 5, 7)}
    found = context("pfvm:cpu").compile(run, inputs, tmp_path / "out", quiet=True)(inputs)
    for key, value in run(inputs).items():
        torch.testing.assert_close(found[key].cpu(), value, rtol=1e-12, atol=1e-12, msg=key)


def test_grouped_convolutions_of_doubles(tmp_path: Path) -> None:
    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        x, w = (d[name].detach().requires_grad_() for name in "xw")
        made = functional.conv2d(x, w, None, 2, 1, 1, 2)
        return dict(zip("xw", torch.autograd.grad(made.cos().sum(), (x, w)), strict=True))

    draw = torch.Generator().manual_seed(4)
    inputs = {
        "x": torch.randn(1, 4, 5, 5, generator=draw, dtype=torch.float64),
        "w": torch.randn(8, 2, 2, 3, generator=draw, dtype=torch.float64),
    }
    found = context("pfvm:cpu").compile(run, inputs, tmp_path / "out", quiet=True)(inputs)
    for key, value in run(inputs).items():
        torch.testing.assert_close(found[key].cpu(), value, rtol=1e-12, atol=1e-12, msg=key)


def test_ways_back_of_matrices(tmp_path: Path) -> None:
    """torch's gradient takes the factors of the transpose of a matrix that is in order."""
    linalg = torch.linalg
    ways: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "det": linalg.det,
        "slogdet": lambda a: linalg.slogdet(a)[1],
        "inv": linalg.inv,
        "solve": lambda a: linalg.solve(a, a[..., :2].detach()),
        "solve from the right": lambda a: linalg.solve(a, a[..., :2, :].detach(), left=False),
        "cholesky": lambda a: linalg.cholesky(a @ a.mT),
        "power": lambda a: linalg.matrix_power(a, -2),
    }
    ways = in_turns(ways, 3, 4, always=["cholesky"])
    size = 3 if LONG else 2
    matrices = torch.randn(2, size, size, generator=torch.Generator().manual_seed(3))

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        a = d["a"].detach().requires_grad_()
        grads = {}
        for turned in (False, True) if LONG else (True,):
            for name, way in ways.items():
                made = way(a.mT if turned else a)
                (grad,) = torch.autograd.grad(made.cos().sum(), a)
                grads[f"{name}{', turned' if turned else ''}"] = grad
        return grads

    inputs = {"a": matrices + 3 * torch.eye(size)}
    found = context("pfvm:cpu").compile(run, inputs, tmp_path / "out", quiet=True)(inputs)
    for key, value in run(inputs).items():
        assert torch.allclose(found[key].cpu(), value, 1e-3, 1e-4), key


def test_least_squares_by_every_driver(tmp_path: Path) -> None:
    """torch's default, gelsy, gives no residuals. Two drivers take matrices of any rank."""
    draw = torch.Generator().manual_seed(5)
    drivers = (None, "gelsy", "gels", "gelsd", "gelss") if LONG else (None,)
    inputs = {"a": torch.randn(5, 3, generator=draw), "b": torch.randn(5, 2, generator=draw)}

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        found = {}
        for name in drivers:
            for number, one in enumerate(torch.linalg.lstsq(d["a"], d["b"], driver=name)):
                found[f"{name} {number}"] = one
            wide = torch.linalg.lstsq(d["a"].mT, d["b"][:3], driver=name)
            found[f"{name} of a wide matrix"] = wide.solution
        doubled = torch.cat([d["a"][:, :2], d["a"][:, :1]], 1)
        shortest = torch.linalg.lstsq(doubled, d["b"], driver="gelsd")
        return {**found, "shortest": shortest.solution, "rank": shortest.rank}

    found = context("pfvm:cpu").compile(run, inputs, tmp_path / "out", quiet=True)(inputs)
    for key, value in run(inputs).items():
        assert found[key].shape == value.shape, key
        assert found[key].dtype == value.dtype, key
        assert torch.allclose(found[key].cpu(), value, 1e-3, 1e-4), key


def test_counts_beyond_the_length_are_visible(tmp_path: Path) -> None:
    """torch's result would be longer, by the largest value."""

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        weights = torch.tensor([0.5, 2.0, 1.0])
        counts = {"counts": torch.bincount(d["x"], minlength=4)}
        return {**counts, "sums": torch.bincount(d["x"], weights, minlength=4)}

    inputs = {"x": torch.tensor([3, 0, 3])}
    compiled = context("pfvm:cpu").compile(run, inputs, tmp_path / "out", quiet=True)
    for key, value in run(inputs).items():
        assert torch.equal(compiled(inputs)[key].cpu(), value), key
    found = compiled({"x": torch.tensor([3, 4, 0])})
    assert found["counts"].cpu().tolist() == [-1] * 4
    assert found["sums"].cpu().tolist() == [torch.inf] * 4


def test_pools_whose_last_window_begins_in_the_padding(tmp_path: Path) -> None:
    """ONNX has one window more; the host calls torch where one axis needs its ceil mode."""
    pools: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "max1": lambda x: functional.max_pool1d(x[0], 2, 2, 1, ceil_mode=True),
        "max2": lambda x: functional.max_pool2d(x, 2, 2, 1, ceil_mode=True),
        "max3": lambda x: functional.max_pool3d(x[None], (1, 2, 2), 2, (0, 1, 1), ceil_mode=True),
        "long steps": lambda x: functional.max_pool1d(x[0], 2, 3, 1, ceil_mode=True),
        "average1": lambda x: functional.avg_pool1d(x[0], 2, 2, 1, ceil_mode=True),
        "average2": lambda x: functional.avg_pool2d(x, 2, 2, 1, ceil_mode=True),
        "two axes": lambda x: functional.max_pool2d(x, (2, 3), (2, 3), 1, ceil_mode=True),
        "two averages": lambda x: functional.avg_pool2d(x, (2, 3), (2, 3), 1, ceil_mode=True),
    }

    pools = in_turns(pools, 3, 4, always=["max2"])

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        x, found = d["x"].detach().requires_grad_(), {}
        for name, pool in pools.items():
            made = pool(x)
            found[name] = made.detach()
            (found[f"{name}, back"],) = torch.autograd.grad(made.cos().sum(), x)
        return found

    inputs = {"x": torch.sin(torch.arange(49.0) * 3).reshape(1, 1, 7, 7)}
    found = context("pfvm:cpu").compile(run, inputs, tmp_path / "out", quiet=True)(inputs)
    for key, value in run(inputs).items():
        assert torch.allclose(found[key].cpu(), value, 1e-5, 1e-5), key


def test_windows_of_minus_infinity_that_begin_in_the_padding(tmp_path: Path) -> None:
    """Their gradient goes to their first element, as in torch."""
    pools: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "max1": lambda x: functional.max_pool1d(x[0], 3, 2, 1),
        "max2": lambda x: functional.max_pool2d(x, 3, 1, 1),
        "gaps": lambda x: functional.max_pool2d(x, 3, 1, 1, 2),
        "max3": lambda x: functional.max_pool3d(x[None], (1, 5, 4), (1, 2, 1), (0, 2, 2)),
    }

    pools = in_turns(pools, 0, 2)

    def run(d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        x, found = d["x"].detach().requires_grad_(), {}
        for name, pool in pools.items():
            made = pool(x)
            by = torch.arange(1.0, made.numel() + 1).reshape(made.shape)
            (found[name],) = torch.autograd.grad(made, x, by)
        return found

    inputs = {"x": torch.full((1, 1, 6, 7), -torch.inf)}
    inputs["x"][..., 4, 5] = 2.0
    found = context("pfvm:cpu").compile(run, inputs, tmp_path / "out", quiet=True)(inputs)
    for key, value in run(inputs).items():
        assert torch.equal(found[key].cpu(), value), key
