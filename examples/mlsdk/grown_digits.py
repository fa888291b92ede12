"""Pictures of handwritten digits, 32 x 32: scikit-learn's 8 x 8 pictures, changed at random.

The pictures of scikit-learn are split first. No picture of the test set comes from one that a
picture of the training set comes from.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch.nn import functional

SIDE = 32
#: One of this many source pictures is for tests.
TEST_SHARE = 7


def _grown(pictures: torch.Tensor, labels: torch.Tensor, count: int, seed: int):
    """Return ``count`` pictures ``(count, 1, SIDE, SIDE)`` in [0, 1], and their labels."""
    random = torch.Generator().manual_seed(seed)
    picked = torch.randint(0, len(pictures), (count,), generator=random)

    def between(low: float, high: float) -> torch.Tensor:
        return torch.rand(count, generator=random) * (high - low) + low

    angle, shear = between(-0.15, 0.15), between(-0.12, 0.12)
    wide, high = between(0.9, 1.2), between(0.9, 1.2)
    right, down = between(-0.09, 0.09), between(-0.09, 0.09)
    cos, sin = torch.cos(angle), torch.sin(angle)
    rows = [cos * wide, shear - sin, right, sin, cos * high, down]
    matrix = torch.stack(rows, 1).reshape(count, 2, 3)
    out = []
    for part in torch.arange(count).split(4096):
        grid = functional.affine_grid(matrix[part], (len(part), 1, SIDE, SIDE), align_corners=False)
        found = functional.grid_sample(pictures[picked[part]], grid, align_corners=False)
        out.append(found)
    return torch.cat(out), labels[picked]


def grown_digits(train: int, test: int, seed: int = 0):
    """Return pictures and labels for training, then for tests."""
    data = load_digits()
    pictures = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(data.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    kept = len(order) // TEST_SHARE
    own, other = order[kept:], order[:kept]
    return (
        _grown(pictures[own], labels[own], train, seed + 1),
        _grown(pictures[other], labels[other], test, seed + 2),
    )
