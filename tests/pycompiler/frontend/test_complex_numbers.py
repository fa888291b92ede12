"""Complex numbers in functions and their gradients, on the host runtime, against torch alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from compiling import context, in_turns
from torch import Tensor, fft, linalg
from torch.nn import functional

from pycompiler.errors import PycompilerError

#: Functions of a matrix (3, 4) of complex numbers.
FUNCTIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "zeros": lambda z: torch.zeros(3, 4, dtype=z.dtype) + z,
    "ones": lambda z: torch.ones(3, 1, dtype=z.dtype) * z,
    "full": lambda z: torch.full((4,), 2 - 1j) * z,
    "part of zeros": lambda z: torch.slice_scatter(torch.zeros(5, 4, dtype=z.dtype), z, 0, 1, 4),
    "trace": lambda z: z[:, :3].trace(),
    "det": lambda z: linalg.det(z[:, :3]),
    "inv": lambda z: linalg.inv(z[:, :3]),
    "solve": lambda z: linalg.solve(z[:, :3], z),
    "qr": lambda z: linalg.qr(z)[1].abs(),
    "cholesky": lambda z: linalg.cholesky(z @ z.mH),
}


def test_complex_constants_and_matrices(tmp_path: Path) -> None:
    def run(d: Mapping[str, Tensor]) -> dict[str, Tensor]:
        z = torch.view_as_complex(d["z"])
        made = {name: function(z) for name, function in FUNCTIONS.items()}
        return {n: torch.view_as_real(x) if x.is_complex() else x for n, x in made.items()}

    inputs = {"z": torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(6))}
    found = context("pfvm:cpu").compile(run, inputs, tmp_path, quiet=True)(inputs)
    for key, value in run(inputs).items():
        assert found[key].dtype == value.dtype, key
        assert torch.allclose(found[key].cpu(), value, 1e-4, 1e-4), key


#: Functions of single complex numbers.
OF_ONE: Mapping[str, Callable[[Tensor], Tensor]] = {
    "angle": torch.angle,
    "exp": torch.exp,
    "log": lambda z: torch.log(z + 9j),
    "sqrt": torch.sqrt,
    "square": lambda z: z**2,
    "seventh power": lambda z: z**7.0,
    "inverse square": lambda z: (z + 9) ** -2,
    "phase": lambda z: torch.exp(-1j * z.real) * z,
    "written slice": lambda z: torch.slice_scatter(z, z[1:24] / 2, 0, 1, 24),
    "written steps": lambda z: torch.slice_scatter(z, z[1:24:2] / 2, 0, 1, 24, 2),
    "picked": lambda z: z[torch.tensor([3, 1, 0])],
    "repeated": lambda z: z.repeat(2) * z[3],
    "triangles": lambda z: z[:24].reshape(4, 6).tril() - z[:24].reshape(4, 6).triu(1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions_of_complex_numbers(dtype: torch.dtype, tmp_path: Path) -> None:
    """On the device, at zero, on the axes and in all quarters of the plane; types take turns."""
    functions = in_turns(OF_ONE, dtype == torch.float64, 2)

    def run(d: Mapping[str, Tensor]) -> dict[str, Tensor]:
        z = torch.complex(d["x"], d["y"])
        made = {name: function(z) for name, function in functions.items()}
        return {n: torch.view_as_real(x) if x.is_complex() else x for n, x in made.items()}

    ends = torch.tensor([0.0, -2.0, 2.0])
    drawn = torch.randn(2, 16, generator=torch.Generator().manual_seed(5))
    x = torch.cat([ends.repeat(3), drawn[0]]).to(dtype)
    y = torch.cat([ends.repeat_interleave(3), drawn[1]]).to(dtype)
    function = context("emu2:mini").compile(run, {"x": x, "y": y}, tmp_path / "out")
    assert function.report.facts["host_fallback"] == []
    found = function({"x": x, "y": y})
    close = 16 * torch.finfo(dtype).eps
    for key, value in run({"x": x, "y": y}).items():
        assert found[key].dtype == value.dtype, key
        error = (found[key].cpu() - value).abs().max() / value.abs().max()
        assert error <= close, key


#: Functions of rows of real numbers, (3, 15).
TRANSFORMS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "rfft": lambda x: torch.view_as_real(fft.rfft(x)),
    "rfft of even length": lambda x: fft.rfft(x[:, 1:]).abs(),
    "rfft, padded": lambda x: torch.view_as_real(fft.rfft(x, 20)),
    "rfft2": lambda x: torch.view_as_real(fft.rfft2(x)),
    "irfft": lambda x: fft.irfft(fft.rfft(x), 15),
    "irfft2": lambda x: fft.irfft2(fft.rfft2(x), s=(3, 15), norm="ortho"),
    "fft": lambda x: fft.fft(x, dim=0).real,
    "hfft": lambda x: fft.hfft(torch.complex(x, x)),
    "stft": lambda x: torch.stft(x, 6, 3, return_complex=True).abs(),
    "istft": lambda x: torch.istft(torch.stft(x, 6, 3, return_complex=True), 6, 3, length=14),
    "istft of two sides": lambda x: torch.istft(
        torch.stft(x, 8, 2, 5, torch.hann_window(5), onesided=False, return_complex=True),
        *(8, 2, 5, torch.hann_window(5)),
        onesided=False,
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_fourier_transforms(dtype: torch.dtype, tmp_path: Path) -> None:
    """Torch fills up half a spectrum with zeros, which are complex constants."""
    functions = in_turns(TRANSFORMS, 0 if dtype == torch.float32 else 5, 8)

    def run(d: Mapping[str, Tensor]) -> dict[str, Tensor]:
        x, grads = d["x"].detach().requires_grad_(), {}
        for name, function in functions.items():
            made = function(x)
            (grads[name],) = torch.autograd.grad((made * made * made).sum(), x)
        return grads

    draw = torch.Generator().manual_seed(7)
    inputs = {"x": torch.randn(3, 15, generator=draw, dtype=torch.float64).to(dtype)}
    found = context("pfvm:cpu").compile(run, inputs, tmp_path, quiet=True)(inputs)
    close = 1e-3 if dtype == torch.float32 else 1e-9
    for key, value in run(inputs).items():
        assert found[key].dtype == value.dtype, key
        assert torch.allclose(found[key].cpu(), value, close, close * float(value.abs().max())), key


#: Functions of a row of eight real numbers, beside complex numbers of Python.
WITH_NUMBERS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "product": lambda x: (1 + 2j) * fft.rfft(x),
    "quotient": lambda x: fft.rfft(x) / 2j,
    "sum": lambda x: fft.rfft(x) + 1j,
    "turned difference": lambda x: 1j - fft.rfft(x),
    "turned quotient": lambda x: 1j / (fft.rfft(x) + 0.5),
    "scaled difference": lambda x: torch.rsub(fft.rfft(x), 2j, alpha=3),
    "complex factor": lambda x: torch.add(fft.rfft(x), fft.rfft(x.flip(0)), alpha=2j),
    "complex factor of a difference": lambda x: torch.sub(fft.rfft(x), fft.fft(x)[:5], alpha=1j),
    "several": lambda x: (1 + 2j) * fft.rfft(x) / 3j - (2 - 1j),
    "and back": lambda x: fft.irfft((1 + 2j) * fft.rfft(x) + 1j, 8),
    "of reals": lambda x: x * (1 + 2j),
    "phase": lambda x: torch.exp(1j * x),
    "sum with reals": lambda x: (x + 1j) * (1j - x) / (x - (3 - 1j)),
    "reals below": lambda x: 1j / (x * x + 1) + x / (1 + 2j),
    "choice": lambda x: torch.where(x[:5] > 0, fft.rfft(x), 1j),
    "choice of a number": lambda x: torch.where(x[:5] > 0, 2 - 1j, fft.rfft(x)),
    "choice among reals": lambda x: torch.where(x > 0, x, 1j),
    "choice of numbers": lambda x: torch.where(x > 0, 1j, 2.0) * x,
    "choice of tensors": lambda x: torch.where(x[:5] > 0, fft.rfft(x), x[3:]),
    "filled": lambda x: fft.rfft(x).masked_fill(x[:5] > 0, 0.0),
    "filled places": lambda x: fft.rfft(x).index_fill(0, torch.tensor([0, 2]), 1j),
    "written": lambda x: fft.rfft(x).index_put((torch.tensor([0, 2]),), fft.rfft(x)[:2]),
    "padded": lambda x: functional.pad(fft.rfft(x), (1, 2), value=3.0),
    "sum of all": lambda x: fft.rfft(x).sum(),
    "inner product": lambda x: torch.vdot(fft.rfft(x), 1j * fft.rfft(x)),
    "products": lambda x: fft.rfft(x).cumprod(0),
    "likes": lambda x: torch.full_like(x, 1j, dtype=x.dtype.to_complex()) * x,
    "new ones": lambda x: fft.rfft(x).new_ones(8) * x + x.new_zeros(8, dtype=x.dtype.to_complex()),
    "steps": lambda x: torch.linspace(0, 1 + 2j, 5, dtype=x.dtype.to_complex()) * fft.rfft(x),
    "joined": lambda x: torch.cat([fft.rfft(x), torch.full((2,), 1j)]),
}
#: Torch itself cannot differentiate it: its gradient of the real tensor would be complex.
WITHOUT_GRADIENT = "choice of tensors"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("step", [False, True])
def test_complex_numbers_of_python(step: bool, dtype: torch.dtype, tmp_path: Path) -> None:
    """The exporter ignores the imaginary part of a factor, and takes no real tensor with one."""
    functions = in_turns(WITH_NUMBERS, step + 2 * (dtype == torch.float64), 16 if step else 4)

    def run(d: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found, x = {}, d["x"].detach().requires_grad_(step)
        for name, function in functions.items():
            if step and name == WITHOUT_GRADIENT:
                continue
            y = function(x)
            y = torch.view_as_real(y) if y.is_complex() else y
            found[name] = torch.autograd.grad((y * y * y).sum(), x)[0] if step else y
        return found

    draw = torch.Generator().manual_seed(11)
    inputs = {"x": torch.randn(8, generator=draw, dtype=torch.float64).to(dtype)}
    found = context("pfvm:cpu").compile(run, inputs, tmp_path, quiet=True)(inputs)
    close = 1e-4 if dtype == torch.float32 else 1e-10
    for key, value in run(inputs).items():
        assert found[key].dtype == value.dtype, key
        assert torch.allclose(found[key].cpu(), value, close, close * float(value.abs().max())), key


#: Each makes complex numbers of halves.
SHORT: Mapping[str, Callable[[Tensor], Tensor]] = {
    "chalf": lambda x: x.chalf().real.float(),
    "view_as_complex": lambda x: torch.view_as_real(torch.view_as_complex(x.half())),
}


@pytest.mark.parametrize("name", SHORT)
def test_pairs_of_halves_are_refused_by_name(name: str, tmp_path: Path) -> None:
    def run(d: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"y": SHORT[name](d["x"])}

    with pytest.raises(PycompilerError, match="complex32") as problem:
        context("pfvm:cpu").compile(run, {"x": torch.ones(3, 2)}, tmp_path, quiet=True)
    assert problem.value.code == "P0109"
    assert str(problem.value.place).startswith(__file__)
