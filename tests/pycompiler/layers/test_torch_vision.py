"""Functions of vision models, exported by torch and compared with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from compiling import compiled, run

from pycompiler.frontend.export import export
from pycompiler.pfvm.optimise import optimise

F = torch.nn.functional

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a divisor of its own": lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5),
    "statistics of the batch": lambda x: F.batch_norm(
        x, torch.zeros(4), torch.ones(4), training=True
    ),
    "adaptive, in blocks": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "adaptive, windows that overlap": lambda x: F.adaptive_avg_pool2d(x, (4, 5)),
    "adaptive, larger than the picture": lambda x: F.adaptive_avg_pool2d(x[:, :, :2, :2], 7),
    "adaptive, of one pixel": lambda x: F.adaptive_avg_pool2d(x[:, :, :1, :1], (3, 2)),
    "adaptive, one axis": lambda x: F.adaptive_avg_pool1d(x[:, 0], 4),
    "adaptive, three axes": lambda x: F.adaptive_avg_pool3d(x, (3, 4, None)),
    "indices in an image": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1],
    "pixel shuffle": lambda x: F.pixel_shuffle(x, 2),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest exact": lambda x: F.interpolate(x, size=(4, 9), mode="nearest-exact"),
    "reflection": lambda x: F.pad(x, (2, 1, 0, 3), mode="reflect"),
    "fold": lambda x: F.fold(F.unfold(x, 2), (6, 6), 2),
    "roll": lambda x: x.roll((1, -2), (2, 3)),
}


#: Those that stand for others of their kind run in `make test-long` only.
_ALIKE = (
    *("adaptive, in blocks", "adaptive, larger than the picture", "adaptive, of one pixel"),
    *("adaptive, one axis", "pixel shuffle", "roll"),
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n in _ALIKE else ()) for n in FUNCTIONS]
)
def test_function(name: str) -> None:
    function = FUNCTIONS[name]
    x = torch.randn((2, 4, 6, 6), generator=torch.Generator().manual_seed(3))
    model = optimise(export(lambda given: {"y": function(given["x"])}, {"x": torch.zeros(x.shape)}))
    result, report = compiled(model)
    assert report["host_fallback"] == []
    found, wanted = run(result, {"x": x.numpy()})["y"], function(x).numpy()
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_uneven_adaptive_pool_is_one_product() -> None:
    """The exporter picks the elements of each window singly, which takes thousands of steps."""
    x = torch.zeros(1, 16, 6, 6)
    model = optimise(export(lambda given: {"y": F.adaptive_avg_pool2d(given["x"], 4)}, {"x": x}))
    assert sorted(node.op_type for node in model.graph.node) == ["MatMul", "Reshape", "Reshape"]
