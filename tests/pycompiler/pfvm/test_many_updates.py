"""Scatters of more updates than are written out one by one, on the device."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from compiling import context, with_seeds

from pycompiler.pfvm.composites.scattering import MOST_UPDATES

DTYPES = (torch.float32, torch.float64, torch.int32, torch.int64, torch.bool)
Tensors = dict[str, torch.Tensor]


def _values(rng: random.Random, dtype: torch.dtype, *shape: int) -> torch.Tensor:
    drawn = 9 * torch.randn(shape)
    if dtype == torch.bool:
        return drawn > 0
    if dtype.is_floating_point:  # what is not hit keeps clear of infinities
        drawn.view(-1)[rng.randrange(drawn.numel())] = torch.inf
    return drawn.to(dtype)


def test_drawn_scatters(tmp_path: Path) -> None:
    """Places that are hit often, once and never; rows, elements and lines."""

    def check(seed: int) -> None:
        rng = random.Random(seed)
        torch.manual_seed(seed)
        given: Tensors = {}
        steps = []
        for dtype in rng.sample(DTYPES, 1):
            rows, width = rng.randint(5, 9), rng.randint(1, 3)
            count, lines = MOST_UPDATES + rng.randint(1, 16), rng.randint(1, width)
            kind = str(dtype).removeprefix("torch.")
            given |= {
                f"{kind}_x": _values(rng, dtype, rows, width),
                f"{kind}_u": _values(rng, dtype, count, width),
                f"{kind}_i": torch.randint(-rows, rows, (count,)),
                f"{kind}_j": torch.randint(0, width, (count,)),
            }
            steps.append((kind, lines, dtype != torch.bool))

        def function(d: Tensors) -> Tensors:
            found = {}
            for kind, lines, adds in steps:
                x, u, i, j = (d[f"{kind}_{name}"] for name in "xuij")
                front = i % x.shape[0]
                found[f"{kind}_put"] = x.index_put((i,), u)
                found[f"{kind}_elements"] = x.index_put((i, j), u[:, 0])
                if adds:
                    found[f"{kind}_rows"] = x.index_add(0, front, u)
                    places = front[:, None].expand(-1, lines)
                    found[f"{kind}_lines"] = x.scatter_add(0, places, u[:, :lines])
                    found[f"{kind}_sums"] = x.index_put((i, j), u[:, 0], accumulate=True)
            return found

        said = f"seed {seed}"
        compiled = context("emu2:mini").compile(function, given, tmp_path / f"{seed}")
        assert compiled.report.facts["host_fallback"] == [], said
        results = compiled(given)
        for name, wanted in function(given).items():
            found = results[name].cpu()
            if wanted.is_floating_point():
                scale = 1e-14 if wanted.dtype == torch.float64 else 1e-5
                torch.testing.assert_close(found, wanted, rtol=0, atol=400 * scale, msg=said)
            else:
                assert torch.equal(found, wanted), (said, name)

    with_seeds(check, 3, 60)
