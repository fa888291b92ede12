"""Exponentials of small and large matrices, against torch's in double precision."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from compiling import context


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exponentials(dtype: torch.dtype, tmp_path: Path) -> None:
    """Squares of a matrix near the identity lost eight digits of singles."""
    seed = int(torch.randint(10**6, ()))
    print(f"{seed=}")
    torch.manual_seed(seed)
    norms = torch.tensor([0.01, 1.0, 20.0, 60.0])
    drawn = torch.randn(4, 6, 6, dtype=torch.float64)
    drawn = drawn / torch.linalg.matrix_norm(drawn, 2)[:, None, None] * norms[:, None, None]
    given = {"x": drawn.to(dtype)}
    function = context("emu2:mini").compile(
        lambda d: {"y": torch.linalg.matrix_exp(d["x"])}, given, tmp_path / "out"
    )
    found = function(given)["y"].cpu().double()
    wanted = torch.linalg.matrix_exp(given["x"].double())
    error = (found - wanted).abs().amax((1, 2)) / wanted.abs().amax((1, 2))
    assert (error <= 16 * torch.finfo(dtype).eps * (1 + norms)).all(), error
