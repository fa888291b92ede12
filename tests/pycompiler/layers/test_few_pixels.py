"""Convolutions of few pixels: L2Bs share the columns, so each reads its part of the weights."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from compiling import compiled, run, sampled
from one_node import one_node

from pycompiler.graph import Level, parse_layout
from pycompiler.pfvm.session import HostSession

#: The largest error, over the largest result.
ERROR = {"float": 1e-5, "mixed": 0.01}
#: Inputs and large weights, and how often all DRAMs together may read the weights. They have four
#: copies if no group has a part of its own.
CASES = {
    "as in a last stage": ((1, 96, 4, 4), (160, 96, 3, 3), 2.2),
    "odd": ((2, 128, 3, 5), (160, 128, 3, 3), 3.5),
}


def check(mode: str, pixels: tuple[int, ...], weights: tuple[int, ...], seed: int) -> Any:
    pads = [size // 2 for size in weights[2:]] * 2
    model = one_node("Conv", {"x": pixels, "w": weights}, {}, pads=pads)
    rng = np.random.default_rng(seed)
    inputs = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in (("x", pixels), ("w", weights))
    }
    result, report = compiled(model, "mncore2", float_dtype=mode)
    assert report["host_fallback"] == []
    found = run(result, inputs, "mncore2")["y0"]
    wanted = HostSession(model, "model").run(inputs)["y0"]
    assert np.abs(found - wanted).max() <= ERROR[mode] * np.abs(wanted).max()
    return report


@pytest.mark.parametrize("case", CASES)
def test_each_l2b_reads_its_columns(case: str) -> None:
    pixels, weights, most = CASES[case]
    report = check("mixed", pixels, weights, 1)
    rows = [row for row in report["nodes"] if row["op"] == "MNCoreDownload"]
    (layout,) = (parse_layout(row["layout"]) for row in rows if row["shape"][0] == weights[0])
    assert Level.L2B in {digit.level for digit in layout.axes[0]}
    assert report["dram_words"]["read"] <= most * np.prod(weights) / 4


@pytest.mark.parametrize(
    ("mode", "seed"), sampled([(mode, seed) for seed in range(2) for mode in ERROR], every=3)
)
def test_drawn_convolutions(mode: str, seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    channels, columns = rng.randrange(3, 70), rng.randrange(33, 200)
    pixels = rng.randrange(1, 4), channels, rng.randrange(1, 7), rng.randrange(1, 7)
    kernel = rng.choice((1, 3, 5)), rng.choice((1, 3))
    check(mode, pixels, (columns, channels, *kernel), seed)
