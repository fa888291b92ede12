"""Writes to slices: of any part of an axis, evenly spaced places, and any dtype."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
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


def _updated(rng: random.Random, x: Any) -> Any:
    """Write drawn parts of a matrix in place, in terms of other parts of it, and return a part."""
    rows, columns = x.shape
    for _ in range(rng.randint(2, 5)):
        i, j, step = rng.randrange(rows - 3), rng.randrange(columns - 3), rng.choice((1, 1, 2))
        high, wide = rng.randint(1, rows - i - 2), rng.randint(1, columns - j - 2)
        own = x[i : i + high : step, j : j + wide : step]
        kind = rng.choice(("update", "outer", "neighbours", "column", "row", "all", "number"))
        if kind == "update":
            x[i : i + high : step, j : j + wide : step] += 0.5 * own
        elif kind == "outer":
            x[i : i + high, j : j + wide] -= x[i : i + high, j, None] * x[i, j : j + wide]
        elif kind == "neighbours":
            below = x[i + 2 : i + 2 + high : step, j : j + wide : step]
            beside = x[i : i + high : step, j + 1 : j + 1 + wide : step]
            x[i : i + high : step, j : j + wide : step] = own - below * beside
        elif kind == "column":
            x[i:, j] = x[i:, j + 1] - x[i, j]
        elif kind == "row":
            x[i, j:] = 2 * x[i + 1, j:]
        elif kind == "all":
            x[:, j : j + wide] = x[:, j + 1 : j + 1 + wide] + x[:, j : j + wide]
        else:
            x[i : i + high, j : j + wide : step] = 3.0
    return x[rng.randrange(rows) :, rng.randrange(columns)]


def test_drawn_updates(tmp_path: Path) -> None:
    """numpy writes in place; reads before, after, inside of and around a write see its values."""

    def check(seed: int) -> None:
        rng, drawn = random.Random(seed), np.random.default_rng(seed)
        shape = rng.randint(5, 12), rng.randint(5, 12)
        start = drawn.integers(-3, 4, shape).astype(rng.choice((np.float32, np.float64)))
        wanted = start.copy()
        part = _updated(random.Random(seed), wanted)

        def updated(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            x = given["x"].clone()
            return {"part": _updated(random.Random(seed), x), "x": x}

        given = {"x": torch.from_numpy(start)}
        function = context("emu2:mini").compile(updated, given, tmp_path / f"{seed}")
        assert function.report.facts["host_fallback"] == [], f"seed {seed}"
        results = function(given)
        assert np.array_equal(results["x"].cpu().numpy(), wanted), f"seed {seed}"
        assert np.array_equal(results["part"].cpu().numpy(), part), f"seed {seed}"

    with_seeds(check, 4, 60)
