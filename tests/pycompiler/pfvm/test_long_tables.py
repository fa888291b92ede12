"""Picks by indices that are data from tables that no PE holds, on the device."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from compiling import context, with_seeds

DTYPES = (torch.float32, torch.float64, torch.int32, torch.int64)


def test_drawn_picks(tmp_path: Path) -> None:
    """Few picks, which are compared place by place, and many, from pieces; along either axis."""

    def check(seed: int) -> None:
        rng = random.Random(seed)
        torch.manual_seed(seed)
        dtype, size = rng.choice(DTYPES), rng.choice((257, 512, 601, 1024, 2003))
        counts = rng.choice(((), (3,), (5, 31), (150,)))
        table = 9 * torch.randn(size, 2)
        if dtype.is_floating_point:
            table[rng.randrange(size)] = torch.inf  # picks of other rows are no NaNs
        given = {"x": table.to(dtype), "i": torch.randint(-size, size, counts)}

        def function(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            table = d["x"] + d["x"]
            return {
                "rows": table[d["i"]],
                "columns": table.T[:, d["i"]],
                "flat": table[:, 0][d["i"]],
            }

        said = f"seed {seed}: {dtype}, {size} rows, {counts} picks"
        compiled = context("emu2:mini").compile(function, given, tmp_path / f"{seed}")
        assert compiled.report.facts["host_fallback"] == [], said
        results = compiled(given)
        for name, wanted in function(given).items():
            assert torch.equal(results[name].cpu(), wanted), (said, name)

    with_seeds(check, 4, 80)
