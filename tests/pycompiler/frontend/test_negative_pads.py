"""Pads that crop, against torch: the form of `plain_operators/images.py` without a compile."""

from __future__ import annotations

import random

import pytest
import torch
from torch.nn import functional

from pycompiler.frontend.plain_operators.images import padded


def drawn_pad(rng: random.Random, size: int) -> tuple[int, int]:
    """Two amounts, at most what the crop leaves: else torch refuses, or reads beyond it."""
    while True:
        front, back = (rng.randint(1 - size, size) for _ in range(2))
        if max(front, back, 1) <= size + min(front, 0) + min(back, 0):
            return front, back


@pytest.mark.parametrize("mode", ["circular", "reflect", "replicate"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pads_that_crop(mode: str, rank: int) -> None:
    rng, compared = random.Random(rank), 0
    for _ in range(300):
        x = torch.randn(1, 2, *(rng.randint(1, 6) for _ in range(rank)))
        pad = [amount for axis in range(rank) for amount in drawn_pad(rng, x.shape[-1 - axis])]
        if min(pad) >= 0 or (
            mode == "reflect"
            and any(amount >= x.shape[-1 - place // 2] for place, amount in enumerate(pad))
        ):
            continue  # torch's exporter takes the first, torch refuses the second
        assert torch.equal(padded(x, pad, mode), functional.pad(x, pad, mode=mode)), (x.shape, pad)
        compared += 1
    assert compared > 50
