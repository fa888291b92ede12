"""Calls on shapes for which ONNX has no form, against torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context, sampled
from torch.nn import functional

from pycompiler.frontend.export import export
from pycompiler.pfvm.session import HostSession

X = torch.tensor([[1.5, -2.0], [0.25, 3.0], [-1.0, 0.5]])
ONE = torch.tensor(2.5)
LAYER = torch.nn.LSTM(4, 5, proj_size=3)
BOTH = torch.nn.LSTM(4, 5, num_layers=2, proj_size=2, bidirectional=True, batch_first=True)
CASES: list[tuple[str, Callable[[torch.Tensor], Any], torch.Tensor]] = [
    ("squeeze of two", lambda x: x.squeeze(-1), X),
    ("squeeze of axes", lambda x: x[:, :, None].squeeze((0, 2)), X),
    ("squeeze of no axis", lambda x: torch.squeeze(x, (0, 1)) * 2, X),
    ("squeeze of a number", lambda x: x.squeeze(0) * 2, ONE),
    ("squeeze of axes of a number", lambda x: torch.squeeze(x, (0,)), ONE),
    ("squeeze of chosen axes, of which there is none", lambda x: torch.squeeze(x[:, :1], ()), X),
    *(
        (f"{name} of a number, {keep}", lambda x, f=f, keep=keep: f(x, 0, keepdim=keep), ONE)
        for keep in (False, True)
        for name, f in [
            ("any", torch.any),
            ("all", torch.all),
            ("amax", torch.amax),
            ("amin", torch.amin),
            ("var", lambda x, axis, keepdim: torch.var(x, axis, correction=0, keepdim=keepdim)),
            ("aminmax", lambda x, axis, keepdim: torch.aminmax(x, dim=axis, keepdim=keepdim)),
        ]
    ),
    ("any of axes of a whole number", lambda x: x.any((0,), keepdim=True), torch.tensor(3)),
    ("flip of a number", lambda x: x.flip([0]), ONE),
    ("scatter to a number", lambda x: x.scatter(0, (x > 9).long(), x * 2), ONE),
    ("scatter of 3 to a number", lambda x: x.scatter(0, (x > 9).long(), 3.0), ONE),
    ("sum at a number", lambda x: x.scatter_add(0, (x > 9).long(), x * 2), ONE),
    ("largest of a number", lambda x: x.topk(1), ONE),
    ("product of a number", lambda x: x.prod(0), ONE),
    *(
        (f"grid {size} {corners}", lambda x, s=size, c=corners: functional.affine_grid(x, s, c), x)
        for corners in (True, False)
        for size, x in [
            ((1, 1, 1, 3), torch.tensor([[[1.0, 0.5, 0.25], [-1.0, 2.0, 0.75]]])),
            ((2, 3, 4, 1), torch.arange(12.0).reshape(2, 2, 3)),
            ((1, 1, 1, 2, 1), torch.arange(12.0).reshape(1, 3, 4)),
        ]
    ),
    ("window in padding", lambda x: functional.avg_pool2d(x, 2, 2, 1, ceil_mode=True), None),
    ("largest in padding", lambda x: functional.max_pool2d(x, 2, 2, 1, ceil_mode=True), None),
    ("projections", lambda x: LAYER(x)[0].detach(), torch.sin(torch.arange(24.0)).reshape(3, 2, 4)),
    ("states", lambda x: [s.detach() for s in BOTH(x)[1]], torch.cos(torch.ones(2, 3, 4))),
]


@pytest.mark.parametrize(("name", "function", "x"), sampled(CASES, every=4, first=2))
def test_as_torch(name: str, function: Any, x: torch.Tensor | None, tmp_path: Path) -> None:
    x = torch.sin(torch.arange(49.0)).reshape(1, 1, 7, 7) if x is None else x

    def results(d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        found = function(d["x"])
        found = [found] if isinstance(found, torch.Tensor) else found
        return {f"y{number}": one for number, one in enumerate(found)}

    wanted = results({"x": x})
    compiled = context("pfvm:cpu").compile(results, {"x": x}, tmp_path / "out", quiet=True)
    for name, found in compiled({"x": x}).items():
        torch.testing.assert_close(found.cpu(), wanted[name], equal_nan=True)


@pytest.mark.parametrize("keep", [False, True])
def test_of_everything(keep: bool) -> None:
    """Extremes and norms of all elements leave no switch to a list: each axis is reduced."""

    def function(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        x = given["x"]
        axes = {"keepdim": keep}
        return {"least": torch.amin(x, **axes), "norm": torch.linalg.vector_norm(x, **axes)}

    x = {"x": torch.randn(3, 5, 7)}
    model = export(function, x)
    assert not {"Reshape", "Flatten"} & {node.op_type for node in model.graph.node}
    found = HostSession(model, "model").run({"x": x["x"].numpy()})
    for name, wanted in function(x).items():
        assert found[name].shape == tuple(wanted.shape)
        torch.testing.assert_close(torch.from_numpy(found[name]), wanted)
