"""Operators that torch's exporter cannot express: our forms give what torch gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context, report_of
from torch import Tensor

from pycompiler.errors import PycompilerError
from pycompiler.frontend.export import export
from pycompiler.frontend.host_calls import no_host_calls
from pycompiler.frontend.plain_operators import TABLE
from pycompiler.frontend.resizes import RESIZES

ATEN = torch.ops.aten
Tensors = dict[str, Tensor]
FORMS: dict[Any, Any] = {**TABLE, **RESIZES}


def numbers(*shape: int, seed: int = 5) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def whole(high: int, *shape: int, seed: int = 6) -> Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def definite(count: int) -> Tensor:
    a = numbers(2, count, count)
    return a @ a.transpose(-2, -1) + count * torch.eye(count)


SQUARE, WIDE = numbers(2, 5, 5), numbers(2, 5, 3)
NAN = torch.tensor([1.0, torch.nan, -2.0, torch.nan])
LU = torch.linalg.lu_factor(SQUARE)
STRETCH = torch.linspace(-30, 30, 401)
#: Points in all directions, on the axes and with a zero of either sign among them.
AROUND = torch.tensor(
    [(y, x) for y in (3.0, -3.0) for x in (0.0, -0.0, 1e-9, -7.0, 7.0)] + [(0.0, 7.0), (0.0, -7.0)]
).T
#: An operator, its operands, and how many of its results are compared (the rest means nothing).
CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "fmax": (ATEN.fmax.default, (NAN, torch.tensor([torch.nan, 3.0, -3.0, torch.nan])), {}),
    "fmin": (ATEN.fmin.default, (NAN, torch.zeros(4)), {}),
    "hypot": (ATEN.hypot.default, (numbers(9) * 1e30, numbers(9, seed=1) * 1e30), {}),
    "heaviside": (ATEN.heaviside.default, (torch.tensor([-1.0, 0, 2]), torch.ones(1) / 2), {}),
    "copysign": (ATEN.copysign.Tensor, (numbers(9), numbers(9, seed=1)), {}),
    "copysign of a number": (ATEN.copysign.Scalar, (numbers(9), -0.0), {}),
    "signbit": (ATEN.signbit.default, (numbers(9),), {}),
    "ldexp": (ATEN.ldexp.Tensor, (numbers(9), torch.arange(-4, 5)), {}),
    "frexp": (ATEN.frexp.Tensor, (torch.cat([STRETCH, 2.0 ** torch.arange(-60, 60)]),), {}),
    "digamma": (ATEN.digamma.default, (STRETCH + 0.013,), {}),
    "lgamma": (ATEN.lgamma.default, (STRETCH + 0.013,), {}),
    "mvlgamma": (ATEN.mvlgamma.default, (numbers(9).abs() + 3, 3), {}),
    "trigamma": (ATEN.polygamma.default, (1, STRETCH.double() / 8 + 0.013), {}),
    "polygamma": (ATEN.polygamma.default, (3, STRETCH.abs() + 0.3), {}),
    "expm1": (ATEN.expm1.default, (torch.cat([STRETCH, STRETCH * 1e-9]),), {}),
    "log1p": (ATEN.log1p.default, (torch.cat([STRETCH + 29.01, STRETCH * 1e-9]),), {}),
    "logaddexp": (ATEN.logaddexp.default, (STRETCH * 9, -STRETCH), {}),
    "logaddexp2": (ATEN.logaddexp2.default, (STRETCH * 9, -STRETCH), {}),
    "atan2": (ATEN.atan2.default, (AROUND[0], AROUND[1]), {}),
    "erfc": (ATEN.erfc.default, (STRETCH / 4,), {}),
    "ndtr": (ATEN.special_ndtr.default, (STRETCH / 4,), {}),
    "erfinv": (ATEN.erfinv.default, (torch.linspace(-1, 1, 1001),), {}),
    "ndtri": (ATEN.special_ndtri.default, (torch.linspace(0.01, 0.99, 99) ** 15,), {}),
    "erfcx": (ATEN.special_erfcx.default, (STRETCH / 4 + 3,), {}),
    "log_ndtr": (ATEN.special_log_ndtr.default, (STRETCH,), {}),
    "i0": (ATEN.i0.default, (STRETCH,), {}),
    "i0e": (ATEN.special_i0e.default, (STRETCH,), {}),
    "i1": (ATEN.special_i1.default, (STRETCH,), {}),
    "i1e": (ATEN.special_i1e.default, (STRETCH,), {}),
    "sinc": (ATEN.sinc.default, (torch.linspace(-4, 4, 33),), {}),
    "bessel": (ATEN.special_spherical_bessel_j0.default, (STRETCH,), {}),
    "lu factor": (ATEN.linalg_lu_factor_ex.default, (WIDE,), {}),
    "lu": (ATEN.linalg_lu.default, (SQUARE,), {}),
    "lu unpack": (ATEN.lu_unpack.default, LU, {}),
    "lu solve": (ATEN.linalg_lu_solve.default, (*LU, WIDE), {}),
    "lu solve, adjoint": (ATEN.linalg_lu_solve.default, (*LU, WIDE), {"adjoint": True}),
    "solve": (ATEN.linalg_solve.default, (SQUARE, WIDE), {}),
    "solve from the right": (
        ATEN.linalg_solve.default,
        (SQUARE, WIDE.transpose(1, 2)),
        {"left": False},
    ),
    "solve a vector": (ATEN.linalg_solve.default, (SQUARE[0], WIDE[0, :, 0]), {}),
    "inv": (ATEN.linalg_inv.default, (SQUARE,), {}),
    "tensorinv": (ATEN.linalg_tensorinv.default, (numbers(4, 2, 2), 1), {}),
    "det": (ATEN.linalg_det.default, (SQUARE,), {}),
    "slogdet": (ATEN.linalg_slogdet.default, (SQUARE,), {}),
    "cholesky": (ATEN.linalg_cholesky.default, (definite(5),), {"upper": True}),
    "cholesky solve": (ATEN.cholesky_solve.default, (WIDE, definite(5).tril()), {}),
    "cholesky inverse": (ATEN.cholesky_inverse.default, (definite(4).triu(), True), {}),
    "triangular": (
        ATEN.linalg_solve_triangular.default,
        (SQUARE + 3 * torch.eye(5), WIDE.transpose(1, 2)),
        {"upper": True, "left": False},
    ),
    "qr": (ATEN.linalg_qr.default, (WIDE,), {}),
    "qr of a wide matrix": (ATEN.linalg_qr.default, (WIDE.transpose(1, 2), "complete"), {}),
    "householder": (ATEN.linalg_householder_product.default, torch.geqrf(WIDE), {}),
    "matrix exponential": (ATEN.linalg_matrix_exp.default, (SQUARE,), {}),
    "cummax": (ATEN.cummax.default, (whole(4, 3, 9), 1), {}),
    "cummin": (ATEN.cummin.default, (whole(4, 3, 9), 0), {}),
    "cumprod": (ATEN.cumprod.default, (numbers(3, 9), -1), {}),
    "logcumsumexp": (ATEN.logcumsumexp.default, (numbers(3, 9) * 20, 1), {}),
    "kthvalue": (ATEN.kthvalue.default, (numbers(3, 8), 3, 1, True), {}),
    "median": (ATEN.median.default, (numbers(3, 8),), {}),
    "median of rows": (ATEN.median.dim, (numbers(3, 8), 1), {}),
    "nanmedian": (ATEN.nanmedian.default, (NAN,), {}),
    "nanmedian of rows": (ATEN.nanmedian.dim, (torch.stack([NAN, NAN * NAN]), 1, True), {}),
    "mode": (ATEN.mode.default, (whole(4, 5, 9), 1), {}),
    "searchsorted": (
        ATEN.searchsorted.Tensor,
        (torch.sort(whole(9, 2, 6).float())[0], whole(9, 2, 4).float()),
        {"side": "right"},
    ),
    "bucketize": (ATEN.bucketize.Tensor, (whole(9, 2, 6), torch.tensor([1, 4, 7])), {}),
    "histc": (ATEN.histc.default, (numbers(50), 7), {}),
    "nonzero": (ATEN.nonzero_static.default, (whole(2, 3, 4),), {"size": 14}),
    "masked scatter": (ATEN.masked_scatter.default, (numbers(3, 4), whole(2, 4) > 0, SQUARE), {}),
    "three axes": (ATEN.atleast_3d.Sequence, ([numbers(1)[0], numbers(3), numbers(2, 3)],), {}),
    "two axes": (ATEN.atleast_2d.Sequence, ([numbers(1)[0], numbers(3), numbers(2, 3)],), {}),
    "hstack": (ATEN.hstack.default, ([numbers(3), numbers(2)],), {}),
    "vstack": (ATEN.vstack.default, ([numbers(3), numbers(2, 3)],), {}),
    "dstack": (ATEN.dstack.default, ([numbers(3), numbers(1, 3)],), {}),
    "column stack": (ATEN.column_stack.default, ([numbers(3), numbers(3, 2)],), {}),
    "diagonal": (ATEN.diagonal_scatter.default, (numbers(4, 3, 5), numbers(4, 3), -1, 2, 1), {}),
    "sort": (ATEN.sort.stable, (whole(4, 3, 9),), {"stable": True, "dim": 1}),
    "smooth resize": (
        ATEN._upsample_bilinear2d_aa.default,
        (numbers(1, 2, 9, 7), (4, 10), False),
        {},
    ),
    "smooth cubic resize": (
        ATEN._upsample_bicubic2d_aa.default,
        (numbers(1, 2, 9, 7), (4, 10), True),
        {},
    ),
    "index reduce": (
        ATEN.index_reduce.default,
        (numbers(3, 4), 1, torch.tensor([0, 2, 0]), numbers(3, 3), "amax"),
        {"include_self": False},
    ),
    "index mean": (
        ATEN.index_reduce.default,
        (numbers(4, 3), 0, torch.tensor([0, 2, 0]), numbers(3, 3), "mean"),
        {},
    ),
    "adaptive pool": (ATEN.adaptive_max_pool2d.default, (numbers(2, 7, 6), (3, 4)), {}),
    "even adaptive pool": (ATEN.adaptive_max_pool1d.default, (numbers(2, 3, 6), (3,)), {}),
    "cdist": (ATEN._cdist_forward.default, (WIDE, numbers(2, 4, 3), 2.0, None), {}),
    "pdist": (ATEN._pdist_forward.default, (WIDE[0], 1.0), {}),
    "put": (ATEN.put.default, (WIDE, torch.tensor([3, 0]), torch.zeros(2)), {}),
    "volume": (
        ATEN.grid_sampler_3d.default,
        (numbers(1, 2, 3, 4, 5), numbers(1, 2, 2, 3, 3), 0, 2, False),
        {},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_forms_give_what_torch_gives(name: str) -> None:
    op, args, kwargs = CALLS[name]
    wanted, found = op(*args, **kwargs), FORMS[op](*args, **kwargs)
    if isinstance(wanted, Tensor):
        wanted, found = (wanted,), (found,)
    assert len(wanted) == len(found)
    for one, other in zip(wanted, found, strict=True):
        if one.numel() or other.numel():
            torch.testing.assert_close(other, one, rtol=2e-5, atol=2e-5, equal_nan=True)
            assert other.dtype == one.dtype


SMALL = torch.cat([sign * torch.logspace(-30, -0.01, 400) for sign in (1, -1)])
#: Functions of which small results have all digits: arguments, and the bound of the relative error.
SMALL_RESULTS: dict[str, tuple[Any, Tensor, float]] = {
    "expm1": (ATEN.expm1.default, SMALL, 2e-6),
    "expm1 of doubles": (ATEN.expm1.default, SMALL.double(), 1e-14),
    "log1p": (ATEN.log1p.default, SMALL, 2e-6),
    "log1p of doubles": (ATEN.log1p.default, SMALL.double(), 1e-14),
    "erfc": (ATEN.erfc.default, STRETCH[STRETCH < 9], 4e-6),
    "erfc of doubles": (ATEN.erfc.default, STRETCH.double().clamp(-27, 26), 2e-6),
    "erfcx of doubles": (ATEN.special_erfcx.default, STRETCH.double().clamp(-26, 27), 2e-6),
}


@pytest.mark.parametrize("name", SMALL_RESULTS)
def test_small_results_have_all_digits(name: str) -> None:
    op, x, bound = SMALL_RESULTS[name]
    torch.testing.assert_close(TABLE[op](x), op(x), rtol=bound, atol=0)


@pytest.mark.parametrize(
    "op", [ATEN.erfc.default, ATEN.special_ndtr.default, ATEN.log1p.default, ATEN.expm1.default]
)
def test_doubles_keep_their_digits(op: Any) -> None:
    x = STRETCH.double().abs() / 4 if op == ATEN.log1p.default else STRETCH.double() / 4
    torch.testing.assert_close(TABLE[op](x), op(x), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "atan2"])
def test_two_types_have_one_result(name: str) -> None:
    op = CALLS[name][0]
    kinds = (torch.int32, torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for first, second in product(kinds, kinds):
        a, b = torch.ones(3, dtype=first), torch.ones(3, dtype=second)
        if first.is_floating_point or second.is_floating_point:
            wanted = torch.result_type(a, b)
        else:
            wanted = torch.float32
        assert TABLE[op](a, b).dtype == wanted


def test_doubles_on_the_device(tmp_path: Path) -> None:
    """It has logarithms of doubles, but no area functions of them."""

    def function(d: Tensors) -> Tensors:
        return {"y": torch.log1p(d["x"]), "z": torch.nn.functional.logsigmoid(d["x"])}

    x = torch.tensor([-0.99, -0.3, -1e-9, 0, 1e-12, 1e-5, 0.4, 0.6, 1e9], dtype=torch.float64)
    compiled = context().compile(function, {"x": x}, tmp_path / "out", options={"strict": True})
    for name, wanted in function({"x": x}).items():
        found = compiled({"x": x})[name].cpu()
        torch.testing.assert_close(found, wanted, rtol=2.0**-46, atol=0)


def test_mode_of_a_long_row() -> None:
    """torch gives any of the places."""
    x = whole(40, 2, 300)
    values, places = TABLE[ATEN.mode.default](x, 1)
    assert torch.equal(values, x.mode(1).values)
    assert torch.equal(x.gather(1, places[:, None])[:, 0], values)


def compile_and_compare(function: Any, inputs: Tensors, folder: Path) -> None:
    compiled = context("emu2:mini").compile(function, inputs, folder)
    assert report_of(folder)["host_fallback"] == []
    for name, wanted in function(inputs).items():
        found = compiled(inputs)[name].cpu()
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.long
def test_systems_on_the_device(tmp_path: Path) -> None:
    def function(d: Tensors) -> Tensors:
        a, b = d["a"], d["b"]
        return {"x": torch.linalg.solve(a, b)}

    a = numbers(3, 3)
    compile_and_compare(function, {"a": a, "b": numbers(3, 2, seed=2)}, tmp_path / "out")


def test_statistics_on_the_device(tmp_path: Path) -> None:
    def function(d: Tensors) -> Tensors:
        x = d["x"]
        return {
            "cov": torch.cov(x),
            "median": x.median(1).values,
            "place": torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
            "distances": torch.cdist(x, x + 1),
        }

    compile_and_compare(function, {"x": numbers(3, 5)}, tmp_path / "out")


def test_bags_on_the_device(tmp_path: Path) -> None:
    table = torch.nn.EmbeddingBag(10, 4, mode="sum")
    weights = numbers(7).abs()

    def function(d: Tensors) -> Tensors:
        return {"y": table(d["x"], d["offsets"], per_sample_weights=weights)}

    given = {"x": whole(10, 7), "offsets": torch.tensor([0, 3, 3])}
    with torch.no_grad():
        compile_and_compare(function, given, tmp_path / "out")


def test_least_squares(tmp_path: Path) -> None:
    def function(d: Tensors) -> Tensors:
        return {"x": torch.linalg.lstsq(d["a"], d["b"]).solution}

    given = {"a": numbers(3, 1), "b": numbers(3, 1, seed=2)}
    compile_and_compare(function, given, tmp_path / "out")


def test_an_operator_inside_of_another(tmp_path: Path) -> None:
    def function(d: Tensors) -> Tensors:
        return {"x": torch.linalg.tensorsolve(d["a"], d["b"])}

    given = {"a": numbers(1, 2, 2), "b": numbers(1, 2, seed=2)}
    compile_and_compare(function, given, tmp_path / "out")


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (lambda x: x.masked_select(x > 0), "torch.where"),
        (lambda x: torch.unique_consecutive(x), "compare neighbours"),
        (lambda x: torch.bincount(x.long()), "`minlength`"),
    ],
    ids=["masked_select", "unique_consecutive", "bincount"],
)
def test_sizes_by_value_are_refused(
    tmp_path: Path, function: Callable[[torch.Tensor], torch.Tensor], remedy: str
) -> None:
    with pytest.raises(PycompilerError, match=remedy) as caught:
        context().compile(lambda d: {"x": function(d["a"])}, {"a": numbers(4)}, tmp_path / "out")
    assert caught.value.code == "P0103"
    assert "While executing" not in str(caught.value)


def test_counts_and_transforms_of_complex_signals(tmp_path: Path) -> None:
    """Counts have a size with `minlength`; a transform is linear in the signal and the window."""

    def function(d: Tensors) -> Tensors:
        signal, window = torch.view_as_complex(d["x"]), torch.view_as_complex(d["w"])
        return {
            "counts": torch.bincount(d["i"], minlength=6),
            "weighted": d["i"].bincount(d["x"][:5, 0], 4),
            "spectrum": torch.view_as_real(
                torch.stft(signal, 4, window=window, return_complex=True)
            ),
        }

    given = {"x": numbers(8, 2), "w": numbers(4, 2, seed=2), "i": torch.tensor([1, 3, 3, 0, 1])}
    compile_and_compare(function, given, tmp_path / "out")


def test_selected_elements_may_be_summed(tmp_path: Path) -> None:
    """The host finds out how many they are."""
    given = {"x": numbers(3, 4)}

    def total(d: Tensors) -> Tensors:
        return {"y": torch.masked_select(d["x"], d["x"][0] > 0).sum()}

    with pytest.warns(UserWarning, match="host"):
        compiled = context().compile(total, given, tmp_path / "out")
    torch.testing.assert_close(compiled(given)["y"].cpu(), total(given)["y"])


def test_refusals_name_the_replacement() -> None:
    with no_host_calls(), pytest.raises(PycompilerError, match=r"P0138.*torch\.linalg\.lstsq"):
        export(lambda d: {"x": torch.linalg.pinv(d["a"])}, {"a": numbers(3, 3)})


def test_losses_of_large_scores(tmp_path: Path) -> None:
    """The sigmoid of a score below -88 is 0, and the logarithm of that no number."""
    scores = torch.tensor([-200.0, -100, -30, 0, 30, 100, 200])
    given = {"x": scores.repeat(2), "t": torch.tensor([0.0, 1]).repeat_interleave(7)}

    def function(d: Tensors) -> Tensors:
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        return {
            "loss": loss(d["x"], d["t"], reduction="none"),
            "log": torch.nn.functional.logsigmoid(d["x"]),
            "mish": torch.nn.functional.mish(d["x"] * 1e36),
        }

    compile_and_compare(function, given, tmp_path / "out")
