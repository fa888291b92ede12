"""Writes to slices: of any part of an axis, evenly spaced places, and any dtype."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from compiling import context, with_seeds

DTYPES = (torch.float32, torch.float64, torch.int32, torch.int64, torch.bool)


def _drawn_slice(rng: random.Random, size: int) -> slice:
    """Draw a slice of at least one place; ends count from either side, or lie outside."""
    first = rng.randrange(size)
    last, step = rng.randrange(first, size + 3), rng.choice((1, 1, 1, 2, 3))
    start = rng.choice((first, first - size)) if first else rng.choice((None, 0, -size - 1))
    return slice(start, last + 1 if last < size - 1 else None, step)


def _values(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    drawn = 9 * torch.randn(shape)
    if dtype.is_floating_point:  # they stay where nothing is written
        drawn.view(-1)[::5] = torch.tensor(torch.inf)
    return drawn > 0 if dtype == torch.bool else drawn.nan_to_num(posinf=torch.inf).to(dtype)


def test_drawn_writes(tmp_path: Path) -> None:
    def check(seed: int) -> None:
        rng = random.Random(seed)
        torch.manual_seed(seed)
        given, places = {}, {}
        for dtype in rng.sample(DTYPES, 3):
            shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 3)))
            cut = tuple(_drawn_slice(rng, size) for size in shape[: rng.randint(1, len(shape))])
            name = str(dtype).removeprefix("torch.")
            given[f"{name}_to"] = _values(shape, dtype)
            given[f"{name}_from"] = _values(given[f"{name}_to"][cut].shape, dtype)
            places[name] = cut

        def written(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            found = {}
            for name, cut in places.items():
                found[name] = tensors[f"{name}_to"].clone()
                found[name][cut] = tensors[f"{name}_from"]
            return found

        said = f"seed {seed}, {places}"
        function = context("emu2:mini").compile(written, given, tmp_path / f"{seed}")
        assert function.report.facts["host_fallback"] == [], said
        results = function(given)
        for name, wanted in written(given).items():
            assert torch.equal(results[name].cpu(), wanted), said

    with_seeds(check, 3, 60)


@pytest.mark.parametrize("step", [1, 2])
def test_a_write_to_many_places_stays_on_the_device(step: int, tmp_path: Path) -> None:
    """The exporter's form has an update for each row: the host ran more than 64."""

    def written(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        x = given["x"].clone()
        x[1:-1:step] = given["y"]
        return {"x": x}

    given = {"x": torch.arange(300), "y": -torch.arange(300)[1:-1:step]}
    function = context("emu2:mini").compile(written, given, tmp_path / "out")
    assert function.report.facts["host_fallback"] == []
    assert torch.equal(function(given)["x"].cpu(), written(given)["x"])
