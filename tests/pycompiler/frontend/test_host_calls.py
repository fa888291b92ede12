"""Operators that ONNX lacks run on the host in torch, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from compiling import context, in_turns, report_of

from pycompiler.errors import PycompilerError

Tensors = dict[str, torch.Tensor]

#: By the operator that the host runs: functions of a symmetric matrix.
CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "aten._linalg_eigh.default": lambda x: torch.linalg.eigvalsh(x),
    "aten._linalg_svd.default": lambda x: torch.linalg.svd(x).S + 1,
    "aten.linalg_eig.default": lambda x: torch.linalg.eigvals(x * 2).abs().sort().values,
    "prims.bessel_j0.default": lambda x: torch.special.bessel_j0(x) * x,
    "prims.gcd.default": lambda x: torch.gcd(x.long(), (x * 3).long()),
    "aten.linalg_ldl_factor_ex.default": lambda x: torch.linalg.ldl_factor_ex(x).LD,
    "aten.histogram.bin_ct": lambda x: torch.histogram(x, 3, density=True).hist,
    "aten.avg_pool2d.default": lambda x: torch.nn.functional.avg_pool2d(
        x[None], 2, ceil_mode=True, divisor_override=3
    ),
}

#: The same, of a matrix that is too large to be written out step by step.
LARGE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "aten.linalg_inv.default": lambda x: torch.linalg.inv(x),
    "aten.linalg_solve.default": lambda x: torch.linalg.solve(x, x[:, :2] + 1),
    "aten.linalg_lu_factor.default": lambda x: torch.linalg.lu_factor(x).pivots,
    "aten.linalg_slogdet.default": lambda x: torch.linalg.slogdet(x)[1],
    "aten.linalg_cholesky.default": lambda x: torch.linalg.cholesky(x),
    "aten.linalg_qr.default": lambda x: torch.linalg.lstsq(x, x[:, :2] + 1).solution,
    "aten.linalg_matrix_exp.default": lambda x: torch.linalg.matrix_exp(x / 100),
    "aten.linalg_ldl_factor_ex.default": lambda x: torch.linalg.ldl_factor(x).LD,
}
EDGE = 36


def spread(d: Tensors) -> Tensors:
    """Return the results of the large matrix with the numbers of ``x`` on and near the diagonal."""
    x = torch.diag(d["x"] + 7) + torch.outer(d["x"], d["x"])
    return {name: function(x) for name, function in in_turns(LARGE, 1, 3).items()}


def everything(d: Tensors) -> Tensors:
    """Return the result of each."""
    return {name: function(d["x"] + d["x"].T) for name, function in in_turns(CALLS, 0, 2).items()}


def same(found: object, wanted: torch.Tensor) -> None:
    assert isinstance(found, torch.Tensor)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "names", "x"),
    [
        (everything, CALLS, torch.tensor([[5.0, 1, 2], [0, 7, 1], [3, 1, 11]])),
        (spread, LARGE, torch.linspace(-1, 1, EDGE)),
    ],
    ids=["no form", "too large"],
)
def test_a_stored_app_calls_torch_by_name(
    tmp_path: Path,
    function: Callable[[Tensors], Tensors],
    names: dict[str, object],
    x: torch.Tensor,
) -> None:
    given = {"x": x}
    with pytest.warns(UserWarning, match=r"host.*aten\.") as caught:
        context().compile(function, given, tmp_path / "out")
    named = {row["op"] for row in report_of(tmp_path / "out")["host_fallback"]}
    assert (names.keys() & function(given).keys()) <= named
    assert sum("host" in str(one.message) for one in caught) == 1
    loaded = context().load_codegen_dir(tmp_path / "out")
    given["x"] = given["x"] * 1.25 + 2
    wanted = function(given)
    for name, result in loaded(given).items():
        same(result.cpu(), wanted[name])


def test_without_torch_the_call_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"x": torch.eye(3)}
    compiled = context("pfvm:cpu").compile(
        lambda d: {"y": torch.linalg.svdvals(d["x"])}, given, tmp_path / "out"
    )
    arrays = {"x": given["x"].numpy()}
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PycompilerError, match=r"P0602.*_linalg_svd.*torch, which is not installed"):
        compiled.function.run(arrays)


def test_a_file_cannot_name_any_operator(tmp_path: Path) -> None:
    """Neither one that reads files nor one that writes into its operands."""
    from pycompiler.pfvm.torch_calls import _operator

    for name in ("aten.from_file.default", "aten.add_.Tensor", "aten.nothing.default", "os.system"):
        with pytest.raises(ValueError, match=r"no operator|more than to compute"):
            _operator(name)
